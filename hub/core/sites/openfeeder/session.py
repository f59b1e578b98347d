"""One visit under way: its state, and the answers it has got."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any, Final

from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.core.sites.openfeeder.state import held_back, pack_state, read_state
from hub.core.sites.steps import (
    MOST_PROBLEMS,
    Failed,
    Part,
    ReadPage,
    Save,
    SiteVisit,
    ask,
    save,
)
from protocols.errors import FeedError
from protocols.model import Deletion, Feed
from protocols.openfeeder.read.documents import (
    Changes,
    Index,
    Listed,
    Page,
    read_listing,
    read_page,
)
from protocols.openfeeder.read.entries import content_of, entry_of, is_of, key_of
from protocols.openfeeder.read.places import page_url

STEP: Final = 20
"""Pages that are read before what they say is saved."""
MOST_FAILURES: Final = 3
"""Pages in a row that cannot be read, before the site is taken to fail."""
GONE: Final = (404, 410)
_GENERAL: Final = (0, 401, 403, 429, *range(501, 600))
"""Statuses that say nothing of one page alone. There are pages that always answer 500,
though all others can be read."""


class Session:
    """``state`` is what is saved with the next step."""

    def __init__(self, visit: SiteVisit) -> None:
        self.visit = visit
        self.now = visit.now.timestamp()
        self.state = held_back(read_state(visit.state), self.now)
        self.head: Feed | None = None
        self.answer: Fetched | None = None  # the last that says how fresh the site is
        self.problems: list[str] = []
        self._saved = self.state
        self._failures = 0
        self._pages: list[ReadPage] = []  # and deletions, that are not saved yet
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
        """With all that was read since the last time."""
        head, self.head = self.head, None
        pages, self._pages = tuple(self._pages), []
        gone, self._deletions = tuple(self._deletions), []
        self._saved = self.state
        yield from save(
            Save(
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
        """Whatever is not saved yet."""
        if self.state != self._saved or self.head is not None:
            yield from self.save()

    def save_reached(self) -> Part[None]:
        """What was read, and how far, when the visit ends in the middle of a step."""
        is_further = self.state.reached != self._saved.reached
        if self._pages or self._deletions or is_further:
            yield from self.save()

    # --- answers ---

    def check(self, fetched: Fetched) -> None:
        """Raises `Failed` for an answer that is of no use."""
        if fetched.error:
            raise Failed(fetched, fetched.error)
        self.answer = fetched

    def listing(self, fetched: Fetched) -> Index | Changes:
        """Raises `Failed`."""
        self.check(fetched)
        try:
            listing = read_listing(fetched.body, self.state.site_url)
        except FeedError as error:
            raise Failed(fetched, str(error)) from None
        for problem in listing.problems:
            self.note(f"{fetched.url}: {problem}")
        return listing

    def read_pages(
        self, items: Iterable[Listed], deleted: Set[str] = frozenset()
    ) -> Part[bool]:
        """Whether all could be; those that could not are noted. What was read is saved
        with the next step, or when the visit ends before. Keys of what was ``deleted``
        stay so unless there is a page."""
        is_whole = True
        for item in items:
            fetched = yield from self.ask_page(item)
            if fetched.status in GONE:  # such as one that only a query finds
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

    def ask_page(self, item: Listed) -> Part[Fetched]:
        return (yield from ask(page_url(self.state.endpoint, item.reference)))

    def page(self, fetched: Fetched, item: Listed) -> Page | None:
        """None for one that cannot be read. Raises `Failed` where others cannot be
        either."""
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
            raise Failed(fetched, reason)
        self.note(f"{item.reference}: {reason}")
        return None

    def take(self, item: Listed, page: Page | None) -> None:
        """A page was read. ``page`` None: all that is known of it is what lists it."""
        if page is not None and page.missing:
            self.note(f"{item.reference}: {page.missing} chunks were not sent")
        entry = entry_of(item, page, self.state.language)
        self._pages.append(
            ReadPage(
                entry=entry,
                reference=item.reference,
                stamp=item.digest,
                content=content_of(entry, page),
            )
        )
