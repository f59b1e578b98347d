"""A visit to an SCP site, and its state between visits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from hub.core.sites.site_state import ReadingFacts
from hub.core.sites.walk_steps import (
    MOST_PROBLEMS,
    CommitPages,
    Part,
    ReadPage,
    SiteVisit,
    commit_pages,
    load_pages,
)
from protocols.model import Deletion
from protocols.scp.read.reading_plans import SectionState
from protocols.scp.read.sitemap_reader import SiteFile, head_of_site

_VERSION = 1

LAST_RETRY: Final = 86_400.0
"""The longest wait, in seconds, for collections that could not be used."""


class ScpFile(msgspec.Struct, frozen=True, array_like=True):
    """Like `SiteFile`; times are seconds since 1970."""

    section: str
    url: str
    generated: float
    since: float | None = None
    expires: float | None = None
    pages: int | None = None


class ScpSection(msgspec.Struct, frozen=True, array_like=True):
    """Like `SectionState`, with the last snapshot's URL and validators."""

    reached: float
    snapshot: float | None = None
    is_broken: bool = False
    url: str = ""
    etag: str = ""
    last_modified: str = ""


class ScpState(msgspec.Struct, frozen=True, array_like=True):
    """``pending`` lists what is still to be read, in this order; its first file has
    been read up to ``line``. ``walk`` is the number of the last full reading, or of the
    one under way, which ``is_full``."""

    version: int = _VERSION
    sections: dict[str, ScpSection] = {}
    pending: tuple[ScpFile, ...] = ()
    line: int = 0
    walk: int = 1
    is_full: bool = False
    full_at: float = 0.0  # the end of the last full reading
    was_read: bool = False  # whether any plan was read to its end
    is_suspected: bool = False  # the last full reading lacked too much to be true
    failing: str = ""  # why collections cannot be used: the feed is read instead
    failures: int = 0
    retry_at: float = 0.0
    feed_url: str = ""  # the address of that feed
    doubted: str = ""  # why other files of the sitemap are not read
    missing: str = ""  # which delta is named but missing, until a snapshot has it

    def section(self, name: str) -> SectionState | None:
        found = self.sections.get(name)
        if found is None:
            return None
        return SectionState(
            reached=moment(found.reached),
            snapshot=None if found.snapshot is None else moment(found.snapshot),
            is_broken=found.is_broken,
        )


def file_of(listed: SiteFile) -> ScpFile:
    return ScpFile(
        section=listed.section,
        url=listed.url,
        generated=listed.generated.timestamp(),
        since=None if listed.since is None else listed.since.timestamp(),
        expires=None if listed.expires is None else listed.expires.timestamp(),
        pages=listed.pages,
    )


def read_state(packed: bytes) -> ScpState:
    """The stored state; a new one for none or another version's."""
    try:
        state = msgspec.msgpack.decode(packed, type=ScpState) if packed else ScpState()
    except (msgspec.DecodeError, msgspec.ValidationError):
        return ScpState()
    return state if state.version == _VERSION else ScpState()


def capped_times(state: ScpState, now: float) -> ScpState:
    """The state after the clock went back.

    Nothing was read later than ``now``, and no wait is longer than the longest.
    """
    return msgspec.structs.replace(
        state,
        full_at=min(state.full_at, now),
        retry_at=min(state.retry_at, now + LAST_RETRY),
    )


def pack_state(state: ScpState) -> bytes:
    return msgspec.msgpack.encode(state)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


class ScpSession:
    """One visit; ``state`` is what is saved with the next step."""

    def __init__(self, visit: SiteVisit) -> None:
        self.visit = visit
        self.now = visit.now.timestamp()
        self.state = capped_times(read_state(visit.state), self.now)
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
        yield from commit_pages(
            CommitPages(
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
        """Commit whatever is not committed yet."""
        if self.state != self._saved:
            yield from self.save()

    def save_newer(
        self, read: tuple[ReadPage, ...], *, only_unknown: bool = False
    ) -> Part[None]:
        """Commit pages that are unknown, or newer than what is known of them.

        The others are listed only (SCP, "Delta Application").
        """
        newest: dict[str, ReadPage] = {}
        for page in read:
            other = newest.get(page.entry.key)
            if other is None or page.stamp > other.stamp:
                newest[page.entry.key] = page
        known = yield from load_pages(list(newest))
        pages, listed = [], []
        for key, page in newest.items():
            before = known.get(key)
            is_there = before is not None and not before.is_deleted
            if is_there and (only_unknown or page.stamp <= known[key].stamp):
                listed.append(key)
            else:
                pages.append(page)
        # Until all was read once, nothing in collections is news, whatever a feed has
        # brought before.
        yield from self.save(
            pages=tuple(pages),
            listed=tuple(listed),
            is_quiet=not self.state.was_read and not only_unknown,
        )


def scp_facts(packed: bytes) -> ReadingFacts:
    """The progress of the reading; the cursor is that of the section that lags the
    most."""
    state = read_state(packed)
    reached = [each.reached for each in state.sections.values()]
    return ReadingFacts(
        phase=_phase(state),
        cursor=_moment(min(reached)).isoformat() if reached else "",
        walked_at=_moment(state.full_at) if state.full_at else None,
    )


def _phase(state: ScpState) -> str:
    if state.failing:
        return "reading the site's feed instead of its collections"
    if state.pending:
        where = f", from line {state.line + 1}" if state.line else ""
        return f"reading {state.pending[0].url}{where}"
    return ""


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
