"""Lists of feeds and subscriptions by filter and order, on every engine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import product
from typing import Final

import pytest

from storage.records import (
    ANONYMOUS,
    OPERATOR,
    AccountId,
    FeedFilter,
    FeedHealth,
    FeedId,
    FeedSort,
    FeedState,
    ListPlace,
    NewDeadLetter,
    NewFeed,
    Polling,
    Position,
    RetryMoved,
    StoredFeed,
    Subscription,
    SubscriptionCondition,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionId,
    SubscriptionSort,
)
from tests.support.storage_scene import LEASE, START, Scene, at, fetch, stored_at

OK, FAILING, SLOW = FeedHealth.OK, FeedHealth.FAILING, FeedHealth.SLOW
GONE, PAUSED, REMOVED = FeedHealth.GONE, FeedHealth.PAUSED, FeedHealth.REMOVED


async def add(
    scene: Scene, url: str, category: str = "", title: str = "", when: datetime = START
) -> StoredFeed:
    new = NewFeed(url=f"https://{url}", category=category, title=title)
    return (await scene.storage.feeds.add(new, when))[0]


async def note(
    scene: Scene,
    feed: StoredFeed,
    condition: FeedHealth | None,
    when: datetime,
    **more: str,
) -> StoredFeed:
    """A poll that led to this; None: to the same as the one before."""
    polling = Polling(code=200, error="" if condition is OK else "answered 500")
    commit = fetch(feed, when=when, polling=polling, condition=condition, **more)
    await stored_at(scene.storage.log.commit(commit))
    after = await scene.storage.feeds.get(feed.id)
    assert after is not None
    return after


async def test_a_feed_is_as_its_polls_go_since_the_first_that_went_so(
    scene: Scene,
) -> None:
    feed = await add(scene, "a.example/", when=at(1))
    assert (feed.health, feed.health_since) == (OK, at(1))
    for condition, when, expected, since in (
        (FAILING, at(10), FAILING, at(10)),
        (None, at(20), FAILING, at(10)),
        (FAILING, at(30), FAILING, at(10)),
        (SLOW, at(40), SLOW, at(40)),
        (OK, at(50), OK, at(50)),
    ):
        feed = await note(scene, feed, condition, when)
        assert (feed.health, feed.health_since) == (expected, since)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (FeedState.PAUSED, PAUSED),
        (FeedState.GONE, GONE),
        (FeedState.DEAD, GONE),
        (FeedState.REMOVED, REMOVED),
    ],
)
async def test_the_state_of_a_feed_that_is_not_polled_goes_before_how_polls_went(
    scene: Scene, state: FeedState, expected: FeedHealth
) -> None:
    feed = await note(scene, await add(scene, "a.example/"), FAILING, at(10))
    stopped = await scene.storage.feeds.set_state(feed.id, state, at(20))
    again = await scene.storage.feeds.set_state(feed.id, state, at(30))
    back = await scene.storage.feeds.set_state(feed.id, FeedState.ACTIVE, at(40))
    assert (stopped.health, stopped.health_since) == (expected, at(20))
    assert again.health_since == at(20)
    assert (back.health, back.health_since) == (FAILING, at(10))


async def test_a_fetch_that_gives_a_feed_up_or_brings_it_back_is_when_it_did(
    scene: Scene,
) -> None:
    feed = await add(scene, "a.example/")
    gone = fetch(feed, when=at(5), state=FeedState.GONE, condition=FAILING)
    await scene.storage.log.commit(gone)
    given_up = await scene.storage.feeds.get(feed.id)
    assert given_up is not None
    assert (given_up.health, given_up.health_since) == (GONE, at(5))
    back = fetch(feed, when=at(9), state=FeedState.ACTIVE, condition=OK)
    await scene.storage.log.commit(back)
    returned = await scene.storage.feeds.get(feed.id)
    assert returned is not None
    assert (returned.health, returned.health_since) == (OK, at(9))


FEEDS = {  # by the first letter of their URLs, in the order they are added
    "c": ("c.example/feed", "news"),
    "a": ("a.example/feed", ""),
    "e": ("E.example/Feed", "news"),
    "b": ("b.example/feed", "news"),
    "d": ("d.example/other", ""),
    "f": ("f.example/feed", "sport"),
}


@pytest.fixture
async def six(scene: Scene) -> Scene:
    """c and d fail, b is paused, f is removed, a and e are well; d is in Atom."""
    feeds = {
        name: await add(scene, url, category, f"Title {name.upper()}")
        for name, (url, category) in FEEDS.items()
    }
    await note(scene, feeds["d"], FAILING, at(100), format="atom")
    await note(scene, feeds["c"], FAILING, at(200))
    await scene.storage.feeds.set_state(feeds["b"].id, FeedState.PAUSED, at(300))
    await scene.storage.feeds.set_state(feeds["f"].id, FeedState.REMOVED, at(400))
    return scene


def letters(feeds: tuple[StoredFeed, ...]) -> str:
    return "".join(each.url[8].lower() for each in feeds)


FOUND_FEEDS: Final[Sequence[tuple[FeedFilter, str]]] = (
    (FeedFilter(), "caebd"),
    (FeedFilter(health=(FAILING,)), "cd"),
    (FeedFilter(health=(FAILING, PAUSED)), "cbd"),
    (FeedFilter(health=(REMOVED,)), "f"),
    (FeedFilter(category="news"), "ceb"),
    (FeedFilter(category=""), "ad"),
    (FeedFilter(category="news", health=(FAILING,)), "c"),
    (FeedFilter(category="none"), ""),
    (FeedFilter(text="feed"), "caeb"),
    (FeedFilter(text="e.EXAMPLE"), "e"),
    (FeedFilter(text="title d"), "d"),
    (FeedFilter(text="feed", health=(FAILING, PAUSED)), "cb"),
    (FeedFilter(text="a."), "a"),
    (FeedFilter(text="nowhere"), ""),
    (FeedFilter(since=START), "ae"),
    (FeedFilter(since=at(100), health=(FAILING,)), "d"),
    (FeedFilter(after=at(100)), "cb"),
    (FeedFilter(after=START, since=at(200)), "cd"),
    (FeedFilter(after=START, text="feed"), "cb"),
    (FeedFilter(ids=(FeedId(2), FeedId(1), FeedId(9))), "ca"),
    (FeedFilter(host="a.example"), "a"),
    (FeedFilter(host="example"), ""),
    (FeedFilter(host="b.example", text="feed", category="news"), "b"),
    (FeedFilter(host="e.example"), "e"),
    (FeedFilter(format="rss"), ""),
    (FeedFilter(format="atom", health=(FAILING,)), "d"),
    (FeedFilter(format="atom", host="c.example"), ""),
    (FeedFilter(ids=(FeedId(1), FeedId(2)), health=(FAILING,)), "c"),
)


async def test_feeds_are_found_by_all_that_is_asked_for(six: Scene) -> None:
    select = six.storage.feed_selections
    for wanted, expected in FOUND_FEEDS:
        page = await select.page(wanted, FeedSort.ID, after=None, limit=9)
        assert letters(page.feeds) == expected, wanted
        assert page.next is None
        assert page.total == len(expected), wanted
        assert await select.count(wanted, 9) == len(expected), wanted
        assert await select.count(wanted, 1) == min(len(expected), 1), wanted


ORDERED_FEEDS: Final = {
    FeedSort.ID: "caebd",
    FeedSort.LAST_ID: "dbeac",
    FeedSort.URL: "eabcd",  # as stored: its host is E.example
    FeedSort.LAST_URL: "dcbae",
    FeedSort.SINCE: "aedcb",
    FeedSort.LAST_SINCE: "bcdea",
}


async def test_feeds_come_in_the_order_that_is_asked_for_page_by_page(
    six: Scene,
) -> None:
    select = six.storage.feed_selections
    for (sort, expected), text in product(ORDERED_FEEDS.items(), ("", "example")):
        pages, after = [], None
        for _ in range(3):
            page = await select.page(FeedFilter(text=text), sort, after=after, limit=2)
            pages.append(letters(page.feeds))
            after = page.next
        assert "".join(pages) == expected, sort
        assert [len(each) for each in pages] == [2, 2, 1]
        assert after is None


@pytest.mark.parametrize("category", [None, "news"])
async def test_feeds_come_by_their_subscribers_page_by_page(
    six: Scene, category: str | None
) -> None:
    select, wanted = six.storage.feed_selections, FeedFilter(category=category)
    every = (await select.page(wanted, FeedSort.ID, after=None, limit=9)).feeds
    for number, name in enumerate("ceb"):
        [feed] = [each for each in every if each.url[8].lower() == name]
        for each in range(number):
            await six.subscribe(feed, f"{each}")
    rising, falling = ("ceb", "bec") if category else ("cadeb", "bedac")
    for sort, expected in (
        (FeedSort.SUBSCRIBERS, rising),
        (FeedSort.LAST_SUBSCRIBERS, falling),
    ):
        for text in ("", "ht", "https"):
            wanted = FeedFilter(category=category, text=text)
            assert await paged(six, wanted, sort) == expected
    counts = await six.storage.subscriptions.counts([each.id for each in every])
    assert sorted(counts.values())[-3:] == [0, 1, 2]


async def paged(scene: Scene, wanted: FeedFilter, sort: FeedSort) -> str:
    """The letters of all that are wanted, two to a page."""
    found, after = "", None
    while True:
        page = await scene.storage.feed_selections.page(
            wanted, sort, after=after, limit=2
        )
        found += letters(page.feeds)
        after = page.next
        if after is None:
            return found


async def test_feeds_of_one_moment_are_paged_by_id(scene: Scene) -> None:
    ids = [(await add(scene, f"{number}.example/")).id for number in range(7)]
    found: list[FeedId] = []
    after: ListPlace | None = None
    for _ in range(4):
        page = await scene.storage.feed_selections.page(
            FeedFilter(), FeedSort.SINCE, after=after, limit=2
        )
        found += [each.id for each in page.feeds]
        after = page.next
    assert (found, after) == (ids, None)


async def test_feeds_are_counted_by_health_and_category(six: Scene) -> None:
    counts = await six.storage.feed_selections.counts()
    assert {(each.health, each.category): each.total for each in counts} == {
        (FAILING, "news"): 1,
        (FAILING, ""): 1,
        (OK, "news"): 1,
        (OK, ""): 1,
        (PAUSED, "news"): 1,
        (REMOVED, "sport"): 1,
    }
    await six.storage.feeds.purge_removed(at(500), 9)
    counts = await six.storage.feed_selections.counts()
    assert REMOVED not in {each.health for each in counts}


# --- subscriptions ---


async def condition_of(
    scene: Scene, subscription: Subscription
) -> SubscriptionCondition:
    (found,) = await scene.storage.subscription_selections.conditions([subscription.id])
    return found


def moved(subscription: Subscription, position: int, **more: object) -> RetryMoved:
    terms = {
        "subscription_id": subscription.id,
        "lease_id": LEASE,
        "position": Position(position),
        "attempts": 0,
        "next_try": at(999),
        "last_status": 200,
    }
    return RetryMoved(**{**terms, **more})


async def test_a_subscription_fails_from_its_first_failure_until_it_has_all(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    failing = await condition_of(scene, late)
    assert failing == SubscriptionCondition(
        id=late.id,
        health=SubscriptionHealth.FAILING,
        since=START,
        reason="answered 500",
        last_milliseconds=30,
    )
    await scene.claim_retrying(at(10))
    again = moved(late, 0, attempts=2, last_status=503, last_error="answered 503")
    await scene.flush(when=at(10), moved=(again,))
    failing = await condition_of(scene, late)
    assert (failing.since, failing.reason) == (START, "answered 503")
    await scene.flush(when=at(20), moved=(moved(late, 1, finished=True),))
    well = await condition_of(scene, late)
    assert (well.health, well.since, well.reason) == (
        SubscriptionHealth.OK,
        at(20),
        "",
    )


async def test_a_subscription_that_was_given_up_fails_until_a_2xx(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.claim_retrying(at(10))
    lost = NewDeadLetter(
        subscription_id=late.id,
        lease_id=LEASE,
        first=Position(1),
        last=Position(1),
        reason="answered 500 (after 10 tries)",
        at=at(10),
    )
    await scene.flush(when=at(10), given_up=(lost,))
    failing = await condition_of(scene, late)
    assert failing == SubscriptionCondition(
        id=late.id,
        health=SubscriptionHealth.FAILING,
        since=START,
        reason="answered 500 (after 10 tries)",
        last_milliseconds=30,
    )
    await scene.flush(when=at(30), recovered=(late.id,))
    well = await condition_of(scene, late)
    assert (well.health, well.since) == (SubscriptionHealth.OK, at(30))


async def test_a_subscription_that_catches_up_is_slow(scene: Scene) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.claim_retrying(at(10))
    caught_up = moved(late, 1)
    await scene.flush(when=at(10), moved=(caught_up,))
    slow = await condition_of(scene, late)
    assert (slow.health, slow.since) == (SubscriptionHealth.SLOW, at(10))


async def test_one_that_is_well_stays_so_while_a_dead_letter_is_sent_again(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.claim_retrying(at(10))
    lost = NewDeadLetter(
        subscription_id=late.id,
        lease_id=LEASE,
        first=Position(1),
        last=Position(1),
        reason="not kept",
        at=at(10),
        was_untried=True,
    )
    await scene.flush(when=at(10), given_up=(lost,))
    well = await condition_of(scene, late)
    assert (well.health, well.since) == (SubscriptionHealth.OK, at(10))
    (dead,) = await scene.storage.deliveries.dead_letters(after=0, limit=9)
    await scene.storage.deliveries.retry_dead_letter(dead.id, at(20))
    assert await condition_of(scene, late) == well
    await scene.claim_retrying(at(21))
    await scene.flush(when=at(22), moved=(moved(late, 1, finished=True),))
    assert await scene.storage.deliveries.retrying_subscription(late.id) is None
    assert await condition_of(scene, late) == well


@pytest.mark.parametrize("is_gone", [True, False])
async def test_an_ended_subscription_says_why_and_begins_anew(
    scene: Scene, is_gone: bool
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    if is_gone:
        await scene.flush(when=at(10), ended=((late.id, "it answered 410"),))
    else:
        end = scene.storage.subscriptions.end
        await end(late.id, "it answered 410", at(10), tell=False)
    ended = await condition_of(scene, late)
    assert ended == SubscriptionCondition(
        id=late.id,
        health=SubscriptionHealth.GONE if is_gone else SubscriptionHealth.ENDED,
        since=at(10),
        reason="it answered 410",
    )
    again = await scene.subscribe(feed, "late")
    begun = await condition_of(scene, again)
    assert (begun.health, begun.since) == (SubscriptionHealth.OK, again.created_at)


ALL = tuple(SubscriptionHealth)
SUBSCRIBERS = (  # what their callbacks end with; and their account
    ("x", ANONYMOUS),
    ("y", OPERATOR),
    ("z", OPERATOR),
    ("failing", ANONYMOUS),
    ("gone", OPERATOR),
)

NAMED = (SubscriptionId(4), SubscriptionId(2), SubscriptionId(5), SubscriptionId(9))


@pytest.fixture
async def five(scene: Scene) -> Scene:
    feed, other = await scene.add_feed("a"), await scene.add_feed("b")
    for name, account in SUBSCRIBERS[:3]:
        await scene.subscribe(feed, name, account=account)
    await scene.subscribe_retrying(other, "failing")
    gone = await scene.subscribe(other, "gone", account=OPERATOR)
    await scene.flush(when=at(50), ended=((gone.id, "it answered 410"),))
    return scene


FOUND_SUBSCRIPTIONS: Final[Sequence[tuple[SubscriptionFilter, str]]] = (
    (SubscriptionFilter(), "x y z failing"),
    (SubscriptionFilter(health=ALL), "x y z failing gone"),
    (SubscriptionFilter(health=(SubscriptionHealth.OK,)), "x y z"),
    (SubscriptionFilter(health=(SubscriptionHealth.FAILING,)), "failing"),
    (SubscriptionFilter(health=(SubscriptionHealth.GONE,)), "gone"),
    (SubscriptionFilter(account=OPERATOR), "y z"),
    (
        SubscriptionFilter(account=ANONYMOUS, health=(SubscriptionHealth.FAILING,)),
        "failing",
    ),
    (SubscriptionFilter(account=AccountId(9)), ""),
    (SubscriptionFilter(feed_id=FeedId(2), health=ALL), "failing gone"),
    (SubscriptionFilter(callback="HTTPS://Subscriber.example/y"), "y"),
    (SubscriptionFilter(topic="https://nobody.example/"), ""),
    (SubscriptionFilter(text="EXAMPLE/Z"), "z"),
    (SubscriptionFilter(text="example"), "x y z failing"),
    (SubscriptionFilter(since=START), "x y z failing"),
    (SubscriptionFilter(after=START, health=ALL), "gone"),
    (SubscriptionFilter(ids=NAMED), "y failing"),
    (SubscriptionFilter(ids=NAMED, account=OPERATOR), "y"),
    (SubscriptionFilter(ids=NAMED, text="example/y"), "y"),
)


async def test_subscriptions_are_found_by_all_that_is_asked_for(five: Scene) -> None:
    select = five.storage.subscription_selections
    sorts = (SubscriptionSort.ID, SubscriptionSort.SINCE)
    for (wanted, expected), sort in product(FOUND_SUBSCRIPTIONS, sorts):
        page = await select.page(wanted, sort, after=None, limit=9)
        names = [
            each.subscription.callback.rpartition("/")[2] for each in page.subscriptions
        ]
        assert names == expected.split(), wanted
        assert page.next is None
        assert page.total == len(names), wanted
        assert await select.count(wanted, 9) == len(names), wanted
        assert await select.count(wanted, 1) == min(len(names), 1), wanted


async def test_subscriptions_come_in_the_order_that_is_asked_for_page_by_page(
    five: Scene,
) -> None:
    for sort, text in product(SubscriptionSort, ("", "example")):
        found: list[SubscriptionId] = []
        after: ListPlace | None = None
        for _ in range(3):
            page = await five.storage.subscription_selections.page(
                SubscriptionFilter(health=ALL, text=text), sort, after=after, limit=2
            )
            found += [each.condition.id for each in page.subscriptions]
            after = page.next
        assert found == sorted(found, reverse=sort.is_falling), sort
        assert (len(found), after) == (5, None)


async def test_subscriptions_that_are_not_well_are_counted(five: Scene) -> None:
    counts = await five.storage.subscription_selections.counts()
    assert counts == {SubscriptionHealth.FAILING: 1}
