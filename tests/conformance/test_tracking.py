from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from math import inf

import pytest
from msgspec.structs import replace

from protocols.model import Entry, Feed
from storage.contract import Storage
from storage.errors import StaleQueries
from storage.packing import pack, unpack
from storage.records import (
    NOBODY,
    OPERATOR,
    AccessEnded,
    AccountId,
    ControlEvent,
    Credentials,
    FeedChange,
    FeedId,
    FeedState,
    FetchCommit,
    Matched,
    MatchWrite,
    Polling,
    Position,
    QueriesCame,
    QueriesWent,
    RecordKind,
    Retention,
    SourceFeed,
    StoredFeed,
    TrackQuery,
)
from tests.support.documents import an_entry
from tests.support.storage_scene import (
    START,
    Scene,
    fetch,
    noise,
    record,
    stored_at,
)

IS_MODELLED = False
DAY = timedelta(days=1)
LOGIN = Credentials(username="ann")
ALL = Retention(soft_age=inf, soft_count=0, hard_age=inf, hard_count=0)


@pytest.fixture
async def feed(storage: Storage) -> StoredFeed:
    return await Scene(storage).add_feed()


async def news_of(
    storage: Storage, feed: StoredFeed, *keys: str, matching: Sequence[FeedId] = ()
) -> FetchCommit:
    """New entries, of which the queries match the first."""
    commit = fetch(
        feed,
        entries=tuple(map(an_entry, keys)),
        records=(record(*keys, kind=RecordKind.ENTRIES),),
        head=Feed(title="head"),
    )
    matches = tuple(MatchWrite(each, keys[:1]) for each in matching)
    version = await storage.tracking.version()
    return replace(commit, matched=Matched(version=version, matches=matches))


async def keys_of(storage: Storage, feed_id: FeedId) -> list[list[str]]:
    found = await storage.log.records(after=Position(0), limit=100, feed_id=feed_id)
    return [
        [
            stored.key
            for stored in await storage.log.entries([r.entry_id for r in each.entries])
        ]
        for each in found
    ]


# --- queries ---


async def test_a_query_is_a_feed_that_is_never_due_and_not_listed(
    storage: Storage,
) -> None:
    query = await storage.tracking.add("hardy laurel", "laurel hardy", START)

    assert (query.state, query.private) == (FeedState.TRACK, True)
    assert await storage.feeds.due(START + DAY, after={}, limit=10) == []
    assert await storage.feeds.next_due() is None
    assert await storage.feeds.page(after=FeedId(0), limit=10) == []
    assert await storage.feeds.targets([query.id]) == []
    assert (await storage.backlog()).feeds == 0
    assert await storage.feeds.page(after=FeedId(0), limit=10, state=query.state)


async def test_the_same_query_is_the_same_feed(storage: Storage) -> None:
    first = await storage.tracking.add("laurel", "laurel", START)

    assert await storage.tracking.add("laurel", "laurel", START + DAY) == first
    assert await storage.tracking.add("hardy", "hardy", START) != first
    assert await storage.tracking.find("laurel") == first
    assert await storage.tracking.find("chaplin") is None
    assert await storage.tracking.version() == 2


ME, OTHER = AccountId(3), AccountId(4)


async def test_each_account_has_queries_of_its_own(storage: Storage) -> None:
    mine = await storage.tracking.add("laurel", "laurel", START, ME)
    others = await storage.tracking.add("laurel", "laurel", START, OTHER)

    assert mine.id != others.id
    assert await storage.tracking.add("laurel", "laurel", START + DAY, ME) == mine
    assert await storage.tracking.find("laurel") == mine
    viewers = (None, ME, OTHER, NOBODY)
    asked = {(each, mine.id) for each in viewers}
    assert await storage.feeds.readable(asked) == {(None, mine.id), (ME, mine.id)}


