"""The steps that a walk over a site requests, one after the other.

A walk is a generator: it yields a step, is sent its result, and returns how it ended.
It neither fetches nor stores, so everything a server may do can be tested without one.
It is not told when it is stopped: all it has to remember is in the state of its last
`CommitPages`, from which the next walk continues.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias, TypeVar

from hub.core.fetched import Fetched
from protocols.model import Deletion, Entry, Feed, ParsedFeed
from protocols.protocol_errors import FeedError
from protocols.scp.read.collection_heads import HeadRules, SiteHead
from protocols.scp.read.unpacking import ChecksumRule
from storage.records import SiteTally, StoredSitePage

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Get:
    """One GET. Answered with `Fetched`, also if it fails."""

    url: str
    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True, slots=True)
class LoadPages:
    """Which of these pages are known: answered with them, by key."""

    keys: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindUnlisted:
    """Pages that were last listed before a walk: answered with up to ``limit`` in a
    fixed order, which begins behind the key ``after``."""

    walk: int
    after: str = ""
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Count:
    """The number of pages: answered with a `SiteTally` for a walk."""

    walk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One GET of a collection, which is kept aside and read to its end before anything
    of it is believed. Answered with `Downloaded`."""

    url: str
    rules: HeadRules
    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloaded:
    """The result of a download; ``fetched`` has no body.

    ``head`` is None without a usable file, and ``error`` says what is wrong with a file
    that came. ``lines``: how many pages it has; ``unknown``: of how many not even the
    URL could be read.
    """

    fetched: Fetched
    head: SiteHead | None = None
    error: FeedError | None = None
    lines: int = 0
    unknown: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadCollection:
    """The next pages of the last collection that was downloaded, after ``line``:
    answered with `CollectionPages`; none at its end."""

    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionPages:
    """``line`` is that of the last page; ``error`` says why no pages can be read.
    ``warnings`` are about what was skipped so far."""

    pages: tuple[ReadPage, ...]
    line: int
    error: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parse:
    """An answer to be parsed: answered with the feed, or the error if it is none."""

    fetched: Fetched


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPage:
    """A page as it is now. ``stamp``: the source's own number for its state.

    ``content`` is a hash of 63 bits of the page's content if the entry alone does not
    tell it; 0: the entry does.
    """

    entry: Entry
    reference: str
    stamp: int = 0
    content: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPages:
    """A step is done: what it found is committed, and with it the walk's state.

    ``pages`` are compared with what is stored: they may be new, changed or the same.
    ``listed`` are keys of pages that were met in ``walk`` and not read. ``deletions``
    are believed; those of unknown pages are ignored. ``head`` is given when it has
    changed. ``is_read``: the site has now been read whole once, and from now on new
    pages are news. ``is_quiet``: nothing of this step is news to anybody.
    """

    state: bytes
    walk: int = 0
    pages: tuple[ReadPage, ...] = ()
    listed: tuple[str, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    head: Feed | None = None
    is_read: bool = False
    is_quiet: bool = False


Want: TypeAlias = (
    Get
    | Download
    | ReadCollection
    | Parse
    | LoadPages
    | FindUnlisted
    | Count
    | CommitPages
)
WalkReply: TypeAlias = (
    Fetched
    | Downloaded
    | CollectionPages
    | ParsedFeed
    | FeedError
    | Mapping[str, StoredSitePage]
    | Sequence[StoredSitePage]
    | SiteTally
    | bool
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkEnded:
    """How a walk ended. ``error`` says why it failed, "" if it did not.

    ``answer``: the one that the status describes, which is the failed one, or the one
    that shows best how fresh the site is; None: the front document's. ``problems`` are
    for people.
    """

    error: str = ""
    answer: Fetched | None = None
    problems: tuple[str, ...] = ()


Walk: TypeAlias = Generator[Want, WalkReply, WalkEnded]
"""The type of a walk; ``next`` returns its first step."""
Part: TypeAlias = Generator[Want, WalkReply, Value]
"""Part of a walk: used with ``yield from``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteVisit:
    """What a walk starts from.

    ``front`` is the answer at the feed's own URL; its body is b"" if it has not changed
    since ``state`` was saved. ``state`` is the walk's own, b"" for a first one.
    """

    url: str
    front: Fetched
    state: bytes
    now: datetime
    is_read: bool  # whether the site was read whole before
    walk_every: float = 21_600.0  # as in `hub.core.sites.site_bounds.SiteBounds`
    reread_every: float = 86_400.0
    checksum: ChecksumRule = ChecksumRule.LENIENT  # of collections


WalkOf: TypeAlias = Callable[[SiteVisit], Walk]


MOST_PROBLEMS: Final = 20
"""The most problems noted in one visit; its status shows fewer."""


class VisitFailed(Exception):
    """An answer that ends the visit; what was to be read is tried again."""

    def __init__(self, answer: Fetched, reason: str) -> None:
        super().__init__(reason)
        self.answer = answer
        self.error = f"{answer.url}: {reason}"


class VisitExhausted(Exception):
    """The visit's bounds are used up: the walk ends here, and goes on in the next one.

    Raised inside a walk, which may still `CommitPages` once, or let the error pass.
    """


def get(url: str, *, etag: str = "", last_modified: str = "") -> Part[Fetched]:
    """Request one GET. Raises `VisitExhausted` instead if no more requests are
    allowed."""
    reply = yield Get(url=url, etag=etag, last_modified=last_modified)
    if not isinstance(reply, Fetched):
        raise VisitExhausted
    return reply


def download(want: Download) -> Part[Downloaded]:
    """Request a download. Raises `VisitExhausted` instead if no more requests are
    allowed."""
    reply = yield want
    if not isinstance(reply, Downloaded):
        raise VisitExhausted
    return reply


def read_collection(after: int) -> Part[CollectionPages]:
    """Ask for the next pages of a collection. Raises `VisitExhausted` instead of
    returning pages."""
    reply = yield ReadCollection(after)
    if not isinstance(reply, CollectionPages):
        raise VisitExhausted
    return reply


def parse(fetched: Fetched) -> Part[ParsedFeed | FeedError]:
    reply = yield Parse(fetched)
    assert isinstance(reply, ParsedFeed | FeedError)  # noqa: S101 - as above
    return reply


def load_pages(keys: Sequence[str]) -> Part[Mapping[str, StoredSitePage]]:
    reply = yield LoadPages(keys)
    assert isinstance(reply, Mapping)  # noqa: S101 - what `LoadPages` is answered with
    return reply


def find_unlisted(
    walk: int, *, after: str, limit: int
) -> Part[Sequence[StoredSitePage]]:
    reply = yield FindUnlisted(walk=walk, after=after, limit=limit)
    assert isinstance(reply, Sequence)  # noqa: S101 - as above
    return reply


def count(walk: int) -> Part[SiteTally]:
    reply = yield Count(walk)
    assert isinstance(reply, SiteTally)  # noqa: S101 - as above
    return reply


def commit_pages(step: CommitPages) -> Part[None]:
    """Commit a step. Raises `VisitExhausted` after the commit if no more are
    allowed."""
    goes_on = yield step
    if not goes_on:
        raise VisitExhausted
