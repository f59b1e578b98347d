"""Addresses that are safe to show as links, whoever follows them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from protocols.model import ActivityObject, Author, Entry, Feed, Link
from protocols.people import display_name, without_addresses
from protocols.urls import is_web_url

SAFE_SCHEMES: Final = frozenset(
    {
        *("ftp", "geo", "gemini", "gopher", "http", "https", "magnet", "mailto"),
        *("news", "sms", "tel", "xmpp"),
    }
)
"""All others are dropped: ``javascript:``, ``data:``, and what nobody knows."""

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")

Linked = TypeVar("Linked", Entry, Feed, Author, ActivityObject)


def is_safe_url(url: str) -> bool:
    """Whether it is absolute, in one line, and of a scheme that starts no program."""
    found = _SCHEME.match(url)
    if found is None or _UNPRINTABLE.search(url):
        return False
    return found[1].lower() in SAFE_SCHEMES


def is_safe_page(url: str) -> bool:
    """The same for what is fetched: http and https only."""
    return is_web_url(url) and not _UNPRINTABLE.search(url)


def safe_links(links: Sequence[Link]) -> tuple[Link, ...]:
    return tuple(link for link in links if is_safe_url(link.href))


def safe_feed(feed: Feed) -> Feed:
    """A feed's head, or an entry's source, without unsafe addresses."""
    return replace(
        _with_safe_links(feed),
        icon=_safe(feed.icon),
        logo=_safe(feed.logo),
        authors=_people(feed.authors),
        contributors=_people(feed.contributors),
        extensions=without_addresses(feed.extensions),
    )


def safe_entry(entry: Entry) -> Entry:
    """An entry without unsafe addresses and mail addresses of people; its texts are
    what the feed says."""
    return replace(
        _with_safe_links(entry),
        authors=_people(entry.authors),
        contributors=_people(entry.contributors),
        objects=tuple(
            replace(_with_safe_links(each), authors=_people(each.authors))
            for each in entry.objects
        ),
        source=None if entry.source is None else safe_feed(entry.source),
        extensions=without_addresses(entry.extensions),
    )


def _people(people: Sequence[Author]) -> tuple[Author, ...]:
    """Without mail addresses, too: they are not for everybody."""
    return tuple(
        replace(
            _with_safe_links(each),
            name=display_name(each) if "@" in each.name else each.name,
            uri=_safe(each.uri),
            email="",
        )
        for each in people
    )


def _with_safe_links(linked: Linked) -> Linked:
    return replace(linked, links=safe_links(linked.links))


def _safe(url: str) -> str:
    return url if is_safe_url(url) else ""
