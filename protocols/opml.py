"""Lists of feeds in OPML, as people export them and sites publish them.

Reading is lenient about common deviations: attribute names in any case, other types
than ``rss``, folders, and lists that include others (``type="link"`` with an ``xmlUrl``
as in myPublicFeeds.opml, ``type="include"`` of OPML 2.0). Comments are skipped. Lists
that include each other may form a tree, a diamond or a ring: each is read once,
identified by its final address.

OPML 2.0 is written, such as ``/myPublicFeeds.opml``, a name proposed in 2003 and
withdrawn; every program that imports subscriptions reads it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import takewhile
from typing import Final
from urllib.parse import urlsplit

from protocols.feeds.context import ParseContext
from protocols.feeds.document import DocumentKind, open_document
from protocols.feeds.element import Element, local_name, text_of
from protocols.feeds.limits import MAX_ATTRIBUTES
from protocols.feeds.xml import build_tree
from protocols.protocol_errors import NotAFeed
from protocols.safe_urls import is_safe_page
from protocols.text import collapse
from protocols.urls import is_web_url, resolve, resource_url
from protocols.xml_syntax import XmlWriter

MOST_BYTES: Final = 16 * 1024 * 1024
"""The size of one list."""
MOST_FEEDS: Final = 100_000
"""The most feeds of one list with all that it includes."""
MOST_INCLUSIONS: Final = 1_000
"""The most inclusions of one list: far more than are ever read, as making their URLs
absolute takes seconds."""
LONGEST_CATEGORY: Final = 200
"""Characters."""
SLASH_IN_NAME: Final = "\u2215"
"""Replaces a slash in a folder's own name: in a category, slashes separate folders."""
_LONGEST_TEXT: Final = 1_000
_MOST_NOTES: Final = 20
_FEED_SCHEME: Final = re.compile(r"feed:(?://(?=[^/])|(?=https?://))", re.IGNORECASE)
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFeed:
    """One feed of a list; ``category`` is its folders' names, "" for none.

    The names are separated by slashes; a slash in a name is written `SLASH_IN_NAME`.
    """

    url: str
    title: str = ""
    description: str = ""
    category: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inclusion:
    """Another list that is to be read in place of this outline."""

    url: str
    category: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedList:
    """A list as it was read, in its order. ``notes`` say what was left out."""

    title: str = ""
    feeds: tuple[ListedFeed, ...] = ()
    inclusions: tuple[Inclusion, ...] = ()
    notes: tuple[str, ...] = ()


def read_outlines(body: bytes, url: str, content_type: str = "") -> FeedList:
    """Read a list. ``url`` is where it came from; "" for a file, without relative URLs.

    Raises a `FeedError`: `NotAFeed` for a document that is not OPML.
    """
    context = ParseContext(url=url, content_type=content_type, now=_NEVER)
    document = open_document(body, context)
    if document.kind is not DocumentKind.XML:
        raise NotAFeed("a JSON document")
    _, root = build_tree(document)
    if local_name(root.tag).lower() != "opml":
        raise NotAFeed(f"an XML document whose root is <{local_name(root.tag)[:80]}>")
    return _read(root, url)


def _read(root: Element, url: str) -> FeedList:
    feeds: list[ListedFeed] = []
    inclusions: list[Inclusion] = []
    notes: list[str] = []
    for outline, category in _outlines(root):
        address = outline.get("xmlurl") or ""
        if _is_inclusion(outline):
            if len(inclusions) == MOST_INCLUSIONS:
                continue
            target = _absolute(address or outline.get("url", ""), url)
            if target:
                inclusions.append(Inclusion(url=target, category=category))
        elif address:
            found = _absolute(address, url)
            if not found:
                notes.append(f"{collapse(address)[:200]} is not a web address")
            elif len(feeds) < MOST_FEEDS:
                feeds.append(_feed(outline, found, category))
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
    """Every outline with its category, in the document's order; names in lower case."""
    bodies = [each for each in root if local_name(each.tag).lower() == "body"]
    waiting = [(each, "") for body in reversed(bodies) for each in [*body][::-1]]
    while waiting:
        element, category = waiting.pop()
        if local_name(element.tag).lower() != "outline":
            continue
        outline = _attributes(element)
        if outline.get("iscomment", "").strip().lower() == "true":
            continue
        yield outline, category
        if not outline.get("xmlurl"):
            category = _inside(category, _name(outline))
        waiting += [(each, category) for each in [*element][::-1]]


