"""A visit to an OpenFeeder site, and its state between visits."""

from __future__ import annotations

from collections.abc import Iterable, Set
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.core.sites.site_state import ReadingFacts
from hub.core.sites.walk_steps import (
    MOST_PROBLEMS,
    CommitPages,
    Part,
    ReadPage,
    SiteVisit,
    VisitFailed,
    commit_pages,
    get,
)
from protocols.model import Deletion, Feed
from protocols.openfeeder.read.site_answers import (
    ContentPage,
    DiscoveryDocument,
    ListedChanges,
    ListedIndex,
    ListedItem,
    read_listing,
    read_page,
)
from protocols.openfeeder.read.site_entries import content_of, entry_of, is_of, key_of
from protocols.openfeeder.read.site_urls import page_url
from protocols.protocol_errors import FeedError

_VERSION = 1


class IndexMark(msgspec.Struct, frozen=True, array_like=True):
    """Values that show whether a page of the index has changed."""

    etag: str = ""
    last_modified: str = ""
    digest: int = 0  # of its bytes


class OpenFeederState(msgspec.Struct, frozen=True, array_like=True):
    """Times are seconds since 1970. ``walk`` is the number of the last full walk, or of
    the one under way, which has come to ``page`` of the index (0: there is none)."""

    version: int = _VERSION
    endpoint: str = ""
    site_url: str = ""
    name: str = ""
    language: str = ""
    description: str = ""
    walk: int = 0
    page: int = 0
    total_pages: int = 0
    is_thorough: bool = False  # the walk under way reads every page anew
    is_doubtful: bool = False  # the walk under way has not read all there is
    confirming: bool = False  # the index was walked: what it lacks is being confirmed
    confirmed: str = ""  # the last key that was confirmed
    is_suspected: bool = False  # the last walk lacked too much to be believed
    began_at: float = 0.0  # when the walk under way began
    walked_at: float = 0.0  # the end of the last full walk
    reread_at: float = 0.0  # the end of the last walk that read every page
    marks: tuple[IndexMark, ...] = ()
    cursor: str = ""  # of the next differential request
    next_cursor: str = ""  # used once all of the answer under way is read
    read_through: str = ""  # the last key that was read
    gives_changes: bool = True  # whether changes are reported, as far as is known
    tracks_deletions: bool = False
    checked: int = 0  # marks found unchanged by the comparison under way
    lacks_some: bool = False  # a page of the changes under way could not be read
    misses: int = 0  # consecutive answers with such a page

    @property
    def discovery(self) -> DiscoveryDocument:
        return DiscoveryDocument(
            endpoint=self.endpoint,
            site_url=self.site_url,
            name=self.name,
            language=self.language,
            description=self.description,
        )

    @property
    def reached(self) -> tuple[int, str, str]:
        """How far everything that is read step by step has come."""
        return self.checked, self.read_through, self.confirmed

    def found(self, discovery: DiscoveryDocument) -> OpenFeederState:
        """The state with what the discovery document says. Another endpoint is another
        index."""
        marks = self.marks if discovery.endpoint == self.endpoint else ()
        return msgspec.structs.replace(
            self,
            endpoint=discovery.endpoint,
            site_url=discovery.site_url,
            name=discovery.name,
            language=discovery.language,
            description=discovery.description,
            marks=marks,
            checked=self.checked if marks else 0,
        )


def read_state(packed: bytes) -> OpenFeederState:
    """The stored state; a new one for none, a damaged one or another version's."""
    if not packed:
        return OpenFeederState()
    try:
        state = msgspec.msgpack.decode(packed, type=OpenFeederState)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return OpenFeederState()
    return state if state.version == _VERSION else OpenFeederState()


def capped_times(state: OpenFeederState, now: float) -> OpenFeederState:
    """The state after the clock went back: nothing was read later than ``now``."""
    return msgspec.structs.replace(
        state,
        began_at=min(state.began_at, now),
        walked_at=min(state.walked_at, now),
        reread_at=min(state.reread_at, now),
    )


def pack_state(state: OpenFeederState) -> bytes:
    return msgspec.msgpack.encode(state)


STEP: Final = 20
"""Pages that are read before their content is saved."""
MOST_FAILURES: Final = 3
"""Unreadable pages in a row after which the whole site counts as failing."""
GONE: Final = (404, 410)
_GENERAL: Final = (0, 401, 403, 429, *range(501, 600))
"""Statuses that concern more than one page. 500 is not among them: some pages always
answer 500, though all others can be read."""


