"""The verifier: processes requests to the open hub when their turn comes.

Requests wait in storage, so that none is lost when the hub stops. Nothing here grows
with their number, and even if one callback host has many, others get their turn.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import msgspec
import structlog
from msgspec.structs import replace

from hub.runtime.background import wait_for
from hub.runtime.clock import Clock
from hub.runtime.work_leases import WorkClaims
from hub.websub.callback_challenge import CallbackChallenges
from hub.websub.intent_verification import Admission, IntentVerification
from hub.websub.topic_admission import TopicBusy
from protocols.domains import zone_of
from protocols.urls import host_name, normal_url
from storage.contract import Storage
from storage.errors import StorageError
from storage.records import Verification, VerificationMode, WorkKind

AT_ONCE = 256
PAGE = 512
PER_HOST = 64
POLL_SECONDS = 1.0
SHORTEST_PAUSE = 0.02
LONGEST_PAUSE = 0.1
"""Seconds between two looks for due requests, however many come in."""
PAUSE_SHARE = 5
"""A pause lasts so many times as long as the look before it, within the bounds."""
HOST_PAUSE = 1.0
OF_ZONE_AT_ONCE = 16
"""Requests under way to all hosts of one owner, whatever their names: see
`protocols.domains`."""
CROWD_PAUSE = 5.0
"""Seconds before a request is tried again whose zone has too many under way, unless one
of these ends sooner."""
FAULT_PAUSE = 10.0
"""Seconds before a request is tried again after a failure of storage or a fault."""

log = structlog.get_logger()


class _Pause(msgspec.Struct, frozen=True):
    """How long a request waits: until ``until`` (monotonic), or until the zone
    ``crowd`` has room; "": no zone."""

    until: float
    crowd: str


class VerificationLoop:
    """Processes requests that are due, one a second for each callback host."""

    def __init__(
        self,
        storage: Storage,
        intents: IntentVerification,
        questions: CallbackChallenges,
        clock: Clock,
        claims: WorkClaims,
        at_once: int = AT_ONCE,
    ) -> None:
        self._verifications = storage.verifications
        self._claims = claims
        self._intents = intents
        self._questions = questions
        self._clock = clock
        self._slots = asyncio.Semaphore(at_once)
        self._under_way: dict[tuple[str, str], int] = {}
        self._zones: Counter[str] = Counter()  # how many requests of each are under way
        self._postponed: dict[int, _Pause] = {}
        self._hosts: dict[str, float] = {}  # when each last had its turn
        self._awake = asyncio.Event()

    def wake(self) -> None:
        """Look for due requests at once: a request has come in."""
        self._awake.set()

    async def run(self) -> None:
        """Verify until cancelled; requests under way then are asked again later."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._awake.clear()
                began = self._clock.monotonic()
                try:
                    await self._start_due(tasks)
                except StorageError as error:
                    log.warning("verifications_not_read", error=str(error))
                took = self._clock.monotonic() - began
                pause = max(SHORTEST_PAUSE, PAUSE_SHARE * took)
                await asyncio.sleep(min(pause, LONGEST_PAUSE))
                await wait_for(self._awake, POLL_SECONDS)

    async def _start_due(self, tasks: asyncio.TaskGroup) -> None:
        """Start due requests. Each topic is examined once for all of them that name
        it."""
        self._forget_what_is_over()
        if not await self._claims.may_begin():
            return
        due = await self._verifications.due(
            self._clock.now(),
            per_host=PER_HOST,
            limit=PAGE,
            without={*self._under_way.values(), *self._postponed},
            without_hosts=self._hosts.keys(),
        )
        if len(due) == PAGE:
            self._awake.set()  # there may be more of them
        admissions: dict[str, asyncio.Task[Admission]] = {}
        lease_id, claimed = await self._claimed(due)
        ids = [each.id for each in claimed]
        async with self._claims.renewed(WorkKind.VERIFICATIONS, ids, lease_id):
            for verification in claimed:
                await self._slots.acquire()
                admission = self._admission(verification, admissions, tasks)
                tasks.create_task(self._work(verification, admission))

    async def _claimed(
        self, due: Sequence[Verification]
    ) -> tuple[int, list[Verification]]:
        """Those whose turn it is, claimed under a lease: another node may still be at
        some, whose shard is now this one's."""
        chosen = [each for each in due if self._takes_turn(each)]
        held: frozenset[int] = frozenset()
        try:
            lease_id, held = await self._claims.claim(
                WorkKind.VERIFICATIONS, [each.id for each in chosen]
            )
        finally:
            for each in chosen:
                if each.id not in held:
                    self._end_turn(each)
        return lease_id, [
            replace(each, lease_id=lease_id) for each in chosen if each.id in held
        ]

    def _takes_turn(self, verification: Verification) -> bool:
        if not self._has_turn(verification):
            return False
        self._under_way[_key(verification)] = verification.id
        self._zones[_zone(verification)] += 1
        return True

    def _end_turn(self, verification: Verification) -> None:
        del self._under_way[_key(verification)]
        self._leave_zone(_zone(verification))

    def _admission(
        self,
        verification: Verification,
        admissions: dict[str, asyncio.Task[Admission]],
        tasks: asyncio.TaskGroup,
    ) -> asyncio.Task[Admission] | None:
        topic = verification.topic
        is_of_account = verification.account_request is not None
        if is_of_account or verification.mode is VerificationMode.UNSUBSCRIBE:
            return None
        if topic not in admissions:
            admissions[topic] = tasks.create_task(self._intents.admit(topic))
        return admissions[topic]

    def _forget_what_is_over(self) -> None:
        now = self._clock.monotonic()
        self._postponed = {
            id: each for id, each in self._postponed.items() if each.until > now
        }
        self._admit_waiting()
        self._hosts = {
            host: at for host, at in self._hosts.items() if now - at < HOST_PAUSE
        }

    def _admit_waiting(self) -> None:
        """Readmit as many requests of each zone as it has room for, the oldest
        first."""
        let_in: Counter[str] = Counter()
        for id, each in list(self._postponed.items()):
            zone = each.crowd
            if zone and self._zones[zone] + let_in[zone] < OF_ZONE_AT_ONCE:
                let_in[zone] += 1
                del self._postponed[id]

    def _has_turn(self, verification: Verification) -> bool:
        if _key(verification) in self._under_way:
            return False
        host = host_name(verification.callback)
        if host in self._hosts or self._questions.is_waiting(verification.callback):
            return False
        if self._questions.is_paced(verification.callback):
            zone = _zone(verification)
            if self._zones[zone] >= OF_ZONE_AT_ONCE:
                self._postpone(verification, CROWD_PAUSE, zone)  # lets others be read
                return False
            self._hosts[host] = self._clock.monotonic()
        return True

    async def _work(
        self, verification: Verification, admission: asyncio.Task[Admission] | None
    ) -> None:
        """Process one request; however it ends, no other request is affected."""
        try:
            if not self._claims.are_trusted():  # it has waited for a slot
                raise TopicBusy
            kind, ids = WorkKind.VERIFICATIONS, [verification.id]
            async with self._claims.renewed(kind, ids, verification.lease_id):
                await self._intents.verify(verification, admission)
        except TopicBusy:
            await self._put_off(verification, HOST_PAUSE)
        except StorageError as error:
            await self._put_off(verification, FAULT_PAUSE)
            log.warning(
                "verification_not_stored",
                verification=verification.id,
                error=str(error),
            )
        except Exception:
            await self._put_off(verification, FAULT_PAUSE)
            log.exception("verification_broke", verification=verification.id)
        finally:
            self._end_turn(verification)
            self._slots.release()
            self._awake.set()

    def _leave_zone(self, zone: str) -> None:
        self._zones[zone] -= 1
        if not self._zones[zone]:
            del self._zones[zone]

    async def _put_off(self, verification: Verification, seconds: float) -> None:
        self._postpone(verification, seconds)
        kind = WorkKind.VERIFICATIONS
        await self._claims.release(kind, [verification.id], verification.lease_id)

    def _postpone(
        self, verification: Verification, seconds: float, crowd: str = ""
    ) -> None:
        until = self._clock.monotonic() + seconds
        self._postponed[verification.id] = _Pause(until, crowd)


def _zone(verification: Verification) -> str:
    return zone_of(host_name(verification.callback))


def _key(verification: Verification) -> tuple[str, str]:
    return normal_url(verification.topic), normal_url(verification.callback)
