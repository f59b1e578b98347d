"""As-is subscriptions get the document of a fetch once, whatever records it made."""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hub.core.delivery.catch_up_outcomes import (
    CatchUpProgress,
    finished,
    held_up,
    progressed,
)
from hub.core.delivery.delivery_outcome import CallbackResponse, DeliveryOutcome
from hub.core.delivery.first_delivery_outcomes import (
    FirstDelivery,
    delivered,
    nothing_to_send,
    refused,
)
from hub.delivery.catch_ups import CatchUpRequests
from hub.delivery.notifications import Notifications
from protocols.model import Entry
from storage.contract import LogStore, Storage
from storage.records import (
    ClaimedChunk,
    DocumentWrite,
    Format,
    Position,
    RecordKind,
    RetryingSubscription,
    StoredFeed,
    SubscriptionId,
    Updates,
)
from storage.subscription_filter import DOCUMENT_KINDS
from tests.support.chosen_engine import open_chosen
from tests.support.memory.storage import MemoryStorage
from tests.support.storage_scene import NODE, Scene, at, fetch, record

OK, REFUSED = (
    CallbackResponse(status=200, milliseconds=1),
    CallbackResponse(status=500, milliseconds=1),
)
DAY = 86_400.0

COMMITS = st.lists(
    st.sampled_from(
        [
            RecordKind.RECOVERED,
            RecordKind.DELETED,
            RecordKind.UPDATED,
            RecordKind.ENTRIES,
        ]
    ),
    min_size=1,
    unique=True,
).map(lambda kinds: sorted(kinds, key=list(RecordKind).index, reverse=True))
STEPS = st.lists(
    st.one_of(COMMITS, st.sampled_from(["chunks", "retries", "restart"])),
    max_size=12,
)


class Course:
    """A feed with an as-is and a JSON subscription; what each got, as positions."""

    def __init__(self, storage: Storage, feed: StoredFeed, replies: list[bool]) -> None:
        self.storage = storage
        self.scene = Scene(storage)
        self.feed = feed
        self.got: dict[SubscriptionId, list[tuple[Position, bytes]]] = defaultdict(list)
        self.given_up: set[SubscriptionId] = set()
        self.documents: list[bytes] = []
        self._count = 0
        self._replies = iter(replies)
        self._now = 0.0
        log = cast("LogStore", storage.log)
        self._notifications = Notifications(log, "https://hub.example/hub")
        self._requests = CatchUpRequests(log, self._notifications)

    async def commit(self, kinds: Sequence[RecordKind]) -> None:
        self._count += 1
        key, document = f"entry {self._count}", b"<feed>%d</feed>" % self._count
        is_news = bool(DOCUMENT_KINDS.intersection(kinds))
        await self.storage.log.commit(
            fetch(
                self.feed,
                when=at(self._now),
                entries=(Entry(key=key, id=key),),
                records=tuple(record(key, kind=kind) for kind in kinds),
                body=DocumentWrite(content_type="text/xml", body=document)
                if is_news
                else None,
            )
        )
        if is_news:
            self.documents.append(document)

    async def step(self, step: str | Sequence[RecordKind]) -> None:
        self._now += DAY
        match step:
            case "chunks":
                for chunk in await self.scene.claim(at(self._now)):
                    await self._deliver(chunk)
            case "retries":
                for each in await self.scene.claim_retrying(at(self._now)):
                    await self._catch_up(each)
            case "restart":
                await self.storage.membership.join(NODE)
            case kinds:
                await self.commit(cast("Sequence[RecordKind]", kinds))

    async def end_well(self) -> None:
        """From now on every reply is a 2xx; go on until nothing is owed."""
        self._replies = iter(())
        while True:
            backlog = await self.storage.backlog()
            if not (backlog.fanouts or backlog.chunks or backlog.retrying):
                return
            await self.step("chunks")
            await self.step("retries")

    def _reply(
        self, to: SubscriptionId, position: Position, body: bytes
    ) -> CallbackResponse:
        if not next(self._replies, True):
            return REFUSED
        self.got[to].append((position, body))
        return OK

    async def _deliver(self, chunk: ClaimedChunk) -> None:
        for index, subscription in chunk.pending:
            document = await self._notifications.document((chunk.record,), subscription)
            brought = document.position if document else Position(0)
            first = FirstDelivery.of(chunk, index, subscription, brought)
            if document is None:
                await self._write(nothing_to_send(first))
                continue
            reply = self._reply(subscription.id, first.position, document.body)
            now = at(self._now)
            if reply is OK:
                await self._write(delivered(first, reply))
            else:
                await self._write(refused(first, reply, at=now, jitter=0.5))

    async def _catch_up(self, retrying: RetryingSubscription) -> None:
        here, now, until = (
            CatchUpProgress.of(retrying),
            at(self._now),
            at(self._now + 60),
        )
        subscription = here.subscription
        while (request := await self._requests.next(here)).document is not None:
            body = request.document.body
            reply = self._reply(subscription.id, request.last, body)
            if reply is REFUSED:
                log_end = (await self.storage.log.end()).position
                refusal = held_up(
                    here, request.last, reply, at=now, jitter=0.5, log_end=log_end
                )
                await self._write(refusal)
                return
            await self._write(
                progressed(here, request.last, reply, at=now, until=until)
            )
            here = here.delivered(request.last)
        await self._write(finished(here, request.last, until=until))

    async def _write(self, outcome: DeliveryOutcome) -> None:
        parts = {
            "outcomes": outcome.outcome,
            "opened": outcome.opened,
            "moved": outcome.moved,
            "given_up": outcome.given_up,
            "recovered": outcome.recovered,
            "advanced": outcome.advanced,
            "attempts": outcome.attempt,
        }
        if outcome.given_up is not None:
            self.given_up.add(outcome.given_up.subscription_id)
        written = {name: (each,) for name, each in parts.items() if each is not None}
        await self.scene.flush(when=at(self._now), **written)


async def run(storage: Storage, steps: list, replies: list[bool]) -> Course:
    scene = Scene(storage)
    feed = await scene.add_feed()
    await scene.subscribe(feed, "as-is", format=Format.AS_IS)
    await scene.subscribe(feed, "json", updates=Updates.ALL)
    course = Course(storage, feed, replies)
    for step in steps:
        await course.step(step)
    await course.end_well()
    return course


async def compare(steps: list, replies: list[bool]) -> None:
    model = await run(cast("Storage", MemoryStorage()), steps, replies)
    with tempfile.TemporaryDirectory() as directory:
        engine = cast("Storage", await open_chosen(Path(directory) / "hub.db"))
        try:
            found = await run(engine, steps, replies)
        finally:
            await engine.close()
    assert found.got == model.got
    as_is, json = SubscriptionId(1), SubscriptionId(2)
    got = [found.documents.index(body) for _, body in found.got[as_is]]
    assert got == sorted(set(got))  # once each, and in order
    if found.documents and as_is not in found.given_up:
        assert got[-1] == len(found.documents) - 1  # the latest came
    for each in (as_is, json):
        positions = [position for position, _ in found.got[each]]
        assert positions == sorted(set(positions))


@pytest.mark.bulk
@example(
    # Both are refused by chunks, and again as they catch up.
    steps=[[RecordKind.ENTRIES], "chunks", "retries", [RecordKind.ENTRIES], "retries"],
    replies=[False] * 6,
)
@given(steps=STEPS, replies=st.lists(st.booleans(), max_size=12))
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_a_document_is_delivered_once_in_order_and_the_latest_always(
    steps: list, replies: list[bool]
) -> None:
    asyncio.run(compare(steps, replies))
