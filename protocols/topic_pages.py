"""A feed as this hub has it, newest first: ``/topics/{id}.atom``, ``.json`` (JSON Feed)
and ``.normalized.json``.

Entries are rendered as in notifications, but in the JSON Feed. The pages are chained as
RFC 5005 has it for paged feeds: ``first``, and ``next`` while there is more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, Self

import orjson
from msgspec import structs

from protocols.json_feed import JSON_FEED_TYPE, render_json_feed
from protocols.model import Author, Entry, Feed, Link, Notification, Status
from protocols.superfeedr.atom import ATOM_TYPE, render_entries
from protocols.superfeedr.atom_entries import ACTIVITY, ATOM, put_head
from protocols.superfeedr.atom_values import language_attribute, put_people
from protocols.superfeedr.dates import updated_of
from protocols.superfeedr.ids import feed_id
from protocols.superfeedr.json import JSON_TYPE, render_items
from protocols.superfeedr.json_entries import feed_object
from protocols.superfeedr.xml import XmlWriter

_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PLACE = re.compile(r"(-?[0-9]{1,15})-([0-9]{1,18})")
_OURS: Final = frozenset({"self", "hub", "first", "last", "next", "previous", "prev"})
"""Relations of the source's own head that would say something else here."""


class TopicFormat(StrEnum):
    """By how the address ends."""

    ATOM = "atom"
    NORMALIZED = "normalized.json"  # with the keys of notifications
    JSON_FEED = "json"

    @property
    def media_type(self) -> str:
        return _MEDIA_TYPES[self]


_MEDIA_TYPES: Final = {
    TopicFormat.ATOM: ATOM_TYPE,
    TopicFormat.NORMALIZED: JSON_TYPE,
    TopicFormat.JSON_FEED: JSON_FEED_TYPE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePlace:
    """A place in a list, as ``before`` of a page's address: milliseconds, entry."""

    dated: datetime
    entry: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError."""
        found = _PLACE.fullmatch(text)
        if found is None:
            raise ValueError(text)
        try:
            dated = _START + timedelta(milliseconds=int(found[1]))
        except OverflowError as error:
            raise ValueError(text) from error
        return cls(dated=dated, entry=int(found[2]))

    def __str__(self) -> str:
        milliseconds = (self.dated - _START) // timedelta(milliseconds=1)
        return f"{milliseconds}-{self.entry}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPage:
    """``url`` is the topic's, without a query; ``source`` the publisher's own feed.

    ``dates``: of each entry, what stands in for a date where it has none of its own;
    ``undated``: the same of the whole, where it has no entries.
    """

    url: str
    hub: str
    source: str
    feed: Feed
    entries: tuple[Entry, ...]
    dates: tuple[datetime, ...]
    undated: datetime
    before: str = ""
    limit: int = 0
    is_default_limit: bool = True
    next: str | None = None

    @property
    def self_url(self) -> str:
        return self._at(self.before)

    @property
    def first_url(self) -> str:
        return self._at("")

    @property
    def next_url(self) -> str | None:
        return None if self.next is None else self._at(self.next)

    def _at(self, before: str) -> str:
        parts = [f"before={before}"] if before else []
        if not self.is_default_limit:
            parts.append(f"limit={self.limit}")
        return f"{self.url}?{'&'.join(parts)}" if parts else self.url


def render_topic_page(page: TopicPage, format: TopicFormat) -> bytes:
    head = structs.replace(page.feed, links=_links(page, format))
    if format is TopicFormat.ATOM:
        return _render_atom(page, head)
    if format is TopicFormat.JSON_FEED:
        return _render_json_feed(page)
    return _render_normalized(page, head)


def _links(page: TopicPage, format: TopicFormat) -> tuple[Link, ...]:
    """The source's, without those that are the pages' own."""
    own = [
        Link(href=page.self_url, rel="self", type=format.media_type.partition(";")[0]),
        Link(href=page.hub, rel="hub", type=""),
        Link(href=page.first_url, rel="first", type=""),
        Link(href=page.source, rel="via", type=""),
    ]
    if page.next_url:
        own.insert(3, Link(href=page.next_url, rel="next", type=""))
    return (*own, *(link for link in page.feed.links if link.rel not in _OURS))


def notified_links(links: Iterable[Link], topic: str, hub: str) -> tuple[Link, ...]:
    """Of a notification to who subscribed to such a page at this hub: the source's,
    whose own address becomes ``via``, without those that are the pages' own."""
    given = tuple(links)
    via = [
        structs.replace(link, rel="via", type="")
        for link in given
        if link.rel == "self"
    ]
    return (
        Link(href=topic, rel="self", type=""),
        Link(href=hub, rel="hub", type=""),
        *via[:1],
        *(link for link in given if link.rel not in _OURS),
    )


def _notification(page: TopicPage, head: Feed) -> Notification:
    """The same entries as notifications have, in the order of the list."""
    updated = page.feed.updated or max(
        (at for _, at in _dated(page)), default=page.undated
    )
    return Notification(
        topic=page.url,
        hub=page.hub,
        status=Status(),
        feed=structs.replace(head, updated=updated),
        entries=page.entries,
    )


def _dated(page: TopicPage) -> Iterator[tuple[Entry, datetime]]:
    for entry, known in zip(page.entries, page.dates, strict=True):
        yield entry, updated_of(entry) or known


def _render_atom(page: TopicPage, head: Feed) -> bytes:
    """Without a status: it would change with every poll, though nothing has.

    Nor does an entry without a date get another one when others come.
    """
    entries = tuple(structs.replace(entry, updated=at) for entry, at in _dated(page))
    notification = _notification(replace(page, entries=entries), head)
    writer = XmlWriter()
    writer.put(
        b'<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="%b" xmlns:as="%b"%b>'
        % (ATOM.encode(), ACTIVITY.encode(), language_attribute(head.language))
    )
    id = feed_id(page.feed, page.url) or page.url
    put_head(writer, head, id=id, updated=notification.feed.updated)
    if not head.authors:
        put_people(writer, b"author", [Author(name=head.title or page.url)])
    return b"%b%b</feed>\n" % (writer.finish(), render_entries(notification))


def _render_normalized(page: TopicPage, head: Feed) -> bytes:
    """The items of notifications; ``next_url``, ``feed_url`` and ``hubs`` are named as

    in JSON Feed.
    """
    notification = _notification(page, head)
    document: dict[str, object] = {
        **feed_object(notification.feed, id=feed_id(page.feed, page.url)),
        "feed_url": page.self_url,
        "hubs": [{"type": "WebSub", "url": page.hub}],
        "items": orjson.Fragment(render_items(notification)),
    }
    if page.next_url:
        document["next_url"] = page.next_url
    return orjson.dumps(document)


def _render_json_feed(page: TopicPage) -> bytes:
    return render_json_feed(
        page.feed,
        page.entries,
        url=page.self_url,
        hub=page.hub,
        title=page.source,
        next_url=page.next_url,
    )
