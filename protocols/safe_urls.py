"""Public values: safe URLs, names without e-mail addresses, URLs without secrets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from protocols.model import ActivityObject, Author, Entry, Feed, Link
from protocols.text import collapse
from protocols.urls import host_name, is_web_url

LONGEST_NAME: Final = 200
"""Characters of a name that are read, up to the end of a word."""

_NOTHING: Final[tuple[Any, ...]] = ("", [], {})

# It takes time quadratic in the text's length.
_MAIL = re.compile(r"[^\s@<>()]+@[^\s@<>()]+\.[^\s@<>()]+")


def display_name(person: Author) -> str:
    """A name without an e-mail address in it."""
    name = person.name
    if len(name) > LONGEST_NAME:
        name = name[:LONGEST_NAME].rpartition(" ")[0]  # no half address at its end
    return collapse(_MAIL.sub("", name)).strip(" <>()")


def without_addresses(value: Any) -> Any:
    """An extension's value, JSON, without e-mail addresses.

    Values that become empty by that are dropped. Long texts, URLs and names such as
    @ann@host are unchanged.
    """
    if isinstance(value, str):
        return _without_address(value) if "@" in value else value
    if isinstance(value, list):
        kept = ((each, without_addresses(each)) for each in value)
        return [after for before, after in kept if after not in _NOTHING or not before]
    if isinstance(value, dict):
        named = ((name, each, without_addresses(each)) for name, each in value.items())
        return {
            name: after
            for name, before, after in named
            if after not in _NOTHING or not before
        }
    return value


def _without_address(text: str) -> str:
    if len(text) > LONGEST_NAME or "://" in text or text.startswith("@"):
        return text
    said = _MAIL.sub("", text)
    return text if said == text else collapse(said).strip(" <>()")


SAFE_SCHEMES: Final = frozenset(
    {
        *("ftp", "geo", "gemini", "gopher", "http", "https", "magnet", "mailto"),
        *("news", "sms", "tel", "xmpp"),
    }
)
"""All other schemes are dropped: ``javascript:``, ``data:``, and unknown ones."""

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")

Linked = TypeVar("Linked", Entry, Feed, Author, ActivityObject)


def is_safe_url(url: str) -> bool:
    """Whether a URL is absolute, on one line, and of a scheme that starts no
    program.
    """
    found = _SCHEME.match(url)
    if found is None or _UNPRINTABLE.search(url):
        return False
    return found[1].lower() in SAFE_SCHEMES


def is_safe_page(url: str) -> bool:
    """Like `is_safe_url`, for a page that is fetched: http and https only."""
    return is_web_url(url) and not _UNPRINTABLE.search(url)


def safe_links(links: Sequence[Link]) -> tuple[Link, ...]:
    return tuple(link for link in links if is_safe_url(link.href))


def safe_feed(feed: Feed) -> Feed:
    """A feed's head, or an entry's source, without unsafe URLs and e-mail addresses."""
    return replace(
        _with_safe_links(feed),
        icon=_safe(feed.icon),
        logo=_safe(feed.logo),
        authors=_people(feed.authors),
        contributors=_people(feed.contributors),
        extensions=without_addresses(feed.extensions),
    )


def safe_entry(entry: Entry) -> Entry:
    """An entry without unsafe URLs and people's e-mail addresses; texts are
    unchanged.
    """
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
    """The people without their e-mail addresses, which are not public."""
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


# --- what is shown of a URL that may grant access ---


def without_query(url: str) -> str:
    """A URL without its query, which often grants access to a feed."""
    address, separator, _ = url.partition("?")
    return f"{address}?…" if separator else address


def host_only(url: str) -> str:
    """``https://host/…``: path, user name and password may grant access as well."""
    return f"{url.partition(':')[0]}://{host_name(url)}/…"
