"""Subscriptions, on every engine."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest
from msgspec.structs import replace

from storage.errors import NotFound
from storage.records import (
    ANONYMOUS,
    BEFORE_ALL,
    OPERATOR,
    ControlEvent,
    Format,
    Polling,
    Position,
    RecordKind,
    RetryMoved,
    SubscriptionId,
    SubscriptionsEnded,
    SubscriptionState,
    Updates,
    WorkKind,
)
from tests.support.storage_scene import (
    NO_FEED,
    START,
    Scene,
    at,
    fetch,
    new_subscription,
)
from tests.support.work_claims import hold

UNKNOWN = SubscriptionId(99)


@pytest.mark.parametrize("later", [(), ("entries",)])
async def test_a_new_subscription_to_a_feed_in_error_gets_that_record_once(
    scene: Scene, later: tuple[str, ...]
) -> None:
    feed = await scene.add_feed()
    await scene.publish(feed, "before")
    error = await scene.publish(feed, kind=RecordKind.ERROR)
    for key in later:
        await scene.publish(feed, key)
    await scene.deliver()

    made = await scene.subscribe(feed)
    (retrying,) = await scene.claim_retrying(START)

    assert retrying.subscription == made
    assert retrying.position == error - 1
    skipped = (error, error + 1) if later else (None, None)
    assert (retrying.skip_after, retrying.skip_to) == skipped
    done = RetryMoved(
        subscription_id=made.id,
        lease_id=retrying.lease_id,
        position=error,
        attempts=0,
        next_try=START,
        last_status=200,
        finished=True,
    )
    await scene.flush(moved=(done,))
    assert await scene.storage.deliveries.next_retry() is None
    await scene.subscribe(feed)  # a renewal
    assert await scene.storage.deliveries.next_retry() is None


async def test_when_the_log_has_that_record_no_more_the_next_error_is_awaited(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    commit, failing = scene.storage.log.commit, Polling(code=500, failures=3)

    async def is_awaited() -> bool:
        (target,) = await scene.storage.feeds.targets([feed.id])
        return target.is_error_awaited

    await scene.subscribe(feed, "before the trouble")
    await commit(fetch(feed, polling=failing))
    assert not await is_awaited()

    await scene.subscribe(feed, "before the trouble")
    assert not await is_awaited()  # a renewal

    await scene.subscribe(feed, "while the log says nothing of it")
    assert await is_awaited()
    assert await scene.storage.deliveries.next_retry() is None

    await scene.publish(feed, kind=RecordKind.ERROR)
    assert not await is_awaited()


@pytest.mark.parametrize(
    ("kinds", "terms"),
    [
        ((), {}),
        ((RecordKind.ERROR, RecordKind.RECOVERED), {}),
        ((RecordKind.ERROR,), {"format": Format.AS_IS}),
        ((RecordKind.ERROR,), {"is_silent": True}),
    ],
)
async def test_a_new_subscription_is_told_of_no_error(
    scene: Scene, kinds: tuple[RecordKind, ...], terms: dict[str, object]
) -> None:
    feed, other = await scene.add_feed(), await scene.add_feed("other")
    for kind in kinds:
        await scene.publish(feed, kind=kind)
    await scene.publish(other, kind=RecordKind.ERROR)
    await scene.subscribe(feed, **terms)
    assert await scene.storage.deliveries.next_retry() is None


async def test_a_new_subscription_is_active_and_stands_at_the_head(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.publish(feed)

    added = await scene.subscribe(
        feed,
        topic="http://a.example/feed",
        secret="shared",
        algorithm="sha512",
        format=Format.ATOM,
        updates=Updates.ALL,
        batch=True,
        lease_end=at(60),
    )

    assert added.state is SubscriptionState.ACTIVE
    assert added.from_position == 1
    assert (added.topic, added.secret) == ("http://a.example/feed", "shared")
    assert (added.format, added.updates, added.batch) == (
        Format.ATOM,
        Updates.ALL,
        True,
    )
    assert (added.lease_end, added.algorithm) == (at(60), "sha512")
    assert (added.exhausted, added.created_at) == (False, START)
    assert await scene.storage.subscriptions.get(added.id) == added


async def test_its_topic_leads_to_the_feed_from_then_on(scene: Scene) -> None:
    feed = await scene.add_feed()

    await scene.subscribe(feed, topic="http://alias.example/")

    assert await scene.storage.feeds.find("http://alias.example/") == feed


async def test_a_subscription_needs_a_feed(scene: Scene) -> None:
    feed = await scene.add_feed()

    with pytest.raises(NotFound):
        await scene.subscribe(replace(feed, id=NO_FEED))


async def test_a_known_key_takes_new_terms_and_keeps_its_place(scene: Scene) -> None:
    feed = await scene.add_feed()
    first = await scene.subscribe(feed, secret="old", lease_end=at(60))
    await scene.publish(feed)

    again = await scene.subscribe(feed, secret="new", format=Format.ATOM)

    assert again == replace(first, secret="new", format=Format.ATOM, lease_end=None)


async def test_a_secret_that_is_replaced_stays_for_the_time_it_is_given(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed, secret="old")

    again = await scene.subscribe(feed, secret="new", former_until=at(60))

    assert (again.secret, again.former_secret) == ("new", "old")
    assert again.former_until == at(60)


async def test_renewing_with_the_same_secret_keeps_the_former_one_and_its_time(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed, secret="old")
    rotated = await scene.subscribe(feed, secret="new", former_until=at(60))

    assert await scene.subscribe(feed, secret="new", former_until=at(90)) == rotated


async def test_of_three_secrets_the_first_is_forgotten(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed, secret="first")
    await scene.subscribe(feed, secret="second", former_until=at(60))

    third = await scene.subscribe(feed, secret="third", former_until=at(90))

    assert (third.former_secret, third.former_until) == ("second", at(90))


@pytest.mark.parametrize("until", [None, START])
async def test_without_time_left_a_secret_that_is_replaced_is_gone(
    scene: Scene, until: datetime | None
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed, secret="first")
    await scene.subscribe(feed, secret="second", former_until=at(60))

    again = await scene.subscribe(feed, secret="third", former_until=until)

    assert (again.former_secret, again.former_until) == ("", None)


@pytest.mark.parametrize(("before", "after"), [("", "new"), ("old", "")])
async def test_there_is_no_former_secret_where_one_of_the_two_is_none(
    scene: Scene, before: str, after: str
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed, secret=before)

    again = await scene.subscribe(feed, secret=after, former_until=at(60))

    assert (again.former_secret, again.former_until) == ("", None)


async def test_one_that_had_ended_has_no_former_secret(scene: Scene) -> None:
    feed = await scene.add_feed()
    first = await scene.subscribe(feed, secret="old")
    await scene.storage.subscriptions.end(first.id, "enough", START, tell=False)

    again = await scene.subscribe(feed, secret="new", former_until=at(60))

    assert (again.former_secret, again.former_until) == ("", None)


async def test_former_secrets_are_forgotten_when_their_time_is_over(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    for name in ("1", "2", "3"):
        await scene.subscribe(feed, name, secret="old")
    ids = [
        (
            await scene.subscribe(
                feed, str(each), secret="new", former_until=at(each * 10)
            )
        ).id
        for each in (1, 2, 3)
    ]
    forget = scene.storage.subscriptions.forget_secrets

    assert await forget(at(9), 9) == 0
    assert await forget(at(20), 1) == 1
    assert await forget(at(20), 9) == 1
    left = [await scene.storage.subscriptions.get(each) for each in ids]
    assert [each and each.former_secret for each in left] == ["", "", "old"]
    assert [each and each.former_until for each in left] == [None, None, at(30)]
    assert [each and each.secret for each in left] == ["new"] * 3


async def test_an_ended_subscription_starts_anew(scene: Scene) -> None:
    feed = await scene.add_feed()
    first = await scene.subscribe(feed)
    await scene.storage.subscriptions.end(first.id, "enough", START, tell=True)
    await scene.publish(feed)

    again = await scene.subscribe(feed)

    assert (again.state, again.from_position) == (SubscriptionState.ACTIVE, 1)
    assert again.ended_reason == ""
    assert await scene.storage.subscriptions.ending(START, 9) == []


async def test_one_that_is_active_is_edited_and_keeps_its_lease(scene: Scene) -> None:
    feed = await scene.add_feed()
    made = await scene.subscribe(feed, lease_end=at(60))
    new = new_subscription(feed, format=Format.ATOM, lease_end=None)
    edited = await scene.storage.subscriptions.edit(made.id, new, START)
    assert edited == replace(made, format=Format.ATOM)


async def test_one_that_has_ended_is_not_edited(scene: Scene) -> None:
    feed = await scene.add_feed()
    made = await scene.subscribe(feed)
    await scene.storage.subscriptions.end(made.id, "unsubscribed", START, tell=False)
    new = new_subscription(feed, format=Format.ATOM)
    assert await scene.storage.subscriptions.edit(made.id, new, START) is None
    kept = await scene.storage.subscriptions.get(made.id)
    assert kept is not None
    assert kept.state is SubscriptionState.ENDED


async def test_accounts_do_not_share_subscriptions(scene: Scene) -> None:
    feed = await scene.add_feed()
    operators = await scene.subscribe(feed, account=OPERATOR, secret="of operator")

    anonymous = await scene.subscribe(feed, account=ANONYMOUS, secret="of anybody")

    assert anonymous.id != operators.id
    assert await scene.storage.subscriptions.get(operators.id) == operators
    find = scene.storage.subscriptions.find
    assert await find(OPERATOR, feed.url, operators.callback) == operators
    assert await find(ANONYMOUS, feed.url, operators.callback) == anonymous
    assert await find(ANONYMOUS, "http://other.example/", operators.callback) is None


async def test_pages_go_by_id_and_can_be_narrowed(scene: Scene) -> None:
    feed, other = await scene.add_feed("a"), await scene.add_feed("b")
    one = await scene.subscribe(feed, "1")
    two = await scene.subscribe(feed, "2", account=OPERATOR)
    three = await scene.subscribe(other, "2")
    ended = await scene.subscribe(other, "4")
    await scene.storage.subscriptions.end(ended.id, "enough", START, tell=True)
    page = scene.storage.subscriptions.page

    assert await page(after=0, limit=2) == [one, two]
    assert await page(after=two.id, limit=2) == [three]
    assert await page(after=0, limit=9, account=OPERATOR) == [two]
    assert await page(after=0, limit=9, topic=feed.url) == [one, two]
    assert await page(after=0, limit=9, callback=two.callback) == [two, three]
    assert await page(after=0, limit=9, topic=other.url, callback=one.callback) == []


@pytest.mark.parametrize(
    ("tell", "state"),
    [(True, SubscriptionState.ENDING), (False, SubscriptionState.ENDED)],
)
async def test_an_ended_subscription_says_why(
    scene: Scene, tell: bool, state: SubscriptionState
) -> None:
    subscription = await scene.subscribe(await scene.add_feed())
    end = scene.storage.subscriptions.end

    ended = await end(subscription.id, "enough", START, tell=tell)
    again = await end(subscription.id, "once more", START, tell=True)

    assert (ended.state, ended.ended_reason) == (state, "enough")
    assert again == ended
    with pytest.raises(NotFound):
        await end(UNKNOWN, "enough", START, tell=True)


async def test_a_subscription_that_is_to_be_told_waits_until_it_was(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    told = await scene.subscribe(feed, "told")
    untold = await scene.subscribe(feed, "untold")
    active = await scene.subscribe(feed, "active")
    for each in (told, untold):
        await scene.storage.subscriptions.end(each.id, "enough", START, tell=True)

    lease_id = await hold(scene.storage, WorkKind.DENIALS, told.id, now=START)
    marked = await scene.storage.subscriptions.mark_denied(
        [told.id, untold.id, active.id, UNKNOWN], lease_id=lease_id
    )

    assert marked == {told.id}
    waiting = await scene.storage.subscriptions.ending(START, 9)
    assert [each.id for each in waiting] == [untold.id]
    assert await scene.storage.subscriptions.get(active.id) == active


async def test_ending_takes_the_retry_along(scene: Scene) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())

    await scene.storage.subscriptions.end(late.id, "enough", START, tell=False)

    assert await scene.storage.deliveries.retrying_subscription(late.id) is None


async def test_whoever_watches_is_told_of_endings_however_they_came(
    scene: Scene,
) -> None:
    feed, other = await scene.add_feed("a"), await scene.add_feed("b")
    one = await scene.subscribe(feed, "one")
    gone = await scene.subscribe(feed, "gone")
    over = await scene.subscribe(feed, "over", lease_end=at(10))
    last = await scene.subscribe(feed, "last")
    unseen = await scene.subscribe(other, "unseen")
    subscriptions = scene.storage.subscriptions
    told: list[ControlEvent] = []

    with scene.storage.control.watch(told.append):
        await subscriptions.end(one.id, "enough", START, tell=True)
        await scene.flush(ended=((gone.id, "gone"),))
        await subscriptions.expire(at(10), 9)
        await subscriptions.end_all(feed.id, "removed", START, 9)
    await subscriptions.end(unseen.id, "enough", START, tell=True)

    ended = [(one.id,), (gone.id,), (over.id,), (last.id,)]
    assert told == [SubscriptionsEnded(ids, BEFORE_ALL) for ids in ended]


async def test_whoever_watches_is_told_where_the_log_ended_then(scene: Scene) -> None:
    feed = await scene.add_feed()
    one, gone = await scene.subscribe(feed, "one"), await scene.subscribe(feed, "gone")
    subscriptions = scene.storage.subscriptions
    told: list[ControlEvent] = []

    with scene.storage.control.watch(told.append):
        await subscriptions.end(one.id, "enough", START, tell=True)
        await scene.publish(feed)
        await asyncio.gather(
            scene.flush(ended=((gone.id, "gone"),)), scene.publish(feed)
        )

    ends = [(one.id, 0), (gone.id, 1)]
    assert told == [SubscriptionsEnded((each,), Position(end)) for each, end in ends]


async def test_all_subscriptions_of_a_feed_are_ended_page_by_page(
    scene: Scene,
) -> None:
    feed, other = await scene.add_feed("a"), await scene.add_feed("b")
    for name in "123":
        await scene.subscribe(feed, name)
    await scene.subscribe(other, "4")
    end_all = scene.storage.subscriptions.end_all

    counts = [await end_all(feed.id, "removed", START, 2) for _ in range(3)]

    assert counts == [2, 1, 0]
    reasons = {
        each.ended_reason for each in await scene.storage.subscriptions.ending(START, 9)
    }
    assert reasons == {"removed"}
    assert await scene.storage.subscriptions.count(other.id) == 1


async def test_a_subscription_ends_with_its_lease(scene: Scene) -> None:
    feed = await scene.add_feed()
    over = await scene.subscribe(feed, "over", lease_end=at(10))
    await scene.subscribe(feed, "later", lease_end=at(11))
    await scene.subscribe(feed, "endless")

    assert await scene.storage.subscriptions.expire(at(10), 9) == 1

    (ended,) = await scene.storage.subscriptions.ending(START, 9)
    assert (ended.id, ended.ended_reason) == (over.id, "the lease has expired")
    assert await scene.storage.subscriptions.expire(at(10), 9) == 0


async def test_only_active_subscriptions_are_counted(scene: Scene) -> None:
    feed = await scene.add_feed()
    for name in "123":
        last = await scene.subscribe(feed, name)
    await scene.subscribe(feed, "3")
    await scene.storage.subscriptions.end(last.id, "enough", START, tell=True)

    assert await scene.storage.subscriptions.count(feed.id) == 2
    assert await scene.storage.subscriptions.count(NO_FEED) == 0


async def test_a_purged_subscription_takes_its_attempts_and_nothing_else(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    gone, kept = (
        await scene.subscribe_retrying(feed),
        await scene.subscribe(feed, "kept"),
    )
    subscriptions = scene.storage.subscriptions
    await subscriptions.end(gone.id, "enough", START, tell=False)

    too_early = await subscriptions.purge_ended(START, 9)
    purged = await subscriptions.purge_ended(at(1), 9)

    assert (too_early, purged) == (0, 1)
    assert await subscriptions.get(gone.id) is None
    assert await scene.storage.deliveries.attempts(gone.id, 9) == []
    assert await subscriptions.get(kept.id) == kept


async def test_a_page_of_those_that_ended_first_is_purged(scene: Scene) -> None:
    feed = await scene.add_feed()
    first, second = await scene.subscribe(feed, "1"), await scene.subscribe(feed, "2")
    subscriptions = scene.storage.subscriptions
    await subscriptions.end(first.id, "enough", at(2), tell=False)
    await subscriptions.end(second.id, "enough", at(1), tell=False)
    await subscriptions.end(second.id, "again", at(3), tell=False)

    assert await subscriptions.purge_ended(at(9), 1) == 1

    assert await subscriptions.get(second.id) is None
    assert await subscriptions.get(first.id) is not None


async def test_one_that_is_still_to_be_told_or_has_begun_anew_is_not_purged(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    ending, again = await scene.subscribe(feed, "1"), await scene.subscribe(feed, "2")
    subscriptions = scene.storage.subscriptions
    await subscriptions.end(ending.id, "enough", START, tell=True)
    await subscriptions.end(again.id, "enough", START, tell=False)
    await scene.subscribe(feed, "2")

    assert await subscriptions.purge_ended(at(9), 9) == 0
    lease_id = await hold(scene.storage, WorkKind.DENIALS, ending.id, now=START)
    await subscriptions.mark_denied([ending.id], lease_id=lease_id)
    assert await subscriptions.purge_ended(at(9), 9) == 1

    assert await subscriptions.get(ending.id) is None
    assert await subscriptions.get(again.id) is not None