def _attributes(element: Element) -> Attributes:
    """The first attributes, each read by itself.

    To list all values of an element takes lxml quadratic time, while all other threads
    wait.
    """
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
    """A URL's path in lower case; "" for an invalid URL."""
    try:
        return urlsplit(url).path.lower()
    except ValueError:
        return ""


def _absolute(address: str, base: str) -> str:
    url = resolve(_FEED_SCHEME.sub(_web_scheme, address.strip()), base)
    return url if is_web_url(url) else ""


def _web_scheme(match: re.Match[str]) -> str:
    """``feed://host`` becomes http; in ``feed:https://host`` the scheme is given."""
    return "http://" if match[0].endswith("//") else ""


def _feed(outline: Attributes, url: str, category: str) -> ListedFeed:
    return ListedFeed(
        url=url,
        title=_printable(_name(outline))[:_LONGEST_TEXT] or url,
        description=_printable(outline.get("description", ""))[:_LONGEST_TEXT],
        category=category,
    )


def _name(outline: Attributes) -> str:
    return collapse(outline.get("text", "") or outline.get("title", ""))


def _inside(category: str, name: str) -> str:
    """The category of a folder inside another; unprintable characters are dropped."""
    shown = _printable(name).replace("/", SLASH_IN_NAME)
    return "/".join(filter(None, (category, shown)))[:LONGEST_CATEGORY]


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


OPML_TYPE: Final = "text/x-opml; charset=utf-8"

_HEAD: Final = b'<?xml version="1.0" encoding="UTF-8"?>\n<opml version="2.0">\n<head>'


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOutline:
    """One feed of the list; ``html_url`` is its site's, "" if it is not known.

    ``category`` is its folders' names with slashes between them, "" for none; a slash
    in a name is written `protocols.opml.SLASH_IN_NAME`.
    """

    title: str
    description: str
    xml_url: str
    html_url: str = ""
    category: str = ""


def render_opml(
    title: str, outlines: Sequence[FeedOutline], modified: datetime | None
) -> bytes:
    """Write a list of feeds.

    Feeds without a category come first, as in the proposal, then a folder for each
    category, by name. Texts are never empty: the title stands in for a missing
    description, the URL for a missing title. Feeds without a safe URL are left out.
    """
    writer = XmlWriter()
    writer.put(_HEAD)
    writer.put_element(b"title", title)
    if modified is not None:
        writer.put_element(b"dateModified", format_datetime(modified, usegmt=True))
    writer.put(b"</head>\n<body>\n")
    safe = [each for each in outlines if is_safe_page(each.xml_url)]
    opened: tuple[str, ...] = ()
    for outline in sorted(safe, key=_folders):
        opened = _change_folder(writer, opened, _folders(outline))
        _put_outline(writer, outline)
    _change_folder(writer, opened, ())
    writer.put(b"</body>\n</opml>\n")
    return writer.finish()


def _folders(outline: FeedOutline) -> tuple[str, ...]:
    names = filter(None, map(str.strip, outline.category.split("/")))
    return tuple(name.replace(SLASH_IN_NAME, "/") for name in names)


def _change_folder(
    writer: XmlWriter, opened: tuple[str, ...], wanted: tuple[str, ...]
) -> tuple[str, ...]:
    """Close folders that are no longer wanted, and open the others.

    Returns ``wanted``.
    """
    shared = sum(1 for _ in takewhile(_are_equal, zip(opened, wanted, strict=False)))
    for _ in opened[shared:]:
        writer.put(b"</outline>\n")
    for name in wanted[shared:]:
        writer.parts += (b'<outline text="', name, b'" title="', name)
        writer.put(b'">\n')
    return wanted