async def test_a_query_of_nobody_becomes_that_of_who_wants_it_alone(
    storage: Storage,
) -> None:
    first = await storage.tracking.add("laurel", "laurel", START)
    shared = await storage.tracking.add("hardy", "hardy", START)
    await Scene(storage).subscribe(first, "mine", account=ME)
    for account in (ME, OTHER):
        await Scene(storage).subscribe(shared, f"{account}", account=account)

    assert await storage.tracking.add("laurel", "laurel", START, ME) == first
    assert (await storage.tracking.add("laurel", "laurel", START)).id != first.id
    assert (await storage.tracking.add("hardy", "hardy", START, ME)).id != shared.id


@pytest.mark.parametrize(
    ("terms", "finders"),
    [
        pytest.param({}, {NOBODY, ME, OTHER, OPERATOR}, id="public"),
        pytest.param({"private": True}, {ME, OPERATOR}, id="private"),
        pytest.param({"credentials": LOGIN}, {OPERATOR}, id="credentials"),
    ],
)
async def test_a_query_finds_what_its_owner_may_read(
    storage: Storage,
    feed: StoredFeed,
    terms: dict[str, object],
    finders: set[AccountId],
) -> None:
    """``ME`` subscribes to the feed."""
    owners = (NOBODY, ME, OTHER, OPERATOR)
    added = {
        each: await storage.tracking.add("laurel", "laurel", START, each)
        for each in (*owners[1:], NOBODY)
    }
    await Scene(storage).subscribe(feed, account=ME)
    await storage.feeds.edit(feed.id, FeedChange(**terms), "", START)

    queries = [each.id for each in added.values()]
    await storage.log.commit(await news_of(storage, feed, "a", matching=queries))

    for owner, query in added.items():
        is_found = owner in finders
        assert await keys_of(storage, query.id) == ([["a"]] if is_found else [])
        assert bool(await storage.tracking.matches([query.id], 9)) is is_found
        assert bool(await storage.log.latest_entries(query.id, 9)) is is_found
        told = await storage.log.source(feed.id, query.id)
        assert (told is not None) is is_found


async def test_what_a_query_found_is_shown_no_more_to_who_may_not_read_it_now(
    storage: Storage,
) -> None:
    feed = await Scene(storage).add_feed("p", private=True)
    mine = await Scene(storage).subscribe(feed, account=ME)
    query = await storage.tracking.add("laurel", "laurel", START, ME)
    await storage.log.commit(await news_of(storage, feed, "a", matching=[query.id]))
    assert await storage.tracking.matches([query.id], 9)

    await storage.subscriptions.end(mine.id, "", START, tell=False)

    assert await storage.tracking.matches([query.id], 9) == []
    assert await storage.log.latest_entries(query.id, 9) == []
    assert await storage.log.source(feed.id, query.id) is None


async def test_queries_come_in_pages(storage: Storage) -> None:
    added = [
        await storage.tracking.add(query, query, START) for query in ("a1", "b2", "c3")
    ]
    await storage.feeds.set_state(added[1].id, FeedState.REMOVED, START)

    first = await storage.tracking.page(after=FeedId(0), limit=1)
    rest = await storage.tracking.page(after=first[-1].feed_id, limit=9)

    assert first == [TrackQuery(added[0].id, "a1")]
    assert rest == [TrackQuery(added[2].id, "c3")]
    assert (await storage.backlog()).track_queries == 2


async def test_who_watches_is_told_of_queries_that_come_go_and_return(
    storage: Storage,
) -> None:
    told: list[ControlEvent] = []
    with storage.control.watch(told.append):
        query = await storage.tracking.add("laurel", "laurel", START)
        await storage.tracking.add("laurel", "laurel", START)
        await storage.tracking.retire(START + DAY, [], START + DAY, 10)
        await storage.tracking.retire(START + DAY, [], START + DAY, 10)
        assert (
            await storage.tracking.add("laurel", "laurel", START + 2 * DAY)
        ).id == query.id
    await storage.tracking.add("hardy", "hardy", START)

    assert told == [
        QueriesCame(1, (TrackQuery(query.id, "laurel"),)),
        QueriesWent((query.id,)),
        QueriesCame(2, (TrackQuery(query.id, "laurel"),)),
    ]


