"""What a subscription did not get is counted as far as it is known, and no further."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from hub.core.status.subscription_explanation import SubscriptionGap
from hub.services.subscription_gaps import (
    MOST_COUNTED,
    MOST_PAGES,
    PAGE,
    SubscriptionGaps,
)
from storage.records import (
    Attempt,
    AttemptReason,
    Position,
    RecordKind,
    RecordWrite,
    RetryMoved,
    StoredFeed,
    SubscriptionId,
)
from tests.support.chosen_engine import open_chosen
from tests.support.storage_scene import (
    Scene,
    at,
    fetch,
    new_subscription,
    record,
    stored_at,
    written,
)

ENTRY = record("News")
UPDATE = record("News", kind=RecordKind.UPDATED, is_fresh=False)
"""A record that a subscription gets only if it wants all updates."""
END, ANEW = at(10), at(60)


@dataclass(frozen=True, slots=True)
class Ended:
    """A subscription that took a record, and has ended since."""

    scene: Scene
    feed: StoredFeed
    id: SubscriptionId

    async def publish(self, *records: RecordWrite) -> list[Position]:
        """Commit records while it is over."""
        commit = fetch(self.feed, when=END, **written("News"), records=records)
        return list(await stored_at(self.scene.storage.log.commit(commit)))

    async def begin_anew(self) -> None:
        new = new_subscription(self.feed)
        await self.scene.storage.subscriptions.add(new, ANEW)

    async def gap(self) -> SubscriptionGap | None:
        storage = self.scene.storage
        found = await storage.subscriptions.get(self.id)
        assert found is not None
        return await SubscriptionGaps(storage).of(found)


@pytest.fixture
async def ended(tmp_path: Path) -> AsyncIterator[Ended]:
    storage = await open_chosen(tmp_path / "hub.db")
    scene = Scene(storage)
    try:
        feed = await scene.add_feed()
        made = await scene.subscribe(feed)
        await scene.publish(feed, "Taken")
        await scene.deliver(at(1))
        await storage.subscriptions.end(made.id, "by hand", at(2), tell=False)
        yield Ended(scene, feed, made.id)
    finally:
        await storage.close()


@pytest.mark.parametrize("begins_anew", [False, True])
@pytest.mark.parametrize(
    ("came", "counted", "has_more"),
    [
        ([ENTRY], 1, False),
        ([UPDATE, ENTRY, UPDATE], 1, False),
        ([UPDATE] * PAGE + [ENTRY] * 2, 2, False),
        ([ENTRY] * MOST_COUNTED, MOST_COUNTED, False),
        ([ENTRY] * MOST_COUNTED + [UPDATE] * 2, MOST_COUNTED, False),
        ([ENTRY] * (MOST_COUNTED + 1), MOST_COUNTED, True),
        ([ENTRY] + [UPDATE] * (PAGE * MOST_PAGES), 1, True),
    ],
)
async def test_only_what_is_due_is_counted_and_more_is_said_only_if_there_may_be_more(
    ended: Ended,
    came: Sequence[RecordWrite],
    counted: int,
    has_more: bool,
    begins_anew: bool,
) -> None:
    positions = await ended.publish(*came)
    if begins_anew:
        await ended.begin_anew()
    assert await ended.gap() == SubscriptionGap(
        records=counted,
        first=positions[came.index(ENTRY)],
        oldest=END,
        until=ANEW if begins_anew else None,
        has_more=has_more,
    )


@pytest.mark.parametrize("came", [[], [UPDATE]])
async def test_there_is_no_gap_if_nothing_was_due(
    ended: Ended, came: Sequence[RecordWrite]
) -> None:
    if came:
        await ended.publish(*came)
    assert await ended.gap() is None
    await ended.begin_anew()
    assert await ended.gap() is None


LATER = at(70)


async def catch_up(scene: Scene, *, reason: AttemptReason, upto: Position) -> None:
    """The retry that is open is sent what it lacks, and closes."""
    (claimed,) = await scene.claim_retrying(LATER)
    whose = claimed.subscription.id
    taken = Attempt(
        subscription_id=whose,
        position=upto,
        at=LATER,
        status=204,
        milliseconds=1,
        reason=reason,
    )
    closed = RetryMoved(
        subscription_id=whose,
        lease_id=claimed.lease_id,
        position=upto,
        attempts=0,
        next_try=LATER,
        last_status=204,
        finished=True,
    )
    await scene.flush(when=LATER, attempts=(taken,), moved=(closed,))
    assert await scene.storage.deliveries.retrying_subscription(whose) is None


async def test_a_gap_is_told_also_after_what_came_later_was_caught_up_with(
    ended: Ended,
) -> None:
    scene = ended.scene
    await ended.publish(ENTRY)
    await ended.begin_anew()
    gap = await ended.gap()
    new = await scene.publish(ended.feed, "Newer", when=LATER)
    (chunk,) = await scene.claim(LATER)
    [(_, subscription)] = chunk.pending
    await scene.fail(chunk, subscription, when=ANEW)
    assert await ended.gap() == gap
    await catch_up(scene, reason=AttemptReason.CATCH_UP, upto=new)
    assert await ended.gap() == gap is not None


async def test_a_gap_is_told_no_more_once_it_is_sent_again(ended: Ended) -> None:
    scene = ended.scene
    first, last = await ended.publish(ENTRY, ENTRY)
    await ended.begin_anew()
    deliveries = scene.storage.deliveries
    await deliveries.replay(ended.id, Position(first - 1), ANEW)
    assert await ended.gap() is None
    await catch_up(scene, reason=AttemptReason.SENT_AGAIN, upto=last)
    assert await ended.gap() is None