def _are_equal(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


def _put_outline(writer: XmlWriter, outline: FeedOutline) -> None:
    """Write one feed. ``type`` is rss whatever the feed's format, as in the
    proposal.
    """
    title = outline.title.strip() or outline.xml_url
    writer.parts += (b'<outline type="rss" text="', title, b'" title="', title)
    description = outline.description.strip() or title
    writer.parts += (b'" description="', description)
    writer.parts += (b'" xmlUrl="', outline.xml_url)
    if is_safe_page(outline.html_url):
        writer.parts += (b'" htmlUrl="', outline.html_url)
    writer.put(b'"/>\n')


MOST_LISTS: Final = 50
DEEPEST: Final = 5
"""Levels of included lists; the first list is not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkedList:
    """A list that was requested; ``error`` says why it was not read."""

    url: str
    feeds: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Wanted:
    inclusion: Inclusion
    depth: int


@dataclass(slots=True)
class OutlineWalk:
    """The state of a walk through lists: ``feeds`` are those found, each once, in
    order.
    """

    feeds: list[ListedFeed] = field(default_factory=list)
    lists: list[WalkedList] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _is_cut: bool = False
    _waiting: deque[_Wanted] = field(default_factory=deque)
    _asked: set[str] = field(default_factory=set)
    _listed: set[str] = field(default_factory=set)
    _current: _Wanted | None = None

    @property
    def is_whole(self) -> bool:
        """Whether everything that the lists name was read."""
        is_read = not any(each.error for each in self.lists)
        return is_read and not self._is_cut and len(self.feeds) < MOST_FEEDS

    def begin(self, urls: Sequence[str], *, depth: int = 0) -> None:
        """Add lists to read; ``depth`` is their own depth."""
        self._want([Inclusion(url=url) for url in urls], depth)

    def begin_with(self, found: FeedList) -> None:
        """Add a list that has been read already."""
        self._add(found, "", 0)

    def next_url(self) -> str | None:
        """The list to request next; None if there is none.

        The caller passes its answer to `take` or `give_up` before calling this again.
        """
        while self._waiting:
            wanted = self._waiting.popleft()
            resource = resource_url(wanted.inclusion.url)
            if resource in self._asked:
                continue
            if len(self.lists) >= MOST_LISTS:
                self.stop(f"only the first {MOST_LISTS} lists were read")
                return None
            self._asked.add(resource)
            self._current = wanted
            return wanted.inclusion.url
        return None

    def take(self, url: str, found: FeedList) -> None:
        """Add the list that was requested; ``url`` is where it was found after
        redirects.
        """
        wanted = self._answered()
        resource = resource_url(url)
        is_elsewhere = resource != resource_url(wanted.inclusion.url)
        if is_elsewhere and resource in self._asked:
            return
        self._asked.add(resource)
        added = self._add(found, wanted.inclusion.category, wanted.depth)
        self.lists.append(WalkedList(url=url, feeds=added))

    def give_up(self, error: str) -> None:
        """Record that the requested list cannot be read; the others still can."""
        url = self._answered().inclusion.url
        self.lists.append(WalkedList(url=url, error=error))

    def stop(self, reason: str) -> None:
        """Request no more lists."""
        self._waiting.clear()
        self._is_cut = True
        self.notes.append(reason)

    def _answered(self) -> _Wanted:
        wanted, self._current = self._current, None
        if wanted is None:
            raise RuntimeError("no list was requested")
        return wanted

    def _add(self, found: FeedList, category: str, depth: int) -> int:
        self.notes += found.notes
        before = len(self.feeds)
        for feed in found.feeds:
            resource = resource_url(feed.url)
            if resource in self._listed:
                continue
            if len(self.feeds) >= MOST_FEEDS:
                self.stop(f"only the first {MOST_FEEDS} feeds were read")
                break
            self._listed.add(resource)
            self.feeds.append(_within(category, feed))
        self._want(
            [_within_category(category, each) for each in found.inclusions], depth + 1
        )
        return len(self.feeds) - before

    def _want(self, inclusions: Sequence[Inclusion], depth: int) -> None:
        if inclusions and depth > DEEPEST:
            self._is_cut = True
            self.notes.append(f"lists more than {DEEPEST} levels deep were not read")
            return
        self._waiting.extend(_Wanted(each, depth) for each in inclusions)


def _within(category: str, feed: ListedFeed) -> ListedFeed:
    if feed.category or not category:
        return feed
    return ListedFeed(
        url=feed.url,
        title=feed.title,
        description=feed.description,
        category=category,
    )


def _within_category(category: str, inclusion: Inclusion) -> Inclusion:
    return Inclusion(url=inclusion.url, category=inclusion.category or category)