async def test_who_watches_is_told_of_a_query_that_is_removed_by_hand(
    storage: Storage, feed: StoredFeed
) -> None:
    query = await storage.tracking.add("laurel", "laurel", START)
    told: list[ControlEvent] = []
    with storage.control.watch(told.append):
        for _ in range(2):
            await storage.feeds.set_state(query.id, FeedState.REMOVED, START)
        await storage.feeds.set_state(feed.id, FeedState.REMOVED, START)

    went = [each for each in told if isinstance(each, QueriesWent)]
    assert went == [QueriesWent((query.id,))]
    assert told.count(AccessEnded(feeds=(feed.id,))) == 1


async def test_a_query_stays_as_long_as_somebody_wants_it(storage: Storage) -> None:
    scene = Scene(storage)
    names = ("subscribed", "ended", "listened", "asked", "unwanted")
    feeds = {name: await storage.tracking.add(name, name, START) for name in names}
    await scene.subscribe(feeds["subscribed"])
    ended = await scene.subscribe(feeds["ended"], "e")
    await storage.subscriptions.end(ended.id, "over", START + DAY, tell=False)
    await storage.tracking.add("asked", "asked", START + DAY)
    listened = [feeds["listened"].id]

    since = START + timedelta(hours=1)
    assert await storage.tracking.retire(since, listened, START + DAY, 10) == 1

    left = await storage.tracking.page(after=FeedId(0), limit=10)
    assert [each.query for each in left] == [*names[:4]]
    gone = await storage.tracking.find("unwanted")
    assert gone is not None
    assert (gone.state, gone.removed_at) == (FeedState.REMOVED, START + DAY)


async def test_a_purged_query_leaves_nothing(storage: Storage) -> None:
    await storage.tracking.add("laurel", "laurel", START)
    await storage.tracking.retire(START + DAY, [], START + DAY, 10)

    assert await storage.feeds.purge_removed(START + 2 * DAY, 10) == 1

    assert await storage.tracking.find("laurel") is None
    again = await storage.tracking.add("laurel", "laurel", START + 2 * DAY)
    assert await storage.tracking.page(after=FeedId(0), limit=10) == [
        TrackQuery(again.id, "laurel")
    ]


# --- matches ---


async def test_matches_are_records_of_the_query_behind_those_of_the_feed(
    storage: Storage, feed: StoredFeed
) -> None:
    query = await storage.tracking.add("laurel", "laurel", START)
    commit = await news_of(storage, feed, "a", "b", matching=[query.id])

    assert await stored_at(storage.log.commit(commit)) == (1, 2)

    own, found = await storage.log.records(after=Position(0), limit=10)
    assert (own.feed_id, own.source) == (feed.id, None)
    assert (found.feed_id, found.source) == (query.id, feed.id)
    assert (found.kind, found.status) == (RecordKind.ENTRIES, own.status)
    assert found.entries == own.entries[:1]
    assert await keys_of(storage, query.id) == [["a"]]
    assert (await storage.log.end()).position == 2


async def test_a_match_goes_to_the_subscribers_of_the_query_alone(
    storage: Storage, feed: StoredFeed
) -> None:
    scene = Scene(storage)
    query = await storage.tracking.add("laurel", "laurel", START)
    subscriber = await scene.subscribe(query)

    await storage.log.commit(
        await news_of(storage, feed, "a", "b", matching=[query.id])
    )

    [chunk] = await scene.claim()
    assert (chunk.record.position, chunk.record.source) == (2, feed.id)
    assert [member.id for _, member in chunk.pending] == [subscriber.id]


async def test_a_match_that_cannot_be_written_takes_the_whole_commit_with_it(
    storage: Storage, feed: StoredFeed
) -> None:
    """So a crash leaves both or neither: it is one transaction."""
    query = await storage.tracking.add("laurel", "laurel", START)
    commit = await news_of(storage, feed, "a", matching=[query.id])
    assert commit.matched
    amiss = MatchWrite(query.id, ("never written",))

    with pytest.raises(Exception, match="never written"):
        await storage.log.commit(
            replace(commit, matched=replace(commit.matched, matches=(amiss,)))
        )

    assert await storage.log.latest_entries(feed.id, 10) == []
    assert (await storage.log.end()).position == 0


