"""Entries found by their words, on every engine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import inf
from typing import Final

import pytest

from storage.records import (
    ANONYMOUS,
    OPERATOR,
    Both,
    Either,
    EntryId,
    FeedId,
    FeedState,
    Phrase,
    PlaceTerm,
    Position,
    Retention,
    SearchDocument,
    StoredFeed,
    Term,
)
from tests.support.documents import an_entry
from tests.support.storage_scene import (
    START,
    Scene,
    at,
    fetch,
    record,
    stored_at,
    written,
)

LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)


async def publish(scene: Scene, feed: StoredFeed, **texts: str) -> list[EntryId]:
    """Entries a second apart, the first the oldest, all of them in the index."""
    entries = tuple(
        an_entry(key, published=at(number)) for number, key in enumerate(texts)
    )
    commit = fetch(feed, when=at(1_000), entries=entries, records=(record(*texts),))
    (position,) = await stored_at(scene.storage.log.commit(commit))
    (stored,) = await scene.storage.log.records(after=position - 1, limit=1)
    ids = [ref.entry_id for ref in stored.entries]
    documents = [document(*each) for each in zip(ids, texts.values(), strict=True)]
    await scene.storage.search.index(ids, documents, position)
    return ids


def document(entry_id: EntryId, text: str) -> SearchDocument:
    words, _, places = text.partition("@")
    return SearchDocument(
        entry_id=entry_id, words=words.strip(), places=tuple(places.split())
    )


async def found(
    scene: Scene, wanted: Term, viewer: int | None = None, limit: int = 50
) -> list[str]:
    page = await scene.storage.search.find(wanted, viewer=viewer, limit=limit)
    return [entry.key for entry in page.entries]


TERMS: Final[Sequence[tuple[Term, list[str]]]] = (
    (Phrase(("laurel",)), ["both", "first"]),
    (Phrase(("laurel", "hardy")), ["first"]),
    (Both((Phrase(("laurel",)), Phrase(("hardy",)))), ["both", "first"]),
    (Either((Phrase(("stan",)), PlaceTerm("x1"))), ["places", "both"]),
    (
        Both((PlaceTerm("any"), Either((PlaceTerm("x2"), PlaceTerm("x3"))))),
        ["places"],
    ),
    (Phrase(("élan_1", "日", "本")), ["places"]),
    (Phrase(("laur",)), []),
    (Phrase(("x1",)), []),
    (Phrase(("NOT",)), []),
    (Phrase(('"', "OR *", "(")), []),
)


async def test_words_phrases_and_places_are_found_newest_first(scene: Scene) -> None:
    feed = await scene.add_feed()
    await publish(
        scene,
        feed,
        first="laurel hardy",
        both="hardy stan laurel",
        places="élan_1 日 本 @any x1 x2",
    )

    for wanted, keys in TERMS:
        assert await found(scene, wanted) == keys, wanted


async def test_of_the_same_moment_the_entry_that_came_first_is_the_newest(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    entries = tuple(an_entry(key, published=START) for key in "abc")
    await scene.storage.log.commit(fetch(feed, entries=entries))
    ids = [entry.id for entry in await scene.storage.log.latest_entries(feed.id, 9)]
    await scene.storage.search.index(ids, [document(each, "word") for each in ids])

    assert await found(scene, Phrase(("word",))) == ["a", "b", "c"]


async def test_matches_come_in_pages(scene: Scene) -> None:
    feed = await scene.add_feed()
    await publish(scene, feed, a="word", b="word", c="word")

    search, keys, below = scene.storage.search, [], None
    while True:
        page = await search.find(Phrase(("word",)), viewer=None, limit=2, below=below)
        keys.append([entry.key for entry in page.entries])
        below = page.next
        if below is None:
            break

    assert keys == [["c", "b"], ["a"]]


async def test_a_page_begins_below_any_match_of_the_page_before(scene: Scene) -> None:
    feed = await scene.add_feed()
    await publish(scene, feed, a="word", b="word", c="word")
    search, wanted = scene.storage.search, Phrase(("word",))
    page = await search.find(wanted, viewer=None, limit=9)
    assert sorted(page.dates, reverse=True) == [*page.dates]
    assert {each.microsecond for each in page.dates} == {0}
    for number, place in enumerate(page.places, 1):
        rest = await search.find(wanted, viewer=None, limit=9, below=place)
        assert rest.entries == page.entries[number:]


async def test_what_is_indexed_again_is_found_by_its_new_words_only(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    entry, other = await publish(scene, feed, a="old words @x1", b="old")

    await scene.storage.search.index([entry], [document(entry, "new @x2")])

    assert await found(scene, Phrase(("new",))) == ["a"]
    assert await found(scene, Phrase(("old",))) == ["b"]
    assert await found(scene, PlaceTerm("x1")) == []

    await scene.storage.search.index([entry, other], [])
    assert await found(scene, Either((Phrase(("new",)), Phrase(("old",))))) == []


async def test_unlisted_entries_are_found_by_subscribers_unless_they_are_left_out(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    ids = await publish(scene, feed, listed="word", hidden="word")
    hidden = an_entry("hidden", unlisted=True)
    await scene.storage.log.commit(fetch(feed, entries=(hidden,)))
    assert len(ids) == 2
    await scene.subscribe(feed, account=OPERATOR)
    word = Phrase(("word",))

    async def seen(viewer: int | None, *, listed_only: bool) -> list[str]:
        page = await scene.storage.search.find(
            word, viewer=viewer, limit=9, listed_only=listed_only
        )
        return sorted(entry.key for entry in page.entries)

    assert await seen(ANONYMOUS, listed_only=False) == ["listed"]
    assert await seen(OPERATOR, listed_only=False) == ["hidden", "listed"]
    assert await seen(OPERATOR, listed_only=True) == ["listed"]
    assert await seen(None, listed_only=True) == ["hidden", "listed"]


async def test_private_feeds_are_found_by_those_who_subscribe_and_the_operator(
    scene: Scene,
) -> None:
    public, private = await scene.add_feed("a"), await scene.add_feed("b", private=True)
    await publish(scene, public, public="word")
    await publish(scene, private, private="word")
    word = Phrase(("word",))

    assert await found(scene, word, viewer=ANONYMOUS) == ["public"]
    assert sorted(await found(scene, word)) == ["private", "public"]

    subscription = await scene.subscribe(private)
    assert len(await found(scene, word, viewer=ANONYMOUS)) == 2
    assert await found(scene, word, viewer=ANONYMOUS + 1) == ["public"]

    await scene.storage.subscriptions.end(subscription.id, "", START, tell=False)
    assert await found(scene, word, viewer=ANONYMOUS) == ["public"]


async def test_a_page_of_what_must_not_be_seen_is_empty_and_leads_on(
    scene: Scene,
) -> None:
    private = await scene.add_feed("b", private=True)
    await publish(scene, private, a="word", b="word")

    page = await scene.storage.search.find(Phrase(("word",)), viewer=ANONYMOUS, limit=1)

    assert page.entries == ()
    assert page.next is not None


async def test_deleted_entries_and_removed_feeds_are_not_found(scene: Scene) -> None:
    feed, removed = await scene.add_feed("a"), await scene.add_feed("b")
    await publish(scene, feed, a="word", b="word")
    await publish(scene, removed, c="word")
    await scene.storage.feeds.set_state(removed.id, FeedState.REMOVED, START)
    await scene.storage.log.commit(fetch(feed, **written("a", is_deletion=True)))

    assert await found(scene, Phrase(("word",))) == ["b"]


async def test_entries_that_are_trimmed_wait_until_they_are_forgotten(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    search = scene.storage.search
    texts = {"old": "word", **{f"k{number}": "word" for number in range(50)}}
    old, *_ = await publish(scene, feed, **texts)
    assert await search.waiting(9) == []

    retention = Retention(soft_age=inf, soft_count=0, hard_age=inf, hard_count=0)
    await scene.deliver()
    assert await scene.storage.log.trim(retention, START, 99)

    assert await search.waiting(9) == [old]
    await search.index([old], [])
    assert await search.waiting(9) == []
    assert "old" not in await found(scene, Phrase(("word",)), limit=99)


async def test_how_far_the_log_was_read_is_kept(scene: Scene) -> None:
    search = scene.storage.search
    assert (await search.state()).position == 0

    await search.index([], [], Position(7))
    await search.index([EntryId(99)], [document(EntryId(99), "of no entry")])

    assert (await search.state()).position == 7
    assert await found(scene, Phrase(("entry",))) == []


# --- which entries are covered ---


async def covering(scene: Scene, days: float = inf) -> list[EntryId]:
    """Five entries, a second apart, of which none is in the index, and their ids."""
    feed = await scene.add_feed()
    keys = ("a", "b", "c", "d", "e")
    entries = tuple(an_entry(key, published=at(n)) for n, key in enumerate(keys))
    await scene.storage.log.commit(
        fetch(feed, when=at(1_000), entries=entries, records=(record(*keys),))
    )
    await scene.storage.search.keep(days)
    places = [await scene.storage.entries.place([feed.id], [key]) for key in keys]
    return [place.id for place in places if place]


async def index_unread(scene: Scene, limit: int) -> None:
    """To the end, so many at a time."""
    search = scene.storage.search
    unread: EntryId | None = None
    while unread != 0:
        ids, unread = await search.unread(LONG_AGO, limit)
        await search.index(ids, [document(each, "word") for each in ids], unread=unread)


async def test_an_index_that_begins_has_all_entries_to_read_and_the_log_from_its_end_on(
    scene: Scene,
) -> None:
    assert (await scene.storage.search.state()).days == 0
    *_, fourth, last = ids = await covering(scene)
    state = await scene.storage.search.state()
    assert (state.days, state.position, state.unread) == (inf, 1, last + 1)
    assert (state.first, state.last, state.share_read) == (ids[0], last, 0.0)

    assert await scene.storage.search.unread(LONG_AGO, 2) == ([last, fourth], fourth)
    await scene.storage.search.index([last, fourth], [], unread=fourth)

    assert (await scene.storage.search.state()).share_read == pytest.approx(0.4)
    assert (await scene.storage.search.unread(LONG_AGO, 9))[1] == 0


@pytest.mark.parametrize("limit", [1, 2, 5, 9])
async def test_unread_entries_are_read_the_newest_first_in_pages(
    scene: Scene, limit: int
) -> None:
    await covering(scene)
    await index_unread(scene, limit)
    assert await found(scene, Phrase(("word",))) == ["e", "d", "c", "b", "a"]
    state = await scene.storage.search.state()
    assert (state.unread, state.share_read) == (0, 1.0)


async def test_what_is_known_deleted_or_too_old_is_not_to_be_read(scene: Scene) -> None:
    ids = await covering(scene)
    await scene.storage.search.index([ids[4]], [document(ids[4], "word")])
    (feed,) = await scene.storage.feeds.page(after=FeedId(0), limit=9)
    gone = fetch(feed, when=at(2_000), **written("d", is_deletion=True))
    await scene.storage.log.commit(gone)
    assert await scene.storage.search.unread(at(1), 9) == ([ids[2], ids[1]], 0)


async def test_documents_of_entries_that_are_too_old_are_left_out(scene: Scene) -> None:
    ids = await covering(scene)
    documents = [document(each, "word") for each in ids]
    await scene.storage.search.index(ids, documents, since=at(3))
    assert await found(scene, Phrase(("word",))) == ["e", "d"]


async def test_the_oldest_in_the_index_are_told_first(scene: Scene) -> None:
    ids = await covering(scene)
    await index_unread(scene, 9)
    assert await scene.storage.search.dated_before(at(3), 2) == ids[:2]
    await scene.storage.search.index(ids[:2], [])
    assert await scene.storage.search.dated_before(at(3), 9) == [ids[2]]
    assert await scene.storage.search.dated_before(at(0), 9) == []


async def test_more_days_make_all_entries_unread_and_fewer_none(scene: Scene) -> None:
    ids = await covering(scene, 7)
    await index_unread(scene, 9)
    await scene.storage.search.index([], [], Position(9))

    await scene.storage.search.keep(3)
    state = await scene.storage.search.state()
    assert (state.days, state.unread, state.position) == (3, 0, 9)

    await scene.storage.search.keep(30)
    state = await scene.storage.search.state()
    assert (state.days, state.unread, state.position) == (30, ids[-1] + 1, 9)
    assert await scene.storage.search.unread(LONG_AGO, 9) == ([], 0)


async def test_an_index_that_is_no_longer_kept_is_empty_and_goes_in_steps(
    scene: Scene,
) -> None:
    await covering(scene)
    await index_unread(scene, 9)
    while await scene.storage.search.remove_former(9):
        pass

    await scene.storage.search.keep(0)

    assert await found(scene, Phrase(("word",))) == []
    assert (await scene.storage.search.state()).unread == 0
    steps = 0
    while await scene.storage.search.remove_former(1):
        steps += 1
    assert steps >= 5
    await scene.storage.search.keep(inf)
    await index_unread(scene, 2)
    assert await found(scene, Phrase(("word",))) == ["e", "d", "c", "b", "a"]


async def test_entries_that_go_wait_for_nothing_where_no_index_has_them(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.publish(feed, *(f"k{number}" for number in range(60)))
    retention = Retention(soft_age=inf, soft_count=0, hard_age=inf, hard_count=0)
    await scene.deliver()
    assert await scene.storage.log.trim(retention, START, 99)
    assert await scene.storage.search.waiting(9) == []


async def test_merging_ends(scene: Scene) -> None:
    ids = await covering(scene)
    for _ in range(20):
        for each in ids:
            await scene.storage.search.index([each], [document(each, "word other")])
    steps = 0
    while await scene.storage.search.merge(100):
        steps += 1
    assert steps < 50
    assert len(await found(scene, Phrase(("other",)))) == 5
