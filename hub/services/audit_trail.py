"""The audit trail: who did what, written beside the requests and read by operators.

A request does not wait for its record. The record is written right after the request,
with all that came meanwhile, and readers always see it. While storage fails, records
wait for it to work again, up to a bound.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Final

import structlog
from msgspec.structs import replace

from hub.limits.token_bucket import Rate, TokenBucket
from hub.runtime.background import wait_for
from hub.runtime.clock import Clock
from storage.contract import Storage
from storage.errors import StorageError
from storage.records import (
    ANONYMOUS,
    AuditFilter,
    AuditPage,
    AuditRecord,
    AuditTarget,
    FeedId,
    PlanId,
    SubscriptionId,
    TokenId,
)

MOST_WAITING: Final = 10_000
AT_ONCE: Final = 500
"""Records in one transaction."""
RETRY_SECONDS: Final = 5.0
FAILED_LOGINS: Final = Rate(per_second=20 / 3_600, burst=20.0)
"""How many failed logins are recorded; the next record tells how many were left out."""
_CREDENTIALS: Final = re.compile(r"(?<=://)[^\s/@]*@")

log = structlog.get_logger()


class AuditTrail:
    """Writes and reads the audit trail. `run` is its background part."""

    def __init__(
        self, storage: Storage, clock: Clock, *, most_waiting: int = MOST_WAITING
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._most_waiting = most_waiting
        self._waiting: deque[AuditRecord] = deque()
        self._has_news = asyncio.Event()
        self._writing = asyncio.Lock()
        self._written: set[asyncio.Future[bool]] = set()
        self._strangers = TokenBucket(FAILED_LOGINS, clock.monotonic())
        self._left_out = 0
        self._names: Mapping[AuditTarget, Callable[[int], Awaitable[str]]] = {
            AuditTarget.FEED: self._feed,
            AuditTarget.SUBSCRIPTION: self._subscription,
            AuditTarget.TOKEN: self._token,
            AuditTarget.PLAN: self._plan,
        }

    def note(self, record: AuditRecord) -> None:
        """Queue a record to be written soon; returns at once, and never fails.

        Only as many failed logins are recorded as `FAILED_LOGINS` allows.
        """
        if record.account.id == ANONYMOUS:
            if self._strangers.take(self._clock.monotonic()):
                self._left_out += 1
                return
            record = self._with_left_out(record)
        if len(self._waiting) >= self._most_waiting:
            lost = self._waiting.popleft()
            log.error(
                "audit_record_lost",
                hint="storage has failed for too long",
                account=lost.account.name,
                operation=lost.operation,
                target_id=lost.target_id,
                status=lost.status,
            )
        self._waiting.append(record)
        self._has_news.set()

    def _with_left_out(self, record: AuditRecord) -> AuditRecord:
        count, self._left_out = self._left_out, 0
        if not count:
            return record
        return replace(record, detail=f"{count:,} more before were not noted")

    @property
    def waiting(self) -> int:
        """How many records are not written yet."""
        return len(self._waiting)

    async def run(self) -> None:
        """Write queued records, until cancelled; then write the rest."""
        try:
            while True:
                await self._has_news.wait()
                self._has_news.clear()
                if not await self.write():
                    await wait_for(asyncio.Event(), RETRY_SECONDS)
                    self._has_news.set()
        finally:
            await asyncio.gather(*self._written)
            await self.write()

    async def write(self) -> bool:
        """Write all queued records; returns whether that succeeded."""
        async with self._writing:
            try:
                while self._waiting:
                    await self._write_part()
            except StorageError as error:
                log.warning(
                    "audit_not_written", waiting=len(self._waiting), error=str(error)
                )
                return False
        return True

    async def _write_part(self) -> None:
        count = min(AT_ONCE, len(self._waiting))
        part = [self._waiting.popleft() for _ in range(count)]
        try:
            part = [await self._named(each) for each in part]
        except BaseException:  # nothing was written
            self._waiting.extendleft(reversed(part))
            raise
        try:
            await self._storage.audit.add(part)
        except StorageError:
            self._waiting.extendleft(reversed(part))
            raise

    async def page(
        self, wanted: AuditFilter, *, before: tuple[datetime, int] | None, limit: int
    ) -> AuditPage:
        """Records, including those of requests that were answered a moment ago."""
        if self._waiting:  # it goes on if the reader goes away
            writing = asyncio.ensure_future(self.write())
            self._written.add(writing)
            writing.add_done_callback(self._written.discard)
            await asyncio.shield(writing)
        return await self._storage.audit.page(wanted, before=before, limit=limit)

    async def _named(self, record: AuditRecord) -> AuditRecord:
        """The record with the name of its target, if only the target's id was
        recorded."""
        find = self._names.get(record.target) if record.target else None
        name = record.target_name
        if find is not None and record.target_id is not None and not name:
            name = await find(record.target_id)
        return replace(record, target_name=_CREDENTIALS.sub("", name))

    async def _feed(self, id: int) -> str:
        feed = await self._storage.feeds.get(FeedId(id))
        return "" if feed is None else feed.url

    async def _subscription(self, id: int) -> str:
        found = await self._storage.subscriptions.get(SubscriptionId(id))
        return "" if found is None else f"{found.callback} to {found.topic}"

    async def _token(self, id: int) -> str:
        found = await self._storage.tokens.page(after=TokenId(id - 1), limit=1)
        names = [each.account.name for each in found if each.id == id]
        return f"of {names[0]}" if names else ""

    async def _plan(self, id: int) -> str:
        plan = await self._storage.plans.get(PlanId(id))
        if plan is None:
            return ""
        return f"{plan.action.replace('_', ' ')} {plan.total:,} {plan.kind}"
