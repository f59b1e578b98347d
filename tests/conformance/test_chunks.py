"""Fan-outs and chunks, on every engine: who is served, in which order, under leases."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import pairwise
from random import Random

import pytest

from storage.records import (
    OPERATOR,
    ClaimedChunk,
    ClaimTerms,
    FeedId,
    Format,
    RecordKind,
    Subscription,
    SubscriptionId,
    Updates,
)
from storage.sqlite.log_appends import FEW_SUBSCRIBERS
from storage.subscription_filter import wants
from tests.support.storage_scene import NODE, START, Scene, all_of, at, outcome_of
from tests.support.waiting import eventually


async def test_a_record_goes_to_the_subscriptions_of_its_feed_in_id_order(
    scene: Scene,
) -> None:
    feed, other = await scene.add_feed("a"), await scene.add_feed("b")
    members = [await scene.subscribe(feed, name) for name in "12"]
    await scene.subscribe(other, "3")
    position = await scene.publish(feed, "k")

    (chunk,) = await scene.claim()

    assert chunk.pending == tuple(enumerate(members))
    (record,) = await scene.storage.log.records(after=0, limit=9)
    assert (chunk.record, record.position) == (record, position)


async def test_a_subscription_receives_what_is_committed_after_it_was_added(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    early = await scene.subscribe(feed, "early")
    await scene.publish(feed)
    late = await scene.subscribe(feed, "late")
    await scene.publish(feed)

    (first,) = await scene.claim()
    await scene.flush(outcomes=all_of(first))
    (second,) = await scene.claim()

    assert [each.id for _, each in first.pending] == [early.id]
    assert [each.id for _, each in second.pending] == [early.id, late.id]


async def test_a_baseline_goes_to_nobody(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    await scene.publish(feed, "k", kind=RecordKind.BASELINE)

    assert (await scene.storage.backlog()).fanouts == 0
    assert await scene.claim() == []


@pytest.mark.parametrize("is_fresh", [True, False])
@pytest.mark.parametrize("kind", sorted(set(RecordKind) - {RecordKind.BASELINE}))
async def test_exactly_those_get_a_record_who_want_its_kind(
    scene: Scene, kind: RecordKind, is_fresh: bool
) -> None:
    feed = await scene.add_feed()
    wanting: list[SubscriptionId] = []
    for format in Format:
        for updates in Updates:
            name = f"{format}-{updates}"
            added = await scene.subscribe(feed, name, format=format, updates=updates)
            if wants(format, updates, kind, is_fresh):
                wanting.append(added.id)
    await scene.publish(feed, "k", kind=kind, is_fresh=is_fresh)

    chunks = await scene.claim()

    got = [each.id for chunk in chunks for _, each in chunk.pending]
    assert got == wanting


async def test_ended_subscriptions_and_open_retries_are_left_out(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe_retrying(feed, "late")
    ended = await scene.subscribe(feed, "ended")
    served = await scene.subscribe(feed, "served")
    await scene.storage.subscriptions.end(ended.id, "enough", START, tell=False)
    await scene.publish(feed)

    (chunk,) = await scene.claim()

    assert [each.id for _, each in chunk.pending] == [served.id]


async def test_a_fanout_without_members_is_dropped(scene: Scene) -> None:
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed)
    await scene.publish(feed)
    await scene.publish(feed)
    assert (await scene.storage.backlog()).fanouts == 2
    await scene.storage.subscriptions.end(subscription.id, "x", START, tell=False)

    assert await scene.claim() == []
    assert (await scene.storage.backlog()).fanouts == 0


@pytest.mark.parametrize(
    "terms",
    [
        [],
        [{"updates": Updates.NONE}],
        [{"format": Format.AS_IS}, {"updates": Updates.NONE}],
        [{"is_silent": True, "updates": Updates.ALL}],
    ],
)
async def test_a_record_that_nobody_receives_waits_for_nobody(
    scene: Scene, terms: list[dict[str, object]]
) -> None:
    feed, other = await scene.add_feed("a"), await scene.add_feed("b")
    ended = await scene.subscribe(feed, "ended", updates=Updates.ALL)
    await scene.subscribe(other, updates=Updates.ALL)
    await scene.storage.subscriptions.end(ended.id, "enough", START, tell=False)
    for number, each in enumerate(terms):
        await scene.subscribe(feed, str(number), **each)

    await scene.publish(feed, "k", kind=RecordKind.DELETED)

    assert (await scene.storage.backlog()).fanouts == 0
    await scene.publish(other, "k", kind=RecordKind.DELETED)
    assert (await scene.storage.backlog()).fanouts == 1


async def test_a_record_waits_for_the_only_one_of_many_who_wants_it(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    for number in range(FEW_SUBSCRIBERS - 1):
        await scene.subscribe(feed, f"{number}", updates=Updates.NONE)
    keen = await scene.subscribe(feed, "keen", updates=Updates.ALL)
    await scene.publish(feed, "k", kind=RecordKind.DELETED)
    await scene.subscribe(feed, "one more", updates=Updates.NONE)
    await scene.publish(feed, "k", kind=RecordKind.DELETED)

    for _ in range(2):
        (chunk,) = await scene.claim()
        assert [each.id for _, each in chunk.pending] == [keen.id]
        await scene.flush(outcomes=all_of(chunk))


async def test_a_record_waits_for_one_who_is_behind(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.subscribe_retrying(feed)

    await scene.publish(feed)

    assert (await scene.storage.backlog()).fanouts == 1


async def test_who_subscribes_while_records_are_committed_gets_all_above_its_beginning(
    scene: Scene,
) -> None:
    """The first of a feed, the second, and one who ended and comes again."""
    feeds = [await scene.add_feed(f"{number}") for number in range(20)]
    for turn in range(3):
        for number, feed in enumerate(feeds):
            names = ["a", f"{turn}", "a"] if turn else ["a"]
            work = [
                *(scene.publish(feed) for _ in range(number % 4)),
                *(scene.subscribe(feed, name) for name in names),
                *(scene.publish(feed) for _ in range(2)),
            ]
            Random(number).shuffle(work)
            await asyncio.gather(*work)
        subscriptions = await scene.storage.subscriptions.page(after=0, limit=999)
        records = await scene.storage.log.records(after=0, limit=999)
        await scene.deliver()
        for each in subscriptions:
            attempts = await scene.storage.deliveries.attempts(each.id, 99)
            assert sorted(attempt.position for attempt in attempts) == [
                record.position
                for record in records
                if record.feed_id == each.feed_id
                and record.position > each.from_position
            ]


async def test_a_fanout_is_split_five_hundred_at_a_time(scene: Scene) -> None:
    feed = await scene.add_feed()
    members = [await scene.subscribe(feed, str(number)) for number in range(1_001)]
    await scene.publish(feed)

    first = await scene.claim(limit=1)
    rest = await scene.claim(limit=9)

    sizes = [len(chunk.pending) for chunk in first + rest]
    assert sizes == [500, 500, 1]
    got = [each.id for chunk in first + rest for _, each in chunk.pending]
    assert got == [each.id for each in members]


async def test_exactly_five_hundred_members_make_one_chunk(scene: Scene) -> None:
    feed = await scene.add_feed()
    for number in range(500):
        await scene.subscribe(feed, str(number))
    await scene.publish(feed)

    (chunk,) = await scene.claim()
    await scene.flush(outcomes=all_of(chunk))

    assert await scene.claim() == []
    assert (await scene.storage.backlog()).fanouts == 0


async def test_records_of_one_feed_go_strictly_one_after_the_other(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed, "1")
    await scene.subscribe(feed, "2")
    for _ in range(3):
        await scene.publish(feed)

    (first,) = await scene.claim()
    assert await scene.claim() == []
    await scene.flush(outcomes=all_of(first)[:1])
    assert await scene.claim() == [], "one member is still to be served"
    await scene.flush(outcomes=all_of(first)[1:])
    (second,) = await scene.claim()

    assert (first.record.position, second.record.position) == (1, 2)


async def test_feeds_do_not_wait_for_each_other(scene: Scene) -> None:
    feeds = [await scene.add_feed(name) for name in "abc"]
    for feed in feeds:
        await scene.subscribe(feed)
        await scene.publish(feed)
    await scene.publish(feeds[0])

    chunks = await scene.claim()

    assert [each.record.feed_id for each in chunks] == [each.id for each in feeds]


async def test_a_feed_of_which_records_wait_does_not_hold_up_one_of_which_none_does(
    scene: Scene,
) -> None:
    busy, calm = await scene.add_feed("busy"), await scene.add_feed("calm")
    for feed in (busy, calm):
        await scene.subscribe(feed)
    for _ in range(3):
        await scene.publish(busy)
    (first,) = await scene.claim(limit=1)
    await scene.flush(outcomes=all_of(first))
    for _ in range(2):
        await scene.publish(calm)

    assert await feeds_in_turn(scene) == [calm.id, busy.id, calm.id, busy.id]


async def test_feeds_of_which_records_wait_take_turns(scene: Scene) -> None:
    feeds = [await scene.add_feed(name) for name in "abc"]
    for feed in feeds:
        await scene.subscribe(feed)
        for _ in range(3):
            await scene.publish(feed)

    assert await feeds_in_turn(scene) == [each.id for each in feeds] * 3


async def feeds_in_turn(scene: Scene) -> list[FeedId]:
    """One chunk is delivered after the other."""
    served = []
    while chunks := await scene.claim(limit=1):
        served.append(chunks[0].record.feed_id)
        await scene.flush(outcomes=all_of(chunks[0]))
    return served


async def test_the_oldest_records_are_claimed_first(scene: Scene) -> None:
    feeds = [await scene.add_feed(name) for name in "abc"]
    for feed in reversed(feeds):
        await scene.subscribe(feed)
        await scene.publish(feed)

    chunks = await scene.claim(limit=2)

    assert [each.record.position for each in chunks] == [1, 2]


async def test_a_chunk_is_claimed_again_when_its_lease_is_over(scene: Scene) -> None:
    feed = await scene.add_feed()
    members = [await scene.subscribe(feed, name) for name in "123"]
    await scene.publish(feed)
    (chunk,) = await scene.claim(lease_id=1)
    await scene.flush(outcomes=(outcome_of(chunk, 1),))

    assert await scene.claim(at(59), lease_id=2) == []
    (again,) = await scene.claim(at(60), lease_id=2)

    assert (again.id, again.lease_id) == (chunk.id, 2)
    assert again.pending == ((0, members[0]), (2, members[2]))


async def test_a_lease_that_is_renewed_goes_on(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    await scene.publish(feed)
    (chunk,) = await scene.claim()
    renew = scene.storage.deliveries.renew

    await renew([chunk.id], lease_id=chunk.lease_id, seconds=60, now=at(60))
    await renew([chunk.id], lease_id=99, seconds=900, now=at(99))

    assert await scene.claim(at(119)) == []
    assert len(await scene.claim(at(120))) == 1


async def test_voided_leases_are_claimed_at_once(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    await scene.publish(feed)
    (chunk,) = await scene.claim()

    await scene.storage.membership.join(NODE)
    (again,) = await scene.claim(lease_id=2)

    assert again.id == chunk.id
    await scene.flush(outcomes=all_of(chunk))
    assert (await scene.storage.backlog()).chunks == 1, "the old lease writes nothing"


async def test_who_ended_meanwhile_is_no_longer_pending(scene: Scene) -> None:
    feed = await scene.add_feed()
    stays, ends = [await scene.subscribe(feed, name) for name in "12"]
    await scene.publish(feed)
    await scene.claim()
    await scene.storage.subscriptions.end(ends.id, "enough", START, tell=False)

    (again,) = await scene.claim(at(60))

    assert again.pending == ((0, stays),)
    await scene.flush(outcomes=all_of(again))
    assert (await scene.storage.backlog()).chunks == 0


async def test_who_ended_and_started_anew_is_not_sent_what_was_before(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed)
    await scene.publish(feed)
    await scene.claim()
    await scene.storage.subscriptions.end(subscription.id, "x", START, tell=False)
    await scene.subscribe(feed)

    assert await scene.claim(at(60)) == []
    assert (await scene.storage.backlog()).chunks == 0


async def test_every_subscription_gets_every_record_in_order(scene: Scene) -> None:
    feeds = [await scene.add_feed(name) for name in "ab"]
    members: list[Subscription] = []
    for feed in feeds:
        members += [await scene.subscribe(feed, name) for name in "12"]
    for number in range(6):
        await scene.publish(feeds[number % 2])

    done = await scene.deliver()

    assert sorted(done) == [1, 2, 3, 4, 5, 6]
    for each in members:
        attempts = await scene.storage.deliveries.attempts(each.id, 9)
        positions = [attempt.position for attempt in attempts]
        assert len(positions) == 3
        assert all(later > earlier for later, earlier in pairwise(positions))


async def test_nobody_has_anything_to_claim_in_an_empty_storage(scene: Scene) -> None:
    assert await scene.claim() == []
    assert await scene.claim_retrying(START) == []
    assert await scene.storage.deliveries.next_retry() is None


async def test_what_accounts_were_sent_is_added_up(scene: Scene) -> None:
    assert await scene.storage.deliveries.notified() == {}
    await scene.flush(notified=((OPERATOR, 7),))
    await scene.flush(notified=((OPERATOR, 5),))
    assert await scene.storage.deliveries.notified() == {OPERATOR: 12}


class Claimer:
    """Asks with each commit, and notes what it is given."""

    def __init__(self, limit: int = 1) -> None:
        self.given: list[list[ClaimedChunk] | None] = []
        self._limit = limit

    def ask(self) -> ClaimTerms | None:
        terms = ClaimTerms(lease_id=7, seconds=60, now=START, limit=self._limit)
        return terms if self._limit else None

    async def is_given(self, count: int) -> bool:
        return len(self.given) == count


async def test_a_commit_claims_what_it_brings_for_who_asks(scene: Scene) -> None:
    feed, unheard = await scene.add_feed("a"), await scene.add_feed("b")
    members = [await scene.subscribe(feed, name) for name in "12"]
    claimer = Claimer()
    with scene.storage.deliveries.claim_with_commits(claimer.ask, claimer.given.append):
        await scene.publish(unheard)
        position = await scene.publish(feed)
        await eventually(partial(claimer.is_given, 2))

    nothing, brought = claimer.given
    assert nothing == []
    assert brought is not None
    (chunk,) = brought
    assert (chunk.record.position, chunk.lease_id) == (position, 7)
    assert chunk.pending == tuple(enumerate(members))
    assert await scene.claim() == [], "it is under a lease"
    await scene.flush(outcomes=all_of(chunk))
    assert (await scene.storage.backlog()).chunks == 0


async def test_a_commit_claims_in_order_and_no_more_than_was_asked_for(
    scene: Scene,
) -> None:
    feed, other = await scene.add_feed("a"), await scene.add_feed("b")
    for each in (feed, other):
        await scene.subscribe(each, each.url)
    waiting = await scene.publish(other)
    claimer = Claimer()
    with scene.storage.deliveries.claim_with_commits(claimer.ask, claimer.given.append):
        later = await scene.publish(feed)
        await eventually(partial(claimer.is_given, 1))

    (brought,) = claimer.given
    assert [each.record.position for each in brought or ()] == [waiting]
    assert [each.record.position for each in await scene.claim()] == [later]


async def test_a_commit_claims_nothing_for_who_asks_for_nothing(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    claimer = Claimer(limit=0)
    with scene.storage.deliveries.claim_with_commits(claimer.ask, claimer.given.append):
        await scene.publish(feed)
    await scene.publish(feed)  # nobody asks any more

    assert len(await scene.claim()) == 1
    assert claimer.given == []


async def test_of_each_record_it_is_known_when_a_callback_first_took_it(
    scene: Scene,
) -> None:
    feed, unheard = await scene.add_feed("a"), await scene.add_feed("b")
    subscription = await scene.subscribe(feed)
    taken = await scene.publish(feed, "1")
    await scene.deliver(at(2))
    refused = await scene.publish(feed, "2", when=at(3))
    (chunk,) = await scene.claim(at(3))
    await scene.fail(chunk, subscription, when=at(4))
    unsent = await scene.publish(unheard, "3")

    asked = [(feed.id, taken), (feed.id, refused), (unheard.id, unsent)]
    found = await scene.storage.deliveries.first_successes(asked)

    assert found == {taken: at(2), refused: None}
    assert await scene.storage.deliveries.first_successes([]) == {}
