"""The log, on every engine: one transaction in, many readers out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from math import inf
from typing import Any

import pytest
from msgspec.structs import replace

from protocols.model import Deletion, Entry, Feed, Hints, Status
from storage.errors import BodyRequired, WriteFailed
from storage.packing import pack, pack_bytes, unpack
from storage.records import (
    DocumentWrite,
    EntryRef,
    FeedChange,
    FeedState,
    FetchCommit,
    Format,
    NewFeed,
    NotStored,
    Polling,
    PollReason,
    Position,
    Posting,
    RecordKind,
    RecordWrite,
    Retention,
    Stored,
    StoredBody,
    StoredFeed,
    Validators,
)
from tests.support.documents import an_entry
from tests.support.storage_scene import (
    NO_FEED,
    START,
    Scene,
    at,
    fetch,
    record,
    stored_at,
    written,
)

URL = "https://elsewhere.example/"
DOCUMENT = DocumentWrite(content_type="text/xml", body=b"as it came")
STORED = StoredBody(content_type="text/xml", body=pack_bytes(b"as it came"))


def keep(*, soft: int = 0, hard: int = 1_000) -> Retention:
    """So many records."""
    return Retention(soft_age=inf, soft_count=soft, hard_age=inf, hard_count=hard)


async def test_positions_are_dense_over_all_feeds(scene: Scene) -> None:
    a, b = await scene.add_feed("a"), await scene.add_feed("b")

    first = await stored_at(
        scene.storage.log.commit(fetch(a, records=(record(), record())))
    )
    nothing = await stored_at(scene.storage.log.commit(fetch(a)))
    second = await stored_at(scene.storage.log.commit(fetch(b, records=(record(),))))

    assert (first, nothing, second) == ((1, 2), (), (3,))
    head = await scene.storage.log.end()
    assert head.position == 3
    assert str(head) == f"{head.epoch}-3"
    assert head.epoch.isalnum()


async def test_a_large_commit_is_one_like_any_other(scene: Scene) -> None:
    feed = await scene.add_feed()
    keys = [f"key {number}" for number in range(300)]

    commit = fetch(feed, **written(*keys), records=(record(*keys),))
    positions = await stored_at(scene.storage.log.commit(commit))

    (stored,) = await scene.storage.log.records(after=Position(0), limit=10)
    assert positions == (stored.position,)
    entries = await scene.storage.log.entries([ref.entry_id for ref in stored.entries])
    assert [entry.key for entry in entries] == keys


async def test_a_commit_applies_all_that_a_fetch_found(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed, "as-is", format=Format.AS_IS)
    commit = fetch(
        feed,
        title="News",
        format="rss",
        head=Feed(title="News"),
        seen=b"seen",
        body=DOCUMENT,
        state=FeedState.GONE,
        entries=(an_entry("k"),),
        records=(record("k"),),
    )

    await scene.storage.log.commit(commit)

    stored = await scene.storage.feeds.get(feed.id)
    assert stored is not None
    assert (stored.title, stored.format, stored.state) == (
        "News",
        "rss",
        FeedState.GONE,
    )
    assert await scene.storage.log.feed_head(feed.id) == pack(Feed(title="News"))
    assert await scene.storage.log.body(feed.id) == replace(STORED, position=1)
    (found,) = await scene.storage.log.records(after=0, limit=9)
    (stored_entry,) = await scene.storage.log.latest_entries(feed.id, 9)
    assert unpack(stored_entry.body, Entry) == an_entry("k")
    assert found.entries == (EntryRef(stored_entry.id, 1),)
    assert found.at == START
    assert found.status == Status(code=200)


async def test_a_document_knows_the_last_record_that_is_news_of_it(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed, format=Format.AS_IS)
    known = an_entry("k")
    kinds = ("recovered", "updated", "entries", "error"), ("recovered",), ()
    positions = []
    for each in kinds:
        records = tuple(record("k", kind=RecordKind(kind)) for kind in each)
        await scene.storage.log.commit(
            fetch(feed, entries=(known,), records=records, body=DOCUMENT)
        )
        body = await scene.storage.log.body(feed.id)
        assert body is not None
        positions.append(body.position)

    assert positions == [3, 3, 3]


async def test_what_a_commit_does_not_name_stays(scene: Scene) -> None:
    feed = await scene.add_feed()
    first = fetch(feed, title="T", head=Feed(title="T"), seen=b"s", slices=b"p")
    await scene.storage.log.commit(first)

    await scene.storage.log.commit(fetch(feed, when=at(5), polling=Polling(code=304)))

    (target,) = await scene.storage.feeds.targets([feed.id])
    assert (target.feed.title, target.seen, target.slices) == ("T", b"s", b"p")
    assert target.feed.polling.code == 304
    assert await scene.storage.log.feed_head(feed.id) == pack(Feed(title="T"))


async def test_inventory_and_raw_document_stay_until_there_are_newer_ones(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    assert await scene.storage.log.raw(feed.id) is None
    for number, part in enumerate((b"first", b"second")):
        raw = DocumentWrite(content_type="application/json", body=part)
        commit = fetch(feed, when=at(number), inventory=part, raw=raw)
        await scene.storage.log.commit(commit)
        await scene.storage.log.commit(fetch(feed, when=at(number)))

        (target,) = await scene.storage.feeds.targets([feed.id])
        assert target.inventory == part
        stored = StoredBody(content_type="application/json", body=pack_bytes(part))
        assert await scene.storage.log.raw(feed.id) == stored


async def test_an_entry_is_unlisted_as_it_was_last_even_if_it_is_deleted(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    found = []
    for unlisted, deleted in ((True, False), (False, True), (False, False)):
        changes = written("k", is_deletion=deleted, unlisted=unlisted)
        kind = RecordKind.DELETED if deleted else RecordKind.UPDATED
        commit = fetch(feed, **changes, records=(record("k", kind=kind),))
        await scene.storage.log.commit(commit)
        records = await scene.storage.log.records(after=0, limit=9)
        (stored,) = await scene.storage.log.entries([records[0].entries[0].entry_id])
        found.append((stored.unlisted, stored.deleted))

    assert found == [(True, False), (True, True), (False, False)]


async def test_slices_are_replaced_by_those_of_the_next_document(
    scene: Scene,
) -> None:
    feed, other = await scene.add_feed(), await scene.add_feed("o")
    await scene.storage.log.commit(fetch(feed, seen=b"s", slices=b"first"))

    await scene.storage.log.commit(fetch(feed, when=at(5), slices=b"second"))

    (target, without) = await scene.storage.feeds.targets([feed.id, other.id])
    assert (target.slices, without.slices) == (b"second", b"")


async def test_a_removed_or_unknown_feed_takes_no_commit(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.storage.feeds.set_state(feed.id, FeedState.REMOVED, START)
    commit = fetch(feed, records=(record(),))
    unknown = FetchCommit(
        feed_id=NO_FEED, at=START, next_fetch=START, polling=Polling()
    )

    assert await scene.storage.log.commit(commit) is NotStored.GONE
    assert await scene.storage.log.commit(unknown) is NotStored.GONE
    assert (await scene.storage.log.end()).position == 0


async def version_of(scene: Scene, feed: StoredFeed) -> int:
    (target,) = await scene.storage.feeds.targets([feed.id])
    return target.version


async def move(scene: Scene, feed: StoredFeed) -> None:
    change = FeedChange(url="https://moved.example/")
    await scene.storage.feeds.edit(feed.id, change, "", START)


async def pause(scene: Scene, feed: StoredFeed) -> None:
    await scene.storage.feeds.set_state(feed.id, FeedState.PAUSED, START)


async def give_up_and_add_again(scene: Scene, feed: StoredFeed) -> None:
    await scene.storage.feeds.set_state(feed.id, FeedState.GONE, START)
    await scene.storage.feeds.add(NewFeed(url=feed.url), START)


async def remove_and_add_again(scene: Scene, feed: StoredFeed) -> None:
    await scene.storage.feeds.set_state(feed.id, FeedState.REMOVED, START)
    await scene.storage.feeds.add(NewFeed(url=feed.url), START)


async def publish(scene: Scene, feed: StoredFeed) -> None:
    await scene.publish(feed)


@pytest.mark.parametrize(
    "change", [move, pause, give_up_and_add_again, remove_and_add_again, publish]
)
@pytest.mark.parametrize("finds", [{}, {"records": (record(),)}])
async def test_a_fetch_that_was_decided_on_another_state_of_its_feed_is_not_stored(
    scene: Scene,
    change: Callable[[Scene, StoredFeed], Awaitable[None]],
    finds: dict[str, Any],
) -> None:
    feed = await scene.add_feed()
    version = await version_of(scene, feed)
    await change(scene, feed)
    before = await scene.storage.feeds.targets([feed.id])
    end = await scene.storage.log.end()

    late = fetch(feed, when=at(9), version=version, **finds)

    assert await scene.storage.log.commit(late) is NotStored.STALE
    assert await scene.storage.feeds.targets([feed.id]) == before
    assert await scene.storage.log.end() == end
    anew = replace(late, version=await version_of(scene, feed))
    assert isinstance(await scene.storage.log.commit(anew), Stored)


@pytest.mark.parametrize(
    "changes",
    [
        *[(name, True) for name in ("last_fetch", "period", "error", "next_reason")],
        *[(name, False) for name in ("validators", "posting", "fetch_url", "hints")],
    ],
)
async def test_a_fetch_that_finds_nothing_new_leaves_the_version_as_it_is(
    scene: Scene, changes: tuple[str, bool]
) -> None:
    """Unless it changes what is not to be written with every fetch."""
    name, is_hot = changes
    values = {
        "last_fetch": at(7),
        "period": 0.1,
        "error": 'a "reason", ü',
        "next_reason": PollReason.PINGED,
        "validators": Validators(url=URL, etag='"1"'),
        "posting": Posting(weight=0.3, since=START, habits=b"12"),
        "fetch_url": URL,
        "hints": Hints(ttl_minutes=60),
    }
    feed = await scene.add_feed()
    await scene.publish(feed)
    (before,) = await scene.storage.feeds.targets([feed.id])
    polling = replace(before.feed.polling, **{name: values[name]})

    outcome = await scene.storage.log.commit(
        fetch(feed, polling=polling, former=before.feed.polling, version=before.version)
    )

    (after,) = await scene.storage.feeds.targets([feed.id])
    assert after.feed.polling == polling
    assert outcome == Stored((), after.version)
    assert (after.version == before.version) is is_hot


@pytest.mark.parametrize("finds", [{}, {"records": (record(kind=RecordKind.ERROR),)}])
async def test_of_a_first_fetch_that_fails_is_kept_what_it_says(
    scene: Scene, finds: dict[str, Any]
) -> None:
    """Though all else is as it was before."""
    feed = await scene.add_feed()
    for failures in (1, 2):
        (target,) = await scene.storage.feeds.targets([feed.id])
        former = target.feed.polling
        assert former.failures == failures - 1
        polling = replace(former, last_fetch=at(failures), code=500, failures=failures)
        commit = fetch(
            feed, polling=polling, former=former, version=target.version, **finds
        )
        assert isinstance(await scene.storage.log.commit(commit), Stored)

    (target,) = await scene.storage.feeds.targets([feed.id])
    assert target.feed.polling == polling
    await scene.storage.feeds.edit(feed.id, FeedChange(url=URL), "", START)
    moved = await scene.storage.feeds.get(feed.id)
    assert moved is not None
    assert moved.polling == polling


async def test_a_fetch_that_finds_something_raises_the_version(scene: Scene) -> None:
    feed = await scene.add_feed()
    version = await version_of(scene, feed)

    news = await scene.storage.log.commit(
        fetch(feed, version=version, records=(record(),))
    )

    assert news == Stored((Position(1),), await version_of(scene, feed))
    assert news.version > version


async def test_commits_without_news_at_once_are_stored_each_for_its_own_feed(
    scene: Scene,
) -> None:
    feeds = [await scene.add_feed(name) for name in ("a", "b", "c", "d")]
    removed, *others = feeds
    await scene.storage.feeds.set_state(removed.id, FeedState.REMOVED, START)
    commits = [
        fetch(
            feed,
            next_fetch=at(feed.id),
            polling=Polling(code=304, fetch_url=f"{feed.url}/{feed.id}"),
        )
        for feed in feeds
    ]

    answers = await asyncio.gather(*map(scene.storage.log.commit, commits))

    assert answers == [NotStored.GONE, *[Stored((), 1)] * 3]
    for feed, commit in zip(others, commits[1:], strict=True):
        stored = await scene.storage.feeds.get(feed.id)
        assert stored is not None
        assert (stored.polling, stored.next_fetch) == (commit.polling, at(feed.id))
    untouched = await scene.storage.feeds.get(removed.id)
    assert untouched is not None
    assert untouched.polling == removed.polling


async def test_a_commit_that_fails_changes_nothing(scene: Scene) -> None:
    feed = await scene.add_feed()
    naming_nothing = fetch(feed, title="new", records=(record(), record("unknown")))

    with pytest.raises(WriteFailed):
        await scene.storage.log.commit(naming_nothing)

    assert await scene.storage.feeds.get(feed.id) == feed
    assert (await scene.storage.log.end()).position == 0
    assert await scene.publish(feed) == 1


async def test_a_known_key_is_replaced_at_its_next_revision(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.publish(feed, "k")

    for text in ("second", "third"):
        entries = (an_entry("k", title=text),)
        await scene.storage.log.commit(
            fetch(feed, entries=entries, records=(record("k", is_fresh=False),))
        )

    (stored,) = await scene.storage.log.latest_entries(feed.id, 9)
    assert (stored.key, stored.revision) == ("k", 3)
    assert unpack(stored.body, Entry) == an_entry("k", title="third")
    refs = [each.entries for each in await scene.storage.log.records(after=0, limit=9)]
    assert refs[1:] == [
        (EntryRef(stored.id, 2, fresh=False),),
        (EntryRef(stored.id, 3, fresh=False),),
    ]


async def test_the_same_key_of_two_feeds_is_two_entries(scene: Scene) -> None:
    a, b = await scene.add_feed("a"), await scene.add_feed("b")
    await scene.publish(a, "k")
    await scene.publish(b, "k")

    (first,) = await scene.storage.log.latest_entries(a.id, 9)
    (second,) = await scene.storage.log.latest_entries(b.id, 9)

    assert first.id != second.id
    assert (first.revision, second.revision) == (1, 1)


async def test_a_deletion_keeps_the_last_body_and_is_not_among_the_latest(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.publish(feed, "k")
    (stored,) = await scene.storage.log.latest_entries(feed.id, 9)

    await scene.publish(feed, "k", kind=RecordKind.DELETED)

    assert await scene.storage.log.latest_entries(feed.id, 9) == []
    (deleted,) = await scene.storage.log.entries([stored.id])
    assert (deleted.deleted, deleted.revision) == (True, 2)
    assert deleted.body == stored.body


async def test_a_record_may_name_an_entry_that_its_commit_does_not_change(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.publish(feed, "k")

    await scene.storage.log.commit(fetch(feed, records=(record("k"),)))

    first, second = await scene.storage.log.records(after=0, limit=9)
    assert first.entries == second.entries


async def test_records_of_a_commit_name_an_entry_as_its_commit_left_it(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()

    await scene.storage.log.commit(
        fetch(
            feed,
            deletions=(Deletion(key="a", id="a"), Deletion(key="b", id="b")),
            entries=(an_entry("a"), an_entry("c")),
            records=(record("b", "a", kind=RecordKind.DELETED), record("c", "a")),
        )
    )

    (c,) = [
        e for e in await scene.storage.log.latest_entries(feed.id, 9) if e.key == "c"
    ]
    deleted, written = await scene.storage.log.records(after=0, limit=9)
    b, a = await scene.storage.log.entries([ref.entry_id for ref in deleted.entries])
    assert [ref.revision for ref in deleted.entries] == [1, 2]
    assert [ref.entry_id for ref in written.entries] == [c.id, a.id]
    assert written.entries[1] == deleted.entries[1]
    assert [(e.key, e.deleted) for e in (a, b)] == [("a", False), ("b", True)]


async def test_entries_come_in_the_order_asked_for(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.publish(feed, "a", "b", "c")
    (written,) = await scene.storage.log.records(after=0, limit=9)
    a, b, c = [ref.entry_id for ref in written.entries]

    found = await scene.storage.log.entries([c, 99, a, b])

    assert [each.key for each in found] == ["c", "a", "b"]


async def test_the_latest_entries_go_by_their_date_or_when_they_were_first_stored(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    old = START - timedelta(days=1)
    ahead = START + timedelta(days=9_000)
    entries = (
        an_entry("of yesterday", published=old),
        an_entry("first in its document"),
        an_entry("from the future", published=ahead),
    )
    await scene.storage.log.commit(fetch(feed, entries=entries))
    await scene.storage.log.commit(
        fetch(feed, when=at(60), entries=(an_entry("of now"),))
    )
    await scene.storage.log.commit(
        fetch(feed, when=at(90), entries=(an_entry("of yesterday", title="2"),))
    )

    latest = await scene.storage.log.latest_entries(feed.id, 9)

    assert [each.key for each in latest] == [
        "of now",
        "first in its document",
        "from the future",
        "of yesterday",
    ]
    assert await scene.storage.log.latest_entries(feed.id, 1) == latest[:1]


async def test_records_are_read_in_pages_of_all_feeds_or_one(scene: Scene) -> None:
    a, b = await scene.add_feed("a"), await scene.add_feed("b")
    for feed in (a, b, a, b):
        await scene.publish(feed)
    log = scene.storage.log

    page = await log.records(after=1, limit=2)
    of_b = await log.records(after=2, limit=9, feed_id=b.id)

    assert [each.position for each in page] == [2, 3]
    assert [each.position for each in of_b] == [4]


async def test_a_reader_that_waits_is_woken_by_a_commit(scene: Scene) -> None:
    feed = await scene.add_feed()
    waiting = asyncio.create_task(scene.storage.log.wait(Position(0), 30))
    await asyncio.sleep(0)

    await scene.publish(feed)

    async with asyncio.timeout(60):
        assert await waiting == 1


async def test_a_reader_does_not_wait_for_what_is_there_nor_longer_than_it_said(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.publish(feed)

    assert await scene.storage.log.wait(Position(0), 30) == 1
    assert await scene.storage.log.wait(Position(1), 0.001) == 1


async def test_a_document_is_kept_only_while_a_subscription_is_as_is(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    commit = fetch(feed, body=DOCUMENT)
    await scene.storage.log.commit(commit)
    unasked = await scene.storage.log.body(feed.id)
    as_is = await scene.subscribe(feed, "as-is", format=Format.AS_IS)
    await scene.storage.log.commit(commit)
    asked = await scene.storage.log.body(feed.id)
    await scene.subscribe(feed, "as-is", format=Format.AS_IS)
    renewed = await scene.storage.log.body(feed.id)
    await scene.storage.subscriptions.end(as_is.id, "enough", START, tell=False)

    assert (unasked, asked, renewed) == (None, STORED, STORED)
    assert await scene.storage.log.body(feed.id) is None


async def test_an_unknown_feed_has_neither_head_nor_body(scene: Scene) -> None:
    assert await scene.storage.log.feed_head(NO_FEED) is None
    assert await scene.storage.log.body(NO_FEED) is None


# --- trimming ---


async def test_records_beyond_the_count_are_trimmed_page_by_page(scene: Scene) -> None:
    feed = await scene.add_feed()
    for _ in range(5):
        await scene.publish(feed)
    await scene.deliver()

    first = await scene.storage.log.trim(keep(soft=2), START, 2)
    second = await scene.storage.log.trim(keep(soft=2), START, 2)
    third = await scene.storage.log.trim(keep(soft=2), START, 2)

    assert (first, second, third) == (2, 1, 0)
    kept = await scene.storage.log.records(after=0, limit=9)
    assert [each.position for each in kept] == [4, 5]
    assert await scene.publish(feed) == 6, "positions are never given out again"


async def test_records_beyond_the_age_are_trimmed(scene: Scene) -> None:
    feed = await scene.add_feed()
    for seconds in (0, 10, 20):
        await scene.publish(feed, when=at(seconds))
    await scene.deliver()
    an_age = Retention(soft_age=15, soft_count=99, hard_age=99, hard_count=99)

    assert await scene.storage.log.trim(an_age, at(30), 9) == 2

    (left,) = await scene.storage.log.records(after=0, limit=9)
    assert left.position == 3


@pytest.mark.parametrize(
    ("ends", "trimmed"),
    [((2, 0), 2), ((0, 2), 2), ((9, 0), 3), ((1, 9), 3), ((0, 0), 0)],
)
async def test_records_up_to_an_end_are_trimmed_unless_they_are_young(
    scene: Scene, ends: tuple[int, int], trimmed: int
) -> None:
    feed = await scene.add_feed()
    for seconds in (0, 10, 20, 30, 40):
        await scene.publish(feed, when=at(seconds))
    await scene.deliver()
    retention = Retention(
        soft_age=inf,
        soft_count=99,
        hard_age=inf,
        hard_count=99,
        soft_end=Position(ends[0]),
        hard_end=Position(ends[1]),
        spared_age=10,
    )

    assert await scene.storage.log.trim(retention, at(40), 9) == trimmed


async def test_nothing_is_trimmed_that_is_still_to_be_split(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    await scene.publish(feed)

    assert await scene.storage.log.trim(keep(hard=0), START, 9) == 0


async def test_nothing_is_trimmed_that_a_chunk_still_delivers(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    await scene.publish(feed)
    await scene.claim()

    assert await scene.storage.log.trim(keep(hard=0), START, 9) == 0


async def test_a_retry_holds_up_the_soft_limit(scene: Scene) -> None:
    feed, other = await scene.add_feed("a"), await scene.add_feed("b")
    await scene.publish(other)
    await scene.deliver()
    await scene.subscribe_retrying(feed)
    await scene.publish(other)
    await scene.deliver()

    assert await scene.storage.log.trim(keep(soft=0), START, 9) == 1

    left = await scene.storage.log.records(after=0, limit=9)
    assert [each.position for each in left] == [2, 3]


async def test_the_hard_limit_passes_a_retry_by_and_it_is_told(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.publish(feed)
    await scene.publish(feed)
    await scene.deliver()

    assert await scene.storage.log.trim(keep(hard=1), at(9), 9) == 2

    retrying = await scene.storage.deliveries.retrying_subscription(late.id)
    assert retrying is not None
    assert (retrying.position, retrying.missed) == (2, (1, 2))
    (dead,) = await scene.storage.deliveries.dead_letters(after=0, limit=9)
    assert (dead.first, dead.last, dead.reason) == (1, 2, "trimmed")


async def test_a_retry_that_wants_nothing_of_what_goes_misses_nothing(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe_retrying(feed)
    await scene.storage.deliveries.retry_now(late.id, START)
    for _ in range(2):
        await scene.publish(feed, kind=RecordKind.DELETED)
    await scene.deliver()
    await scene.storage.log.trim(keep(hard=2), START, 9)

    await scene.storage.log.trim(keep(hard=1), START, 9)

    (dead,) = await scene.storage.deliveries.dead_letters(after=0, limit=9)
    assert (dead.first, dead.last) == (1, 1)


async def test_entries_go_with_their_records_except_the_latest_fifty(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    entries = tuple(
        an_entry(str(n), published=START - timedelta(minutes=n)) for n in range(60)
    )
    records = (RecordWrite(kind=RecordKind.BASELINE, status=Status()),)
    await scene.storage.log.commit(fetch(feed, entries=entries, records=records))
    await scene.storage.log.commit(fetch(feed, records=(record("59"),)))
    await scene.deliver()

    await scene.storage.log.trim(keep(soft=1), START, 9)

    left = await scene.storage.log.latest_entries(feed.id, 99)
    assert [each.key for each in left] == [*map(str, range(50)), "59"]


async def test_news_is_not_committed_without_the_document_that_as_is_wants(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed, "as-is", format=Format.AS_IS)

    with pytest.raises(BodyRequired):
        await scene.storage.log.commit(
            fetch(feed, **written("k"), records=(record("k"),))
        )

    assert (await scene.storage.log.end()).position == 0
    await scene.storage.log.commit(
        fetch(feed, records=(record(kind=RecordKind.ERROR),))
    )


@pytest.mark.parametrize("is_of_one", [False, True], ids=["all", "of one feed"])
@pytest.mark.parametrize("upto", [0, 1, 4, 9])
async def test_the_latest_records_are_read_backwards_from_a_position(
    scene: Scene, upto: int, is_of_one: bool
) -> None:
    feeds = [await scene.add_feed(name) for name in "ab"]
    for number in range(7):
        await scene.publish(feeds[number % 2], f"{number}")
    log, wanted = scene.storage.log, feeds[1].id if is_of_one else None
    records = await log.records(after=Position(0), limit=9, feed_id=wanted)
    expected = [each for each in reversed(records) if each.position <= upto]
    found = await log.latest_records(upto=Position(upto), limit=9, feed_id=wanted)
    assert found == expected
    few = await log.latest_records(upto=Position(upto), limit=2, feed_id=wanted)
    assert few == expected[:2]


async def test_the_last_record_before_a_moment_is_found_among_those_of_all_feeds(
    scene: Scene,
) -> None:
    log = scene.storage.log
    assert await log.position_before(at(9)) == 0
    feeds = [await scene.add_feed(name) for name in "ab"]
    for number in range(7):  # one a second, and two in the third
        when = at(min(number, 2) if number < 4 else number)
        await scene.publish(feeds[number % 2], f"{number}", when=when)
    records = await log.records(after=Position(0), limit=9)
    for second in (*range(8), 99):
        expected = sum(each.at < at(second) for each in records)
        assert await log.position_before(at(second)) == expected, second
