"""Lists of feeds that an operator gives: checked first, then added once confirmed.

An import says how many feeds are new, known and refused, and why. It is kept in memory
only: after a restart the list must be given again, and feeds that are known by then
stay as they are.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

import structlog

from hub.runtime.background import work_when_woken
from hub.runtime.clock import Clock
from hub.services.feed_registration import FeedService
from hub.services.feed_requests import (
    LONGEST_CATEGORY,
    AddFeed,
    ImportedFeed,
    ImportOutcome,
    check_name,
)
from hub.services.planned_actions import FAULT
from hub.services.service_errors import Conflict, TooManyWaiting
from protocols.opml import FeedList, read_outlines
from protocols.protocol_errors import FeedError, InvalidValue
from storage.errors import NotFound, StorageError
from storage.records import Account

PART: Final = 100
"""Feeds that are checked or added before the next import has its turn."""
SHOWN: Final = 50
"""How many refused feeds, and how many new ones, are shown."""
MOST_KEPT: Final = 8
RETRY_SECONDS: Final = 5.0
"""Seconds between tries while storage fails."""

log = structlog.get_logger()


class ImportState(StrEnum):
    CHECKING = "checking"  # nothing is added yet
    CHECKED = "checked"  # waits to be confirmed
    ADDING = "adding"
    DONE = "done"
    STOPPED = "stopped"


_AT_WORK: Final = frozenset({ImportState.CHECKING, ImportState.ADDING})
_OVER: Final = frozenset({ImportState.DONE, ImportState.STOPPED})


@dataclass(slots=True, kw_only=True)
class FeedImport:
    """One list. ``found`` counts what its check found, ``came`` the results of adding.

    ``place``: how many feeds were handled: of all feeds while they are checked, of the
    ``new`` ones while they are added. ``refused``: the first refused feeds, with
    reasons.
    """

    id: int
    account: Account
    made_at: datetime
    wanted: tuple[AddFeed, ...]
    notes: tuple[str, ...] = ()
    state: ImportState = ImportState.CHECKING
    place: int = 0
    new: list[AddFeed] = field(default_factory=list)
    found: Counter[ImportOutcome] = field(default_factory=Counter)
    came: Counter[ImportOutcome] = field(default_factory=Counter)
    refused: list[ImportedFeed] = field(default_factory=list)
    finished_at: datetime | None = None

    @property
    def is_at_work(self) -> bool:
        return self.state in _AT_WORK

    @property
    def is_over(self) -> bool:
        return self.state in _OVER

    @property
    def asked(self) -> Sequence[AddFeed]:
        """The feeds that the import handles in its state: all of them while it checks,
        then the new ones."""
        return self.wanted if self.state is ImportState.CHECKING else self.new


class FeedImportService:
    def __init__(
        self, feeds: FeedService, clock: Clock, retry_seconds: float = RETRY_SECONDS
    ) -> None:
        self._feeds = feeds
        self._clock = clock
        self._retry_seconds = retry_seconds
        self._kept: dict[int, FeedImport] = {}
        self._last = 0
        self._woken = asyncio.Event()

    async def make(
        self, account: Account, document: bytes, *, category: str, private: bool
    ) -> FeedImport:
        """Read a list in OPML, and begin to check its feeds.

        ``category``: for feeds outside folders. Raises `InvalidValue` and
        `TooManyWaiting`.
        """
        check_name("category", category, LONGEST_CATEGORY)
        listed = await asyncio.to_thread(_read, document)
        self._make_room()
        self._last += 1
        made = FeedImport(
            id=self._last,
            account=account,
            made_at=self._clock.now(),
            wanted=_requests(listed, category, private=private),
            notes=_notes(listed),
        )
        self._kept[made.id] = made
        self._woken.set()
        return made

    def _make_room(self) -> None:
        """Forget the oldest import that is over, or else the oldest that was not
        confirmed."""
        if len(self._kept) < MOST_KEPT:
            return
        kept = self._kept.values()
        found = next((each.id for each in kept if not each.is_at_work), None)
        if found is None:
            raise TooManyWaiting(
                f"{MOST_KEPT} lists are being imported; wait, or stop one"
            )
        del self._kept[found]

    def get(self, number: int) -> FeedImport:
        """An import. Raises `NotFound`, also for one from before a restart."""
        if number not in self._kept:
            raise NotFound("import", number)
        return self._kept[number]

    def latest(self) -> list[FeedImport]:
        return [*self._kept.values()][::-1]

    def confirm(self, number: int) -> FeedImport:
        """Begin to add the new feeds. Raises `NotFound` and `Conflict`."""
        found = self.get(number)
        if found.state is not ImportState.CHECKED:
            raise Conflict(f"import {number} is {found.state}, and cannot be confirmed")
        found.state, found.place = ImportState.ADDING, 0
        self._woken.set()
        log.info("import_confirmed", account=found.account.name, feeds=len(found.new))
        return found

    def stop(self, number: int) -> FeedImport:
        """Add no more feeds; those added stay. Raises `NotFound` and `Conflict`."""
        found = self.get(number)
        if found.is_over:
            raise Conflict(f"import {number} is {found.state} already")
        self._finish(found, ImportState.STOPPED)
        return found

    def _finish(self, ended: FeedImport, state: ImportState) -> None:
        ended.state, ended.finished_at = state, self._clock.now()
        log.info(
            "import_ended",
            account=ended.account.name,
            state=state,
            added=ended.came[ImportOutcome.ADDED],
            refused=ended.came[ImportOutcome.REFUSED],
        )

    # --- at work ---

    async def run(self) -> None:
        """Check and add feeds of all imports, until cancelled."""
        await work_when_woken(
            self._woken,
            self._work,
            failure="imports_not_worked_on",
            retry_seconds=self._retry_seconds,
        )

    async def _work(self) -> bool:
        """Handle a part of each import; False if no import is at work.

        A fault of one import stops only that import. Raises `StorageError`.
        """
        working = [each for each in self._kept.values() if each.is_at_work]
        for each in working:
            try:
                await self._work_on(each)
            except StorageError:
                raise
            except Exception:
                log.exception("import_failed", number=each.id)
                each.notes = (*each.notes, FAULT)
                self._finish(each, ImportState.STOPPED)
        return bool(working)

    async def _work_on(self, each: FeedImport) -> None:
        state, asked = each.state, each.asked
        part = asked[each.place : each.place + PART]
        is_dry = state is ImportState.CHECKING
        outcomes = await self._feeds.add_all(part, is_dry=is_dry, keeps_known=True)
        counted = each.found if is_dry else each.came
        for request, imported in zip(part, outcomes, strict=True):
            counted[imported.outcome] += 1
            if imported.outcome is ImportOutcome.ADDABLE:
                each.new.append(request)
            elif imported.reason and len(each.refused) < SHOWN:
                each.refused.append(imported)
        each.place += len(part)
        if each.state is not state or each.place < len(
            asked
        ):  # it was stopped meanwhile
            return
        if is_dry:
            each.state, each.place = ImportState.CHECKED, 0
        else:
            self._finish(each, ImportState.DONE)


def _read(document: bytes) -> FeedList:
    """The list in a document. Raises `InvalidValue`."""
    try:
        listed = read_outlines(document, "")
    except FeedError as error:
        raise InvalidValue("list", f"a list of feeds in OPML: {error}") from None
    if not listed.feeds:
        raise InvalidValue("list", "a list with feeds: this one has none")
    return listed


def _requests(listed: FeedList, category: str, *, private: bool) -> tuple[AddFeed, ...]:
    return tuple(
        AddFeed(
            url=each.url,
            title=each.title,
            description=each.description,
            category=each.category or category,
            private=private,
            wait=0,
        )
        for each in listed.feeds
    )


def _notes(listed: FeedList) -> tuple[str, ...]:
    number = len(listed.inclusions)
    if not number:
        return listed.notes
    others = "another list" if number == 1 else f"{number:,} other lists"
    note = f"it includes {others}, which `fanfare opml import` reads"
    return (*listed.notes, note)
