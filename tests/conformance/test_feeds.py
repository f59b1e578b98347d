"""Feeds and topics, on every engine."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from protocols.model import Hints
from storage.errors import NotFound
from storage.records import (
    ANONYMOUS,
    KEPT_POLLS,
    NOBODY,
    OPERATOR,
    UNKNOWN_PACE,
    AccountId,
    Credentials,
    DueFeed,
    FeedChange,
    FeedId,
    FeedState,
    Format,
    NewFeed,
    NotStored,
    Poll,
    Polling,
    PollOutcome,
    PollReason,
    Posting,
    Redirect,
    SubscriberGroup,
    SubscriptionState,
    Validators,
    pace_of,
)
from tests.support.memory.feeds import places
from tests.support.storage_scene import (
    MINUTE,
    NO_FEED,
    START,
    Scene,
    at,
    fetch,
    written,
)

URL = "https://a.example/feed"
LOGIN = Credentials(username="ann", password="pass", headers={"X-Key": "k"})


async def test_a_new_feed_is_due_at_once(scene: Scene) -> None:
    feed, is_new = await scene.storage.feeds.add(
        NewFeed(url=URL, category="news"), START
    )

    assert is_new
    assert (feed.url, feed.category, feed.state) == (URL, "news", FeedState.ACTIVE)
    assert (feed.next_fetch, feed.created_at, feed.polling) == (START, START, Polling())
    (due,) = await scene.storage.feeds.due(START, after={}, limit=9)
    assert (due.id, due.url, due.next_fetch) == (feed.id, URL, START)


async def test_a_new_feed_is_found_by_its_topic_and_its_id(scene: Scene) -> None:
    feed = await scene.add_feed()

    assert await scene.storage.feeds.find(feed.url) == feed
    assert await scene.storage.feeds.get(feed.id) == feed
    assert await scene.storage.feeds.find("https://unknown.example/") is None
    assert await scene.storage.feeds.get(NO_FEED) is None
    several = await scene.storage.feeds.several([feed.id, NO_FEED])
    assert several == {feed.id: feed}


async def test_the_parts_of_a_page_are_found_by_its_url(scene: Scene) -> None:
    page = "https://a.example/page"
    rests = ("", "/other#.news", "#.news", "#%24.price", "#.old")
    _, _, *parts = [
        (await scene.storage.feeds.add(NewFeed(url=page + rest), START))[0]
        for rest in rests
    ]
    await scene.storage.feeds.set_state(parts[2].id, FeedState.REMOVED, START)
    find = scene.storage.feeds.parts
    assert await find("HTTPS://A.example:443/p%61ge#top", 9) == parts[:2]
    assert await find(page, 1) == parts[:1]
    assert await find(f"{page}#.news", 9) == []
    assert await find("https://a.example/", 9) == []


async def test_a_known_url_gives_the_known_feed(scene: Scene) -> None:
    first = await scene.add_feed(category="news")

    again, is_new = await scene.storage.feeds.add(NewFeed(url=first.url), at(60))

    assert (again, is_new) == (first, False)


@pytest.mark.parametrize("credentials", [None, LOGIN])
@pytest.mark.parametrize("private", [True, False])
async def test_adding_a_known_feed_again_changes_nothing(
    scene: Scene, private: bool, credentials: Credentials | None
) -> None:
    first = await scene.add_feed(category="news", private=private)

    other = {"category": "sport", "private": not private, "credentials": credentials}
    again, is_new = await scene.storage.feeds.add(
        NewFeed(url=first.url, **other), at(1)
    )

    assert (again, is_new) == (first, False)
    (target,) = await scene.storage.feeds.targets([first.id])
    assert target.credentials is None


async def test_editing_a_feed_changes_what_is_named_and_nothing_else(
    scene: Scene,
) -> None:
    feed, edit = await scene.add_feed(category="news"), scene.storage.feeds.edit

    for change, expected in (
        (FeedChange(), feed),
        (FeedChange(private=True), replace(feed, private=True)),
        (FeedChange(category=""), replace(feed, private=True, category="")),
        (FeedChange(private=False), replace(feed, category="")),
        (FeedChange(own_period=90.0), replace(feed, category="", own_period=90.0)),
        (FeedChange(own_period=0.0), replace(feed, category="")),
    ):
        assert await edit(feed.id, change, "", START) == (expected, 0)
        assert await scene.storage.feeds.get(feed.id) == expected


async def test_credentials_make_a_feed_private_until_it_is_made_public_without_them(
    scene: Scene,
) -> None:
    feed, edit = await scene.add_feed(), scene.storage.feeds.edit

    closed, _ = await edit(feed.id, FeedChange(credentials=LOGIN), "", START)
    assert closed == replace(feed, private=True, has_credentials=True)
    (target,) = await scene.storage.feeds.targets([feed.id])
    assert target.credentials == LOGIN

    none = FeedChange(credentials=Credentials())
    assert await edit(feed.id, none, "", START) == (replace(feed, private=True), 0)
    (target,) = await scene.storage.feeds.targets([feed.id])
    assert target.credentials is None


MOVED = "https://b.example/feed"


async def test_a_feed_at_another_url_is_the_same_feed(scene: Scene) -> None:
    feed, feeds = await scene.add_feed(), scene.storage.feeds
    learned = Polling(code=404, failures=2, velocity=3.0, subscribers=4)
    of_url = replace(
        learned,
        fetch_url="https://c.example/feed",
        redirect=Redirect(target=MOVED, sightings=1, first_seen=START),
        validators=Validators(url=URL, etag='"1"'),
        missing_sightings=2,
        missing_since=START,
        retry_after=at(1_000),
        body_hash="00",
    )
    await scene.storage.log.commit(fetch(feed, polling=of_url, state=FeedState.GONE))

    moved, _ = await feeds.edit(feed.id, FeedChange(url=MOVED), "", at(50))

    assert (moved.id, moved.url, moved.polling) == (feed.id, MOVED, learned)
    assert (moved.state, moved.turned_at) == (FeedState.ACTIVE, at(50))
    assert moved.next_fetch == at(50)
    (due,) = await feeds.due(at(50), after={}, limit=9)
    assert due.url == MOVED
    for url in (MOVED, "HTTPS://B.example:443/feed", URL):
        assert await feeds.find(url) == moved


async def test_one_that_was_paused_stays_so_at_another_url(scene: Scene) -> None:
    feed, feeds = await scene.add_feed(), scene.storage.feeds
    await feeds.set_state(feed.id, FeedState.PAUSED, START)
    moved, _ = await feeds.edit(feed.id, FeedChange(url=MOVED), "", at(1))
    assert moved.state is FeedState.PAUSED
    same, _ = await feeds.edit(feed.id, FeedChange(url=MOVED), "", at(2))
    assert (same.url, same.turned_at) == (MOVED, moved.turned_at)


async def test_a_former_url_leads_to_whoever_has_it_now(scene: Scene) -> None:
    feed, feeds = await scene.add_feed(), scene.storage.feeds
    await feeds.edit(feed.id, FeedChange(url=MOVED), "", START)
    other = await scene.add_feed("c")
    await feeds.edit(other.id, FeedChange(url=URL), "", START)
    found = await feeds.find(URL)
    assert found is not None
    assert found.id == other.id


@pytest.mark.parametrize(
    ("shuts_out", "kept"),
    [
        (None, {ANONYMOUS, OPERATOR, 3}),
        (SubscriberGroup.STRANGERS, {OPERATOR, 3}),
        (SubscriberGroup.OTHERS, {OPERATOR}),
        (SubscriberGroup.ALL, set()),
    ],
)
async def test_editing_ends_the_subscriptions_of_whom_it_shuts_out(
    scene: Scene, shuts_out: SubscriberGroup | None, kept: set[int]
) -> None:
    feed = await scene.add_feed()
    made = [
        await scene.subscribe(feed, f"{account}", account=account)
        for account in (ANONYMOUS, OPERATOR, 3)
    ]

    change = FeedChange(private=True, shuts_out=shuts_out)
    _, ended = await scene.storage.feeds.edit(feed.id, change, "gone", START)

    assert ended == 3 - len(kept)
    now = [await scene.storage.subscriptions.get(each.id) for each in made]
    active = {each.account for each in now if each.state is SubscriptionState.ACTIVE}
    assert active == kept
    assert {each.ended_reason for each in now if each.account not in kept} <= {"gone"}


async def test_a_feed_that_was_removed_cannot_be_edited(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.storage.feeds.set_state(feed.id, FeedState.REMOVED, START)
    for feed_id in (feed.id, NO_FEED):
        with pytest.raises(NotFound):
            await scene.storage.feeds.edit(feed_id, FeedChange(), "", START)


ME, OTHER_ACCOUNT = AccountId(3), AccountId(4)


@pytest.mark.parametrize(
    ("terms", "readers"),
    [
        pytest.param({}, {None, NOBODY, ME, OTHER_ACCOUNT}, id="public"),
        pytest.param({"private": True}, {None, ME}, id="private"),
        pytest.param({"private": True, "credentials": LOGIN}, {None}, id="credentials"),
    ],
)
async def test_a_feed_is_read_by_those_who_may(
    scene: Scene, terms: dict[str, object], readers: set[AccountId | None]
) -> None:
    """``ME`` subscribed to it before it became what it is."""
    feed, feeds = await scene.add_feed(), scene.storage.feeds
    await scene.subscribe(feed, "mine", account=ME)
    await feeds.edit(feed.id, FeedChange(**terms), "", START)

    viewers = {None, NOBODY, ME, OTHER_ACCOUNT}
    asked = {(each, feed.id) for each in viewers}
    assert await feeds.readable(asked) == {(each, feed.id) for each in readers}
    for each in viewers:
        is_found = await feeds.find_readable(feed.url, each) is not None
        assert is_found == (each in readers)

    await feeds.set_state(feed.id, FeedState.REMOVED, START)
    assert await feeds.readable(asked) == frozenset()


async def test_only_who_is_subscribed_now_may_read_a_private_feed(scene: Scene) -> None:
    feed, feeds = await scene.add_feed(private=True), scene.storage.feeds
    made = await scene.subscribe(feed, account=ME)
    assert await feeds.find_readable(feed.url, ME) == feed

    await scene.storage.subscriptions.end(made.id, "", START, tell=False)

    assert await feeds.find_readable(feed.url, ME) is None
    assert await feeds.readable([]) == frozenset()


async def test_what_takes_credentials_is_nothing_that_others_can_subscribe_to(
    scene: Scene,
) -> None:
    feed = await scene.add_feed(private=True, credentials=LOGIN)
    for account in (ANONYMOUS, ME):
        with pytest.raises(NotFound):
            await scene.subscribe(feed, account=account)
    assert await scene.subscribe(feed, account=OPERATOR)


async def test_as_anybody_gets_it_a_feed_with_credentials_is_another(
    scene: Scene,
) -> None:
    closed = await scene.add_feed(private=True, credentials=LOGIN)
    feeds = scene.storage.feeds
    assert await feeds.find_open(URL) is None

    new = NewFeed(url=URL, private=True, as_anybody=True)
    opened, is_new = await feeds.add(new, START)

    assert is_new
    assert (await feeds.add(new, START)) == (opened, False)
    assert await feeds.find_open(URL) == opened
    assert await feeds.find(URL) == closed  # the operator's own
    await scene.subscribe(opened, account=ME)
    assert await feeds.find_readable(URL, ME) == opened
    assert await feeds.find_readable(URL, None) == closed


async def test_a_removed_feed_returns_as_one_that_is_yet_to_be_fetched(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    polling = Polling(last_fetch=at(1), last_success=at(1))
    await scene.storage.log.commit(fetch(feed, polling=polling))
    again, _ = await scene.storage.feeds.add(NewFeed(url=feed.url), at(2))
    assert again.polling == polling
    await scene.storage.feeds.set_state(feed.id, FeedState.REMOVED, at(3))
    again, _ = await scene.storage.feeds.add(NewFeed(url=feed.url), at(4))
    assert again.polling == Polling(last_success=at(1))


async def test_a_removed_feed_returns_with_all_its_state(scene: Scene) -> None:
    feed = await scene.add_feed()
    polling = Polling(validators=Validators(url=feed.url, etag='"1"'))
    commit = fetch(feed, polling=polling, seen=b"seen", next_fetch=at(900))
    await scene.storage.log.commit(commit)
    await scene.storage.feeds.set_state(feed.id, FeedState.REMOVED, at(1))

    again, is_new = await scene.storage.feeds.add(NewFeed(url=feed.url), at(2))

    assert not is_new
    assert (again.id, again.state, again.removed_at) == (
        feed.id,
        FeedState.ACTIVE,
        None,
    )
    assert again.next_fetch == at(900), "a re-add is no reason to fetch early"
    (target,) = await scene.storage.feeds.targets([feed.id])
    assert (target.feed.polling, target.seen) == (polling, b"seen")


@pytest.mark.parametrize(
    ("state", "returns"),
    [
        (FeedState.DEAD, True),
        (FeedState.GONE, True),
        (FeedState.PAUSED, False),
    ],
)
async def test_a_feed_that_was_given_up_returns_when_it_is_added_again(
    scene: Scene, state: FeedState, returns: bool
) -> None:
    feed = await scene.add_feed()
    polling = Polling(missing_sightings=9, missing_since=at(0), last_fetch=at(8))
    commit = fetch(feed, polling=polling, state=state, next_fetch=at(900))
    await scene.storage.log.commit(commit)
    stored = await scene.storage.feeds.get(feed.id)
    assert stored is not None
    assert (stored.state, stored.polling) == (state, polling)
    assert await scene.storage.feeds.due(at(1000), after={}, limit=9) == []

    again, is_new = await scene.storage.feeds.add(NewFeed(url=feed.url), at(2))

    assert not is_new
    assert again.state is (FeedState.ACTIVE if returns else state)
    assert (again.next_fetch, again.polling) == (at(900), polling)


async def test_pages_go_by_id_and_leave_removed_feeds_out(scene: Scene) -> None:
    feeds = [await scene.add_feed(name) for name in "abcd"]
    removed = FeedState.REMOVED
    await scene.storage.feeds.set_state(feeds[1].id, removed, START)

    first = await scene.storage.feeds.page(after=0, limit=2)
    rest = await scene.storage.feeds.page(after=first[-1].id, limit=2)
    gone = await scene.storage.feeds.page(after=0, limit=2, state=removed)

    assert [each.id for each in first + rest] == [feeds[i].id for i in (0, 2, 3)]
    assert [each.id for each in gone] == [feeds[1].id]


async def test_due_feeds_of_a_pace_come_by_time_and_then_by_id_page_by_page(
    scene: Scene,
) -> None:
    a, b, c, d = [(await scene.add_feed(name)).id for name in "abcd"]
    moves = [(a, at(5)), (b, at(3)), (c, at(3)), (d, at(7))]
    await scene.storage.feeds.defer(moves)

    first = await scene.storage.feeds.due(at(5), after={}, limit=2)
    rest = await scene.storage.feeds.due(at(5), after=places(first), limit=2)

    assert [each.id for each in first] == [b, c]
    assert [each.id for each in rest] == [a]
    assert {each.pace for each in first + rest} == {UNKNOWN_PACE}


async def add_fetched(scene: Scene, period: float, due: float) -> FeedId:
    """A feed that was fetched, with that period; due so many seconds after the start"""
    feed = await scene.add_feed(str((period, due)))
    polling = Polling(code=200, period=period)
    commit = fetch(feed, polling=polling, next_fetch=at(due))
    await scene.storage.log.commit(commit)
    return feed.id


async def test_of_overdue_feeds_the_latest_by_their_period_come_first(
    scene: Scene,
) -> None:
    daily = await add_fetched(scene, 86_400, 0)
    hourly = await add_fetched(scene, 3_600, 0)
    fast = await add_fetched(scene, 64, 3_000)
    late = await add_fetched(scene, 64, 2_000)
    just_due = await add_fetched(scene, 64, 3_600)
    await add_fetched(scene, 64, 3_601)

    found = await scene.storage.feeds.due(at(3_600), after={}, limit=9)

    assert [each.id for each in found] == [late, fast, hourly, daily, just_due]
    assert [each.pace for each in found] == [6, 6, 11, 16, 6]


async def test_pages_of_overdue_feeds_go_on_in_each_pace(scene: Scene) -> None:
    periods = [64, 900, 3_600, 86_400]
    ids = [
        await add_fetched(scene, period, 60 * number)
        for number in range(3)
        for period in periods
    ]
    feeds, found = scene.storage.feeds, list[DueFeed]()
    while page := await feeds.due(at(600), after=places(found), limit=5):
        found += page

    assert found == await feeds.due(at(600), after={}, limit=99)
    assert sorted(each.id for each in found) == sorted(ids)


async def test_a_period_that_changed_changes_the_pace(scene: Scene) -> None:
    feed = await scene.add_feed()
    for period in (60.0, 1e9, 0.5, 900.0):
        polling = Polling(code=200, period=period)
        await scene.storage.log.commit(fetch(feed, polling=polling))
        (due,) = await scene.storage.feeds.due(at(60), after={}, limit=1)
        assert due.pace == pace_of(period)


@pytest.mark.parametrize("state", sorted(set(FeedState) - {FeedState.ACTIVE}))
async def test_only_active_feeds_are_due(scene: Scene, state: FeedState) -> None:
    feed = await scene.add_feed()
    assert await scene.storage.feeds.next_due() == START

    await scene.storage.feeds.set_state(feed.id, state, START)

    assert await scene.storage.feeds.due(at(9), after={}, limit=9) == []
    assert await scene.storage.feeds.next_due() is None


async def test_a_feed_that_has_moved_is_due_at_its_new_address(scene: Scene) -> None:
    feed = await scene.add_feed()
    moved = Polling(fetch_url="https://moved.example/")
    await scene.storage.log.commit(fetch(feed, polling=moved))

    (due,) = await scene.storage.feeds.due(at(99), after={}, limit=1)

    assert due.url == "https://moved.example/"


async def test_deferring_moves_many_feeds_and_ignores_unknown_ones(
    scene: Scene,
) -> None:
    first, second = await scene.add_feed("a"), await scene.add_feed("b")

    await scene.storage.feeds.defer(
        [(first.id, at(3)), (second.id, at(2)), (NO_FEED, at(1))]
    )
    await scene.storage.feeds.defer([])

    assert await scene.storage.feeds.next_due() == at(2)


async def overdue(scene: Scene, count: int, period: float) -> list[FeedId]:
    feeds = [await scene.add_feed(f"p{period:g}-{number}") for number in range(count)]
    for feed in feeds:
        polling = Polling(period=period, last_fetch=START)
        await scene.storage.log.commit(
            fetch(feed, polling=polling, next_fetch=START + MINUTE)
        )
    return [feed.id for feed in feeds]


async def test_hosts_that_want_no_requests_are_known_until_they_do(
    scene: Scene,
) -> None:
    feeds = scene.storage.feeds
    await feeds.hold_hosts([("b.example", at(60)), ("a.example", at(90))], START)
    await feeds.hold_hosts([("b.example", at(30)), ("c.example", at(10))], START)

    assert await feeds.held_hosts(at(10)) == [
        ("a.example", at(90)),
        ("b.example", at(60)),
    ]
    await feeds.hold_hosts([("b.example", at(70))], at(65))
    assert await feeds.held_hosts(at(69)) == [
        ("a.example", at(90)),
        ("b.example", at(70)),
    ]
    assert await feeds.held_hosts(at(90)) == []


async def test_overdue_feeds_are_spread_evenly_over_their_period(scene: Scene) -> None:
    await overdue(scene, 40, 20.0)
    now = at(3_600)

    moved = await scene.storage.feeds.spread(
        now, longest=timedelta(minutes=5), per_second=1
    )

    assert moved == 40
    due = await scene.storage.feeds.due(now + MINUTE, after={}, limit=99)
    by_second = Counter(int((each.next_fetch - now).total_seconds()) for each in due)
    assert set(by_second) == set(range(20))
    assert max(by_second.values()) <= 3


async def test_overdue_feeds_are_spread_over_no_more_than_they_need(
    scene: Scene,
) -> None:
    slow, fast = await overdue(scene, 30, 86_400.0), await overdue(scene, 10, 2.0)
    now = at(3_600)

    await scene.storage.feeds.spread(now, longest=timedelta(minutes=5), per_second=10)

    due = await scene.storage.feeds.due(now + MINUTE, after={}, limit=99)
    waits = {each.id: (each.next_fetch - now).total_seconds() for each in due}
    assert waits.keys() == {*slow, *fast}
    assert max(waits[each] for each in slow) < 4  # 40 feeds, ten of them a second
    assert max(waits[each] for each in fast) < 2
    longest = timedelta(seconds=1)
    later = now + MINUTE
    await scene.storage.feeds.spread(later, longest=longest, per_second=10)
    due = await scene.storage.feeds.due(later + longest, after={}, limit=99)
    assert len(due) == 40


async def test_feeds_that_are_not_overdue_or_were_never_fetched_stay(
    scene: Scene,
) -> None:
    new = await scene.add_feed("new")
    [known] = await overdue(scene, 1, 60.0)
    [paused] = await overdue(scene, 1, 61.0)
    await scene.storage.feeds.set_state(paused, FeedState.PAUSED, START)

    assert await scene.storage.feeds.spread(at(60), longest=MINUTE, per_second=1) == 0

    due = await scene.storage.feeds.due(at(60), after={}, limit=9)
    assert {each.id: each.next_fetch for each in due} == {
        new.id: START,
        known: START + MINUTE,
    }


async def test_a_feed_that_is_being_visited_is_not_the_one_due_longest(
    scene: Scene,
) -> None:
    first, second = await scene.add_feed("a"), await scene.add_feed("b")
    await scene.storage.feeds.defer([(first.id, at(1)), (second.id, at(2))])

    assert (await scene.storage.backlog()).oldest_due == at(1)
    assert (await scene.storage.backlog({first.id})).oldest_due == at(2)
    assert (await scene.storage.backlog({first.id, second.id})).oldest_due is None


async def test_targets_hold_all_that_a_fetch_starts_from(scene: Scene) -> None:
    feed = await scene.add_feed(credentials=LOGIN)
    await scene.subscribe(feed, "1", account=OPERATOR)
    polling = Polling(
        period=900.0,
        last_fetch=START,
        redirect=Redirect(target="https://b.example/", sightings=1, first_seen=START),
        hints=Hints(skip_hours=(1, 2)),
        posting=Posting(weight=1.5, at=START, since=START),
    )
    await scene.storage.log.commit(fetch(feed, polling=polling, seen=b"seen"))

    (target,) = await scene.storage.feeds.targets([feed.id])

    assert target.feed.polling == polling
    assert (target.credentials, target.seen) == (LOGIN, b"seen")
    assert (target.subscribers, target.keeps_body) == (1, False)


async def test_targets_come_as_asked_without_unknown_and_removed_ones(
    scene: Scene,
) -> None:
    a, b, c = [(await scene.add_feed(name)).id for name in "abc"]
    await scene.storage.feeds.set_state(b, FeedState.REMOVED, START)

    targets = await scene.storage.feeds.targets([c, NO_FEED, b, a])

    assert [each.feed.id for each in targets] == [c, a]
    assert targets[0].seen == b""
    assert targets[0].credentials is None


async def test_habits_are_those_of_feeds_that_have_posted(scene: Scene) -> None:
    feeds = [await scene.add_feed(name) for name in "abcd"]
    never_fetched, silent, *posting = feeds
    await scene.storage.log.commit(fetch(silent))
    for feed in posting:
        habits = f"of {feed.id}".encode()
        polling = Polling(posting=Posting(habits=habits, since=START))
        await scene.storage.log.commit(fetch(feed, polling=polling))
    await scene.storage.feeds.set_state(posting[1].id, FeedState.REMOVED, START)

    (told,) = await scene.storage.feeds.postings(10)
    assert told == Posting(habits=b"of 3", since=START)
    assert never_fetched.polling.posting.habits == b""


async def test_a_removed_feed_hides_the_habits_of_none_that_comes_after_it(
    scene: Scene,
) -> None:
    feeds = [await scene.add_feed(name) for name in "abcd"]
    for feed in feeds:
        polling = Polling(posting=Posting(habits=f"of {feed.id}".encode()))
        await scene.storage.log.commit(fetch(feed, polling=polling))
    for feed in (feeds[0], feeds[2]):
        await scene.storage.feeds.set_state(feed.id, FeedState.REMOVED, START)

    told = await scene.storage.feeds.postings(2)
    assert [each.habits for each in told] == [b"of 2", b"of 4"]


async def test_of_many_feeds_some_from_everywhere_tell_their_habits(
    scene: Scene,
) -> None:
    for number in range(12):
        feed = await scene.add_feed(f"f{number}")
        polling = Polling(posting=Posting(habits=bytes([feed.id])))
        await scene.storage.log.commit(fetch(feed, polling=polling))

    some = [each.habits for each in await scene.storage.feeds.postings(4)]

    assert len(set(some)) == len(some) == 4
    assert max(some) > b"\x08"
    assert min(some) < b"\x04"


async def test_a_body_is_asked_for_only_while_a_subscription_is_as_is(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    as_is = await scene.subscribe(feed, "as-is", format=Format.AS_IS)
    (before,) = await scene.storage.feeds.targets([feed.id])
    await scene.storage.subscriptions.end(as_is.id, "enough", START, tell=False)
    (after,) = await scene.storage.feeds.targets([feed.id])

    assert (before.keeps_body, after.keeps_body) == (True, False)


async def test_states_are_set_and_returned(scene: Scene) -> None:
    feed = await scene.add_feed()
    feeds = scene.storage.feeds

    paused = await feeds.set_state(feed.id, FeedState.PAUSED, at(1))
    resumed = await feeds.set_state(feed.id, FeedState.ACTIVE, at(2), next_fetch=at(30))
    removed = await feeds.set_state(feed.id, FeedState.REMOVED, at(3))
    removed_again = await feeds.set_state(feed.id, FeedState.REMOVED, at(4))

    assert (paused.state, paused.next_fetch) == (FeedState.PAUSED, START)
    assert (resumed.state, resumed.next_fetch) == (FeedState.ACTIVE, at(30))
    assert removed.removed_at == removed_again.removed_at == at(3)


async def test_an_unknown_feed_has_no_state_to_set(scene: Scene) -> None:
    with pytest.raises(NotFound):
        await scene.storage.feeds.set_state(NO_FEED, FeedState.PAUSED, START)


async def test_a_purged_feed_takes_all_that_is_its_own_and_nothing_else(
    scene: Scene,
) -> None:
    gone, kept = await scene.add_feed("gone"), await scene.add_feed("kept")
    other = await scene.subscribe(kept, "other")
    lost = await scene.subscribe_retrying(gone)
    position = await scene.publish(kept, "news")
    await scene.storage.feeds.set_state(gone.id, FeedState.REMOVED, START)

    too_early = await scene.storage.feeds.purge_removed(START, 9)
    purged = await scene.storage.feeds.purge_removed(at(1), 9)

    assert (too_early, purged) == (0, 1)
    assert await scene.storage.feeds.find(gone.url) is None
    assert await scene.storage.subscriptions.get(lost.id) is None
    assert await scene.storage.deliveries.retrying(after=0, limit=9) == []
    assert await scene.storage.deliveries.attempts(lost.id, 9) == []
    assert await scene.storage.subscriptions.get(other.id) == other
    (record,) = await scene.storage.log.records(after=0, limit=9)
    assert record.position == position


async def test_a_page_of_the_longest_removed_feeds_is_purged(scene: Scene) -> None:
    first, second = await scene.add_feed("a"), await scene.add_feed("b")
    await scene.storage.feeds.set_state(first.id, FeedState.REMOVED, at(2))
    await scene.storage.feeds.set_state(second.id, FeedState.REMOVED, at(1))

    assert await scene.storage.feeds.purge_removed(START + timedelta(days=30), 1) == 1

    assert await scene.storage.feeds.get(second.id) is None
    assert await scene.storage.feeds.get(first.id) is not None


async def test_removed_unknown_and_private_feeds_are_hidden(scene: Scene) -> None:
    feeds = scene.storage.feeds
    public, removed, secret, secret_and_removed = [
        (await feeds.add(NewFeed(url=f"{URL}/{n}", private=n > 1), START))[0].id
        for n in range(4)
    ]
    for each in (removed, secret_and_removed):
        await feeds.set_state(each, FeedState.REMOVED, START)

    asked = [public, removed, secret, secret_and_removed, NO_FEED]
    hidden = await feeds.hidden(asked)

    assert hidden.removed == {removed, secret_and_removed, NO_FEED}
    assert hidden.private == {secret}


async def test_of_no_feeds_none_is_hidden(scene: Scene) -> None:
    hidden = await scene.storage.feeds.hidden([])

    assert (hidden.removed, hidden.private) == (frozenset(), frozenset())


# --- polls ---


def a_poll(seconds: float, **more: object) -> Poll:
    polled = {
        "at": at(seconds),
        "reason": PollReason.PLANNED,
        "outcome": PollOutcome.UNCHANGED,
        "code": 304,
        "milliseconds": 12,
    }
    return Poll(**{**polled, **more})


async def test_polls_are_kept_with_their_fetch_the_latest_first(scene: Scene) -> None:
    feed, other = await scene.add_feed(), await scene.add_feed("b")
    failed = a_poll(
        60.0005,
        reason=PollReason.RETRY_AFTER_FAILURE,
        outcome=PollOutcome.FAILED,
        code=0,
        milliseconds=20_000,
    )
    news = a_poll(120, outcome=PollOutcome.NEW, code=200, entries=3)
    assert await scene.storage.feeds.polls(feed.id) == []

    for poll in (a_poll(0), failed):
        await scene.storage.log.commit(fetch(feed, poll=poll))
    await scene.storage.log.commit(fetch(feed, **written("k"), poll=news))
    await scene.storage.log.commit(fetch(feed))  # of what was no poll

    kept = [news, replace(failed, at=at(60)), a_poll(0)]
    assert await scene.storage.feeds.polls(feed.id) == kept
    assert await scene.storage.feeds.polls(other.id) == []
    assert await scene.storage.feeds.polls(NO_FEED) == []
    ids = [other.id, feed.id, NO_FEED]
    assert await scene.storage.feeds.last_failures(ids) == {feed.id: kept[1]}


async def test_the_polls_of_a_day_are_kept_and_the_last_64(scene: Scene) -> None:
    feed = await scene.add_feed()
    hourly = [at(3_600 * number) for number in range(KEPT_POLLS + 2)]
    quarters = [hourly[-1] + timedelta(minutes=15 * n) for n in range(1, 100)]

    async def poll(times: Sequence[datetime]) -> list[datetime]:
        polls = [replace(a_poll(0), at=each) for each in times]
        commit = scene.storage.log.commit
        await asyncio.gather(*(commit(fetch(feed, poll=each)) for each in polls))
        return [each.at for each in await scene.storage.feeds.polls(feed.id)]

    assert await poll(hourly) == hourly[:1:-1]
    assert await poll(quarters) == quarters[:-98:-1]


async def test_a_fetch_of_a_removed_feed_leaves_no_poll(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.storage.log.commit(fetch(feed, poll=a_poll(0)))
    await scene.storage.feeds.set_state(feed.id, FeedState.REMOVED, START)

    for changes in ({}, written("k")):
        late = fetch(feed, **changes, poll=a_poll(60))
        assert await scene.storage.log.commit(late) is NotStored.GONE

    assert await scene.storage.feeds.polls(feed.id) == [a_poll(0)]