@pytest.mark.parametrize(("minutes", "retired"), [(59, 1), (61, 0)])
async def test_that_a_query_is_wanted_is_noted_once_an_hour(
    storage: Storage, minutes: int, retired: int
) -> None:
    made = await storage.tracking.add("laurel", "laurel", START)
    again = START + timedelta(minutes=minutes)
    assert await storage.tracking.add("laurel", "Laurel", again) == made

    since = START + timedelta(minutes=30)
    assert await storage.tracking.retire(since, [], again, 9) == retired


async def test_entries_not_held_against_the_newest_query_are_not_committed(
    storage: Storage, feed: StoredFeed
) -> None:
    late = await news_of(storage, feed, "a")
    await storage.tracking.add("laurel", "laurel", START)

    with pytest.raises(StaleQueries):
        await storage.log.commit(late)

    assert (await storage.log.end()).position == 0
    anew = await news_of(storage, feed, "a")
    assert await stored_at(storage.log.commit(anew)) == (1,)


async def test_what_is_none_for_tracking_is_committed_whatever_queries_there_are(
    storage: Storage, feed: StoredFeed
) -> None:
    commit = await news_of(storage, feed, "a")
    await storage.tracking.add("laurel", "laurel", START)

    assert await stored_at(storage.log.commit(replace(commit, matched=None))) == (1,)


async def test_matches_of_a_query_that_was_removed_meanwhile_are_left_out(
    storage: Storage, feed: StoredFeed
) -> None:
    gone = await storage.tracking.add("laurel", "laurel", START)
    query = await storage.tracking.add("hardy", "hardy", START)
    commit = await news_of(storage, feed, "a", matching=[gone.id, query.id])
    await storage.feeds.set_state(gone.id, FeedState.REMOVED, START)

    assert await stored_at(storage.log.commit(commit)) == (1, 2)

    assert await keys_of(storage, gone.id) == []
    assert await keys_of(storage, query.id) == [["a"]]


async def test_nothing_of_a_private_feed_is_matched(storage: Storage) -> None:
    """Not even if it became private while its entries were held against queries."""
    feed = await Scene(storage).add_feed("p", private=True)
    query = await storage.tracking.add("laurel", "laurel", START)

    commit = await news_of(storage, feed, "a", matching=[query.id])
    assert await stored_at(storage.log.commit(commit)) == (1,)

    assert await storage.log.source(feed.id) is None


async def test_the_source_of_a_match_has_its_url_and_head(
    storage: Storage, feed: StoredFeed
) -> None:
    assert await storage.log.source(feed.id) == SourceFeed(feed.url, None)

    await storage.log.commit(await news_of(storage, feed, "a"))

    assert await storage.log.source(feed.id) == SourceFeed(
        feed.url, pack(Feed(title="head"))
    )


async def test_an_entry_stays_as_long_as_a_record_of_a_query_names_it(
    storage: Storage, feed: StoredFeed
) -> None:
    query = await storage.tracking.add("laurel", "laurel", START)
    keys = [f"entry {number}" for number in range(60)]
    commit = await news_of(storage, feed, *keys)
    version = await storage.tracking.version()
    match = MatchWrite(query.id, (keys[-1],))
    await storage.log.commit(
        replace(commit, matched=Matched(version=version, matches=(match,)))
    )
    await Scene(storage).deliver()

    await storage.log.trim(ALL, START, 1)
    assert await keys_of(storage, query.id) == [[keys[-1]]]

    await storage.log.trim(ALL, START, 1)
    left = await storage.log.latest_entries(feed.id, 100)
    assert [each.key for each in left] == keys[:50]