class OpenFeederSession:
    """One visit; ``state`` is what is saved with the next step."""

    def __init__(self, visit: SiteVisit) -> None:
        self.visit = visit
        self.now = visit.now.timestamp()
        self.state = capped_times(read_state(visit.state), self.now)
        self.head: Feed | None = None
        self.answer: Fetched | None = None  # the last that says how fresh the site is
        self.problems: list[str] = []
        self._saved = self.state
        self._failures = 0
        self._pages: list[ReadPage] = []  # not saved yet, like the deletions
        self._deletions: list[Deletion] = []

    def set(self, **values: Any) -> None:
        """Change the state."""
        self.state = replace(self.state, **values)

    def note(self, problem: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    # --- saving ---

    def save(
        self,
        *,
        listed: tuple[str, ...] = (),
        deletions: tuple[Deletion, ...] = (),
        is_read: bool = False,
    ) -> Part[None]:
        """Commit all that was read since the last time."""
        head, self.head = self.head, None
        pages, self._pages = tuple(self._pages), []
        gone, self._deletions = tuple(self._deletions), []
        self._saved = self.state
        yield from commit_pages(
            CommitPages(
                state=pack_state(self.state),
                walk=self.state.walk,
                pages=pages,
                listed=listed,
                deletions=(*gone, *deletions),
                head=head,
                is_read=is_read,
            )
        )

    def save_changes(self) -> Part[None]:
        """Commit whatever is not committed yet."""
        if self.state != self._saved or self.head is not None:
            yield from self.save()

    def save_reached(self) -> Part[None]:
        """Save what was read, and how far, when the visit ends in the middle of a
        step."""
        is_further = self.state.reached != self._saved.reached
        if self._pages or self._deletions or is_further:
            yield from self.save()

    # --- answers ---

    def check(self, fetched: Fetched) -> None:
        """Raise `VisitFailed` for an answer that cannot be used."""
        if fetched.error:
            raise VisitFailed(fetched, fetched.error)
        self.answer = fetched

    def listing(self, fetched: Fetched) -> ListedIndex | ListedChanges:
        """Read a listing. Raises `VisitFailed`."""
        self.check(fetched)
        try:
            listing = read_listing(fetched.body, self.state.site_url)
        except FeedError as error:
            raise VisitFailed(fetched, str(error)) from None
        for problem in listing.problems:
            self.note(f"{fetched.url}: {problem}")
        return listing

    def read_pages(
        self, items: Iterable[ListedItem], deleted: Set[str] = frozenset()
    ) -> Part[bool]:
        """Read pages; returns whether all could be read. Unreadable ones are noted.

        What was read is saved with the next step, or at the end of the visit. Keys in
        ``deleted`` stay deleted unless there is a page.
        """
        is_whole = True
        for item in items:
            fetched = yield from self.ask_page(item)
            if fetched.status in GONE:  # such as a page that only a query finds
                if key_of(item.url) not in deleted:
                    self.take(item, None)
                continue
            page = self.page(fetched, item)
            if page is None:
                is_whole = False
            else:
                self.take(item, page if is_of(page, item) else None)
        return is_whole

    def take_deletion(self, deletion: Deletion) -> None:
        self._deletions.append(deletion)

    def ask_page(self, item: ListedItem) -> Part[Fetched]:
        return (yield from get(page_url(self.state.endpoint, item.reference)))

    def page(self, fetched: Fetched, item: ListedItem) -> ContentPage | None:
        """Read a page; None if that fails. Raises `VisitFailed` if all would fail."""
        try:
            reason = fetched.error
            page = None if reason else read_page(fetched.body, self.state.site_url)
        except FeedError as error:
            page, reason = None, str(error)
        if page is not None:
            self._failures = 0
            return page
        self._failures += 1
        if fetched.status in _GENERAL or self._failures >= MOST_FAILURES:
            raise VisitFailed(fetched, reason)
        self.note(f"{item.reference}: {reason}")
        return None

    def take(self, item: ListedItem, page: ContentPage | None) -> None:
        """Take a page that was read; ``page`` None: only its listed item is known."""
        if page is not None and page.missing:
            self.note(f"{item.reference}: {page.missing} chunks are missing")
        entry = entry_of(item, page, self.state.language)
        self._pages.append(
            ReadPage(
                entry=entry,
                reference=item.reference,
                stamp=item.digest,
                content=content_of(entry, page),
            )
        )


def openfeeder_facts(packed: bytes) -> ReadingFacts:
    state = read_state(packed)
    return ReadingFacts(
        phase=_phase(state),
        cursor=state.cursor if state.gives_changes else "",
        walked_at=_moment(state.walked_at),
        reread_at=_moment(state.reread_at),
    )


def _phase(state: OpenFeederState) -> str:
    if state.page:
        return f"walking the index, at page {state.page}"
    if state.confirming:
        return "requesting pages that are missing in the index"
    if state.read_through:
        return "reading what has changed"
    return ""


def _moment(seconds: float) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
