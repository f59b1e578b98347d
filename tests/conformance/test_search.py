"""Entries found by their words, on every engine."""

from __future__ import annotations

from math import inf

import pytest

from storage.records import (
    ANONYMOUS,
    OPERATOR,
    Both,
    Either,
    EntryId,
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
from tests.support.storage_scene import START, Scene, at, fetch, record, written


async def publish(scene: Scene, feed: StoredFeed, **texts: str) -> list[EntryId]:
    """Entries a second apart, the first the oldest, all of them in the index."""
    entries = tuple(
        an_entry(key, published=at(number)) for number, key in enumerate(texts)
    )
    commit = fetch(feed, when=at(1_000), entries=entries, records=(record(*texts),))
    (position,) = await scene.storage.log.commit(commit)
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


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
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
    ],
    ids=str,
)
async def test_words_phrases_and_places_are_found_newest_first(
    scene: Scene, wanted: Term, keys: list[str]
) -> None:
    feed = await scene.add_feed()
    await publish(
        scene,
        feed,
        first="laurel hardy",
        both="hardy stan laurel",
        places="élan_1 日 本 @any x1 x2",
    )

    assert await found(scene, wanted) == keys


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
    assert await search.position() == 0

    await search.index([], [], Position(7))
    await search.index([EntryId(99)], [document(EntryId(99), "of no entry")])

    assert await search.position() == 7
    assert await found(scene, Phrase(("entry",))) == []
