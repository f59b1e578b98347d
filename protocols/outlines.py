"""Lists of feeds in OPML, as people export them and sites publish them: reading.

Lenient about what files in use do: attribute names in any case, other types than
``rss``, folders, and lists that include others (``type="link"`` with an ``xmlUrl`` as
myPublicFeeds.opml has it, ``type="include"`` of OPML 2.0). Comments are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from protocols.errors import NotAFeed
from protocols.feeds.context import ParseContext
from protocols.feeds.document import open_document
from protocols.feeds.element import Element, local_name, text_of
from protocols.feeds.limits import MAX_ATTRIBUTES
from protocols.feeds.sniff import Kind
from protocols.feeds.xml import build_tree
from protocols.text import collapse
from protocols.urls import is_web_url, resolve

MOST_BYTES: Final = 16 * 1024 * 1024
"""Of one list."""
MOST_FEEDS: Final = 100_000
"""Of one list, and of all that it includes."""
MOST_INCLUSIONS: Final = 1_000
"""Of one list. Far more than are ever read; to make all absolute takes seconds."""
LONGEST_SECTION: Final = 200
"""Characters."""
SLASH_IN_NAME: Final = "\u2215"
"""Stands for a slash in a folder's own name: in a section they are between folders."""
_LONGEST_TEXT: Final = 1_000
_MOST_NOTES: Final = 20
_FEED_SCHEME: Final = re.compile(r"feed:(?://(?=[^/])|(?=https?://))", re.IGNORECASE)
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFeed:
    """One feed of a list; ``section`` is its folders' names, "" for none.

    Between two of them is a slash; one in a name is written `SLASH_IN_NAME`.
    """

    url: str
    title: str = ""
    description: str = ""
    section: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inclusion:
    """Another list that is to be read in the place of this."""

    url: str
    section: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedList:
    """A list as it was read, in its order. ``notes`` say what was left out."""

    title: str = ""
    feeds: tuple[ListedFeed, ...] = ()
    inclusions: tuple[Inclusion, ...] = ()
    notes: tuple[str, ...] = ()


def read_outlines(body: bytes, url: str, content_type: str = "") -> FeedList:
    """Read a list that came from a URL ("": from a file, without relative addresses).

    Raises a `FeedError`: `NotAFeed` for what is no OPML.
    """
    context = ParseContext(url=url, content_type=content_type, now=_NEVER)
    document = open_document(body, context)
    if document.kind is not Kind.XML:
        raise NotAFeed("a JSON document")
    _, root = build_tree(document)
    if local_name(root.tag).lower() != "opml":
        raise NotAFeed(f"an XML document whose root is <{local_name(root.tag)[:80]}>")
    return _read(root, url)


def _read(root: Element, url: str) -> FeedList:
    feeds: list[ListedFeed] = []
    inclusions: list[Inclusion] = []
    notes: list[str] = []
    for outline, section in _outlines(root):
        address = outline.get("xmlurl") or ""
        if _is_inclusion(outline):
            if len(inclusions) == MOST_INCLUSIONS:
                continue
            target = _absolute(address or outline.get("url", ""), url)
            if target:
                inclusions.append(Inclusion(url=target, section=section))
        elif address:
            found = _absolute(address, url)
            if not found:
                notes.append(f"{collapse(address)[:200]} is no web address")
            elif len(feeds) < MOST_FEEDS:
                feeds.append(_feed(outline, found, section))
            else:
                notes.append(f"only the first {MOST_FEEDS} feeds were read")
                break
    return FeedList(
        title=_title(root),
        feeds=tuple(feeds),
        inclusions=tuple(inclusions),
        notes=tuple(notes[:_MOST_NOTES]),
    )


Attributes = Mapping[str, str]


def _outlines(root: Element) -> Iterator[tuple[Attributes, str]]:
    """Every outline with its section, in the document's order; names in lower case."""
    bodies = [each for each in root if local_name(each.tag).lower() == "body"]
    waiting = [(each, "") for body in reversed(bodies) for each in [*body][::-1]]
    while waiting:
        element, section = waiting.pop()
        if local_name(element.tag).lower() != "outline":
            continue
        outline = _attributes(element)
        if outline.get("iscomment", "").strip().lower() == "true":
            continue
        yield outline, section
        if not outline.get("xmlurl"):
            section = _inside(section, _name(outline))
        waiting += [(each, section) for each in [*element][::-1]]


def _attributes(element: Element) -> Attributes:
    """The first ones, asked for one by one: to list all values of an element takes
    lxml squared time, in which nothing else of the process runs."""
    names = element.keys()[:MAX_ATTRIBUTES]
    return {local_name(name).lower(): element.get(name) or "" for name in names}


def _is_inclusion(outline: Attributes) -> bool:
    type = outline.get("type", "").strip().lower()
    if type == "include":
        return True
    if type != "link":
        return False
    address = outline.get("url", "").strip()
    return bool(outline.get("xmlurl")) or _path(address).endswith(".opml")


def _path(url: str) -> str:
    """A URL's path in lower case; "" for what is none."""
    try:
        return urlsplit(url).path.lower()
    except ValueError:
        return ""


def _absolute(address: str, base: str) -> str:
    url = resolve(_FEED_SCHEME.sub(_web_scheme, address.strip()), base)
    return url if is_web_url(url) else ""


def _web_scheme(match: re.Match[str]) -> str:
    """``feed://host`` is http, ``feed:https://host`` is what it says."""
    return "http://" if match[0].endswith("//") else ""


def _feed(outline: Attributes, url: str, section: str) -> ListedFeed:
    return ListedFeed(
        url=url,
        title=_printable(_name(outline))[:_LONGEST_TEXT] or url,
        description=_printable(outline.get("description", ""))[:_LONGEST_TEXT],
        section=section,
    )


def _name(outline: Attributes) -> str:
    return collapse(outline.get("text", "") or outline.get("title", ""))


def _inside(section: str, name: str) -> str:
    """Folders inside of folders, with what cannot be shown left out."""
    shown = _printable(name).replace("/", SLASH_IN_NAME)
    return "/".join(filter(None, (section, shown)))[:LONGEST_SECTION]


def _printable(name: str) -> str:
    return "".join(filter(str.isprintable, collapse(name))).strip()


def _title(root: Element) -> str:
    titles = (
        each
        for head in root
        if local_name(head.tag).lower() == "head"
        for each in head
        if local_name(each.tag).lower() == "title"
    )
    title = next(titles, None)
    return "" if title is None else collapse(text_of(title))[:_LONGEST_TEXT]
