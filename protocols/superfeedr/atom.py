"""Notifications as Atom, ``<status>`` first, with Superfeedr's namespaces.

Valid Atom 1.0 as far as the schema allows: Superfeedr gives authors an id and a
title and sources a date of publication, which RFC 4287 does not know. A date that
Atom requires and an entry does not have is the document's.
"""

from __future__ import annotations

from typing import Final

from protocols.model import Notification, Status
from protocols.superfeedr.atom_entries import (
    ACTIVITY,
    ATOM,
    SUPERFEEDR,
    date_element,
    deleted_entry_element,
    entry_element,
    feed_elements,
    language_attribute,
)
from protocols.superfeedr.dates import document_date
from protocols.superfeedr.ids import feed_id
from protocols.superfeedr.status import has_generated_ids
from protocols.superfeedr.xml import attribute, element, encode, escape

ATOM_TYPE: Final = "application/atom+xml"


def render_atom(notification: Notification, entries: bytes | None = None) -> bytes:
    """The whole document. ``entries`` are those of `render_entries`, if at hand:

    they are the same for every topic and subscriber, whom only the head names.
    """
    if entries is None:
        entries = render_entries(notification)
    return b"%b%b</feed>" % (encode(_head(notification)), entries)


def render_entries(notification: Notification) -> bytes:
    """Entries, then deletions as RFC 6721 tombstones, without the feed around them."""
    undated = document_date(notification)
    elements = [
        entry_element(
            entry, undated=undated, is_updated=entry.key in notification.updated_keys
        )
        for entry in notification.entries or ()
    ]
    elements += [
        deleted_entry_element(deletion, undated=undated)
        for deletion in notification.deletions
    ]
    return encode("".join(elements))


def _head(notification: Notification) -> str:
    feed = notification.feed
    id = feed_id(feed) or notification.topic
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<feed xmlns="{ATOM}" xmlns:as="{ACTIVITY}"'
        f"{language_attribute(feed.language)}>{_status(notification)}"
        f"{feed_elements(feed, id=id, updated=document_date(notification))}"
    )


def _status(notification: Notification) -> str:
    """First child of ``feed``; its children in the order of Superfeedr's own."""
    status = notification.status
    code = "" if status.code is None else f' code="{status.code}"'
    generated = "true" if has_generated_ids(notification) else ""
    return "".join(
        (
            f'<status feed="{attribute(notification.topic)}" xmlns="{SUPERFEEDR}">',
            f"<http{code}>{escape(status.http)}</http>",
            date_element("next_fetch", status.next_fetch),
            *_numbers(status),
            element("generated_ids", generated),
            element("title", status.title),
            _number("period", status.period),
            date_element("last_fetch", status.last_fetch),
            date_element("last_parse", status.last_parse),
            date_element("last_maintenance_at", status.last_maintenance_at),
            "</status>",
        )
    )


def _numbers(status: Status) -> tuple[str, ...]:
    count = status.entries_count_since_last_maintenance
    return (
        _number("entries_count_since_last_maintenance", count),
        _number("velocity", status.velocity),
        _number("popularity", status.popularity),
        _number("porn_rank", status.porn_rank),
        _number("bozo_rank", status.bozo_rank),
    )


def _number(tag: str, value: float | None) -> str:
    return "" if value is None else f"<{tag}>{value}</{tag}>"
