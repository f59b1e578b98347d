"""One visit under way: its state, and what it has to say."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from hub.core.sites.scp.state import held_back, pack_state, read_state
from hub.core.sites.steps import (
    MOST_PROBLEMS,
    Part,
    ReadPage,
    Save,
    SiteVisit,
    recall,
    save,
)
from protocols.model import Deletion
from protocols.scp.read.sitemaps import head_of_site


class Session:
    """``state`` is what is saved with the next step."""

    def __init__(self, visit: SiteVisit) -> None:
        self.visit = visit
        self.now = visit.now.timestamp()
        self.state = held_back(read_state(visit.state), self.now)
        self.problems: list[str] = []
        self.is_read = visit.is_read
        self.head = None if visit.state else head_of_site(visit.front.url)
        self._saved = self.state

    def set(self, **values: Any) -> None:
        """Change the state."""
        self.state = replace(self.state, **values)

    def note(self, problem: str) -> None:
        if len(self.problems) < MOST_PROBLEMS and problem not in self.problems:
            self.problems.append(problem)

    def save(
        self,
        *,
        pages: tuple[ReadPage, ...] = (),
        listed: tuple[str, ...] = (),
        deletions: tuple[Deletion, ...] = (),
        is_read: bool = False,
        is_quiet: bool = False,
    ) -> Part[None]:
        self._saved = self.state
        head, self.head = self.head, None
        self.is_read = self.is_read or is_read
        yield from save(
            Save(
                state=pack_state(self.state),
                walk=self.state.walk,
                pages=pages,
                listed=listed,
                deletions=deletions,
                head=head,
                is_read=is_read,
                is_quiet=is_quiet,
            )
        )

    def save_changes(self) -> Part[None]:
        """Whatever is not saved yet."""
        if self.state != self._saved:
            yield from self.save()

    def save_newer(
        self, read: tuple[ReadPage, ...], *, only_unknown: bool = False
    ) -> Part[None]:
        """Pages that are newer than what is known of them, or not known; the others
        were listed (SCP, "Delta Application")."""
        newest: dict[str, ReadPage] = {}
        for page in read:
            other = newest.get(page.entry.key)
            if other is None or page.stamp > other.stamp:
                newest[page.entry.key] = page
        known = yield from recall(list(newest))
        pages, listed = [], []
        for key, page in newest.items():
            before = known.get(key)
            is_there = before is not None and not before.is_deleted
            if is_there and (only_unknown or page.stamp <= known[key].stamp):
                listed.append(key)
            else:
                pages.append(page)
        # Before all was read once, what a feed has brought meanwhile is no measure.
        yield from self.save(
            pages=tuple(pages),
            listed=tuple(listed),
            is_quiet=not self.state.was_read and not only_unknown,
        )