async def test_the_latest_entries_of_a_query_are_those_it_matched(
    storage: Storage, feed: StoredFeed
) -> None:
    query = await storage.tracking.add("laurel", "laurel", START)
    assert await storage.log.latest_entries(query.id, 10) == []
    for keys in (("a", "b"), ("c",), ("a", "d")):
        await storage.log.commit(
            await news_of(storage, feed, *keys, matching=[query.id])
        )
    secret = await Scene(storage).add_feed("s")
    await storage.log.commit(await news_of(storage, secret, "x", matching=[query.id]))
    await storage.feeds.edit(secret.id, FeedChange(private=True), "", START)

    async def latest(limit: int) -> list[str]:
        found = await storage.log.latest_entries(query.id, limit)
        return [each.key for each in found]

    assert await latest(10) == ["a", "c"]
    assert await latest(1) == ["a"]


HIDDEN = [
    {"state": FeedState.REMOVED},
    {"private": True},
    {"unlisted": True},
]


async def hide(storage: Storage, feed: StoredFeed, how: dict[str, object]) -> None:
    """Remove a feed, make it private, or have its document say that it is unlisted."""
    if "state" in how:
        await storage.feeds.set_state(feed.id, FeedState.REMOVED, START)
    elif "private" in how:
        await storage.feeds.edit(feed.id, FeedChange(private=True), "", START)
    else:
        await storage.log.commit(fetch(feed, polling=Polling(unlisted=True), seen=b""))


@pytest.mark.parametrize("how", HIDDEN, ids=str)
async def test_what_was_matched_of_a_feed_that_is_hidden_since_is_shown_no_more(
    storage: Storage, feed: StoredFeed, how: dict[str, object]
) -> None:
    query = await storage.tracking.add("laurel", "laurel", START)
    await storage.log.commit(await news_of(storage, feed, "a", matching=[query.id]))
    assert len(await storage.tracking.matches([query.id], 9)) == 1

    await hide(storage, feed, how)

    assert await storage.tracking.matches([query.id], 9) == []
    assert await storage.log.latest_entries(query.id, 9) == []


@pytest.mark.parametrize(("how", "is_told"), [(HIDDEN[0], False), (HIDDEN[2], True)])
async def test_a_match_that_waits_is_told_unless_its_feed_was_removed(
    storage: Storage, feed: StoredFeed, how: dict[str, object], is_told: bool
) -> None:
    await hide(storage, feed, how)

    assert (await storage.log.source(feed.id) is not None) is is_told


async def test_a_matched_entry_that_is_unlisted_since_is_shown_no_more(
    storage: Storage, feed: StoredFeed
) -> None:
    query = await storage.tracking.add("laurel", "laurel", START)
    await storage.log.commit(
        await news_of(storage, feed, "a", "b", matching=[query.id])
    )
    [match] = await storage.tracking.matches([query.id], 9)
    unlisted = an_entry("a", title="changed", unlisted=True)

    await storage.log.commit(fetch(feed, entries=(unlisted,)))

    assert await storage.log.latest_entries(query.id, 9) == []
    assert await storage.entries.newest([], limit=9, also=[match.entry_id]) == []
    own = await storage.entries.newest([feed.id], limit=9, also=[match.entry_id])
    assert [each.key for each in own] == ["a", "b"]


async def test_a_deleted_entry_is_none_of_the_latest_of_a_query(
    storage: Storage, feed: StoredFeed
) -> None:
    query = await storage.tracking.add("laurel", "laurel", START)
    await storage.log.commit(await news_of(storage, feed, "a", matching=[query.id]))
    await Scene(storage).publish(feed, "a", kind=RecordKind.DELETED)

    assert await storage.log.latest_entries(query.id, 10) == []


async def test_a_sample_is_of_what_was_stored_last_in_public_feeds(
    storage: Storage, feed: StoredFeed
) -> None:
    hidden = await Scene(storage).add_feed("hidden", private=True)
    long = noise(500)
    await storage.log.commit(await news_of(storage, feed, "a", "b", long))
    await storage.log.commit(await news_of(storage, hidden, "c"))

    async def sample(limit: int, largest: int) -> list[str]:
        bodies = await storage.tracking.sample(limit, largest)
        return sorted(unpack(each, Entry).key for each in bodies)

    assert await sample(9, 500) == ["a", "b"]
    assert await sample(2, 5_000) == [long]
    assert await sample(1, 5_000) == []
