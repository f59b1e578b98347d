"""Lists elsewhere that the hub stays in step with, with a network as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from hub.core.schedule.poll_period import JITTER
from hub.http import Request
from hub.services.feed_registration import FeedService
from hub.services.feed_requests import AddFeed, EditFeed, ImportedFeed
from hub.services.list_following import ListFollower, ReadingProgress
from hub.services.list_watching import MOST_WATCHES, ListWatchService
from hub.services.service_errors import AddressRefused, Conflict
from protocols.opml import OutlineWalk, read_outlines
from protocols.protocol_errors import InvalidValue
from storage.errors import NotFound
from storage.records import (
    FeedState,
    ListWatch,
    ListWatchId,
    NewListWatch,
    StoredFeed,
    WatchedFate,
    WatchedFeed,
)
from tests.support.fake_network import Scripted, answered
from tests.support.services import Hub, open_hub
from tests.support.storage_scene import Scene
from tests.support.waiting import in_background

LIST = "https://example.org/list.opml"
OTHER = "https://you.example/other.opml"
INCLUDED = "https://you.example/more.opml"
HOUR = 3_600.0
LONG = 30.0


def opml(*names: str, folder: str = "", includes: str = "") -> bytes:
    feeds = "".join(
        f'<outline text="{each}" xmlUrl="https://{each}.example/feed"/>'
        for each in names
    )
    if folder:
        feeds = f'<outline text="{folder}">{feeds}</outline>'
    if includes:
        feeds += f'<outline type="include" url="{includes}"/>'
    return f"<opml><body>{feeds}</body></opml>".encode()


@dataclass
class Watched:
    hub: Hub

    @property
    def service(self) -> ListWatchService:
        return self.hub.services.list_watches

    def put(self, document: bytes | int, url: str = LIST, **headers: str) -> None:
        """What the list is from now on, or by what status it is refused."""
        is_refusal = isinstance(document, int)
        status = document if is_refusal else 200
        body = b"" if isinstance(document, int) else document
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.hub.network.at[url] = answered(status, body, named)

    async def watch(self, url: str = LIST, **more: Any) -> ListWatch:
        """Watch it, or read it again, and say what came of that."""
        watch_id, _ = await self.service.watch(NewListWatch(url=url, **more))
        return await self.read(watch_id)

    async def read(self, watch_id: ListWatchId) -> ListWatch:
        found = await self.service.wait(watch_id, LONG)
        assert found.reading is None
        return found.watch

    async def next_reading(self, watch: ListWatch) -> ListWatch:
        """An hour later, or as soon as it is due."""
        left = watch.due - self.hub.clock.now()
        self.hub.clock.advance(left.total_seconds())
        return await self.watch(watch.url)

    async def feeds(self) -> dict[str, str]:
        """The categories of all feeds, by the first part of their hosts, in order."""
        found = await self.hub.storage.feeds.page(after=0, limit=100)
        return dict(
            sorted((each.url[8:].partition(".")[0], each.category) for each in found)
        )

    async def feed(self, name: str) -> StoredFeed:
        found = await self.hub.services.feeds.find(f"https://{name}.example/feed")
        assert found is not None
        return found

    async def add(self, name: str, **more: Any) -> StoredFeed:
        request = AddFeed(url=f"https://{name}.example/feed", wait=0, **more)
        return (await self.hub.services.feeds.add(request)).feed


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    async with open_hub(tmp_path) as hub, in_background(hub.services.list_watches.run):
        yield Watched(hub)


async def test_a_list_is_read_by_the_clock(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        watched = Watched(hub)
        watched.put(opml("a"))
        async with in_background(watched.service.run):
            first = await watched.watch()
        watched.put(opml("a", "b"))
        for seconds, expected in ((HOUR - 1, ["a"]), (HOUR * JITTER, ["a", "b"])):
            hub.clock.advance(seconds)
            async with in_background(watched.service.run):
                await watched.read(first.id)
                assert list(await watched.feeds()) == expected


async def test_feeds_appear_move_and_leave_as_in_the_list(watched: Watched) -> None:
    watched.put(opml("a", "b", "c", folder="News"))
    first = await watched.watch()
    assert await watched.feeds() == {"a": "News", "b": "News", "c": "News"}
    assert (first.feeds, first.added, first.error) == (3, 3, "")

    watched.put(opml("a", "b", "d", folder="Sport"))
    second = await watched.next_reading(first)

    assert await watched.feeds() == {"a": "Sport", "b": "Sport", "d": "Sport"}
    assert (second.feeds, second.added, second.removed) == (3, 1, 1)
    assert second.changed_at == second.read_at
    third = await watched.next_reading(second)
    assert third == replace(second, due=third.due, read_at=third.read_at)


async def test_feeds_in_no_folder_get_the_category_of_the_list(
    watched: Watched,
) -> None:
    watched.put(opml("a"))
    await watched.watch(category="partners", private=True)

    assert await watched.feeds() == {"a": "partners"}
    assert (await watched.feed("a")).private


async def test_it_is_read_again_with_its_validators(watched: Watched) -> None:
    watched.put(opml("a"), ETag='"1"')
    first = await watched.watch()
    seconds = (first.due - watched.hub.clock.now()).total_seconds()
    assert HOUR <= seconds <= HOUR * 1.05

    watched.put(304, ETag='"1"')
    again = await watched.next_reading(first)

    sent = watched.hub.network.requests[-1]
    assert sent.headers["If-None-Match"] == '"1"'
    assert sent.limits.body_bytes == 16 * 1024 * 1024
    assert (again.error, again.feeds) == ("", 1)
    assert again.read_at is not None
    assert first.read_at is not None
    assert again.read_at > first.read_at


BROKEN = opml("a", "b", "c", "d")[:-30]


@pytest.mark.parametrize(
    ("document", "error"),
    [
        (404, "answered 404 Not Found"),
        (500, "answered 500 Internal Server Error"),
        (opml(), "the list has no feeds"),
        (b"", "the document is empty"),
        (b"<!doctype html><p>", "this is an HTML page, not a list of feeds"),
        (BROKEN, "line 1: "),
    ],
)
async def test_nothing_leaves_because_a_list_is_broken(
    watched: Watched, document: bytes | int, error: str
) -> None:
    watched.put(opml("a", "b", "c", "d"))
    good = await watched.watch()
    watched.put(document)

    failing = await watched.next_reading(good)
    still = await watched.next_reading(failing)

    assert error in failing.error
    assert (failing.failures, still.failures) == (1, 2)
    assert still.read_at == good.read_at
    assert list(await watched.feeds()) == ["a", "b", "c", "d"]
    watched.put(opml("a", "b", "c"))
    mended = await watched.next_reading(still)
    assert (mended.error, mended.failures, mended.removed) == ("", 0, 1)


async def test_nothing_leaves_while_a_part_of_a_list_cannot_be_read(
    watched: Watched,
) -> None:
    watched.put(opml("a", includes=INCLUDED), ETag='"1"')
    watched.put(opml("b", "c"), INCLUDED)
    good = await watched.watch()
    assert list(await watched.feeds()) == ["a", "b", "c"]
    watched.put(503, INCLUDED)

    gap = await watched.next_reading(good)

    assert "If-None-Match" not in watched.hub.network.requests[-2].headers
    assert gap.error == (
        f"{INCLUDED}: answered 503 Service Unavailable;"
        " nothing is removed until all of it can be read"
    )
    assert list(await watched.feeds()) == ["a", "b", "c"]
    watched.put(opml("b"), INCLUDED)
    assert (await watched.next_reading(gap)).removed == 1


async def test_more_than_half_leave_when_the_next_reading_says_so_too(
    watched: Watched,
) -> None:
    watched.put(opml("a", "b", "c"))
    first = await watched.watch()
    watched.put(opml("a"), ETag='"1"')

    doubted = await watched.next_reading(first)
    assert doubted.error == (
        "2 of its 3 feeds are missing; they are removed if the next reading confirms it"
    )
    assert list(await watched.feeds()) == ["a", "b", "c"]

    believed = await watched.next_reading(doubted)
    assert "If-None-Match" not in watched.hub.network.requests[-1].headers
    assert (believed.removed, believed.error) == (2, "")
    assert list(await watched.feeds()) == ["a"]


async def test_what_somebody_wants_only_loses_the_category(watched: Watched) -> None:
    own = await watched.add("own", category="mine")
    await watched.add("plain")
    names = ("own", "plain", "followed", "edited", "a", "b", "c", "d", "e")
    watched.put(opml(*names, folder="News"))
    first = await watched.watch()
    assert (await watched.feed("plain")).category == "News"
    await Scene(watched.hub.storage).subscribe(await watched.feed("followed"))
    edited = await watched.feed("edited")
    await watched.hub.services.feeds.edit(edited.id, EditFeed(category="Kept"))

    watched.put(opml("a", "b", "c", "d", "e", folder="News"))
    second = await watched.next_reading(first)

    assert (second.removed, second.kept) == (0, 4)
    feeds = await watched.feeds()
    assert {name: feeds[name] for name in names[:4]} == {
        "own": "mine",
        "plain": "",
        "followed": "",
        "edited": "Kept",
    }
    assert (await watched.feed("own")).id == own.id


@pytest.mark.parametrize("then", ["moves", "leaves"])
async def test_a_category_set_by_hand_stays_though_the_list_wanted_it(
    watched: Watched, then: str
) -> None:
    await watched.add("own", category="News")
    names = ("own", "edited", "a", "b", "c", "d")
    watched.put(opml(*names, folder="News"))
    first = await watched.watch()
    edited = await watched.feed("edited")
    await watched.hub.services.feeds.edit(edited.id, EditFeed(category="Sport"))
    watched.put(opml(*names, folder="Sport"))
    second = await watched.next_reading(first)
    assert (await watched.feeds())["edited"] == "Sport"

    if then == "moves":
        watched.put(opml(*names, folder="Music"))
    else:
        watched.put(opml(*names[2:], folder="Sport"))
    third = await watched.next_reading(second)

    feeds = await watched.feeds()
    assert (feeds["own"], feeds["edited"]) == ("News", "Sport")
    assert feeds["a"] == ("Music" if then == "moves" else "Sport")
    assert third.removed == 0


async def test_a_category_that_the_list_gave_moves_and_leaves_with_it(
    watched: Watched,
) -> None:
    await watched.add("own")
    names = ("own", "a", "b", "c")
    watched.put(opml(*names))
    watch = await watched.watch()
    for folder in ("News", "Sport"):
        watched.put(opml(*names, folder=folder))
        watch = await watched.next_reading(watch)
        assert (await watched.feeds())["own"] == folder

    watched.put(opml(*names[1:], folder="Sport"))
    await watched.next_reading(watch)

    assert (await watched.feeds())["own"] == ""


async def test_a_known_feed_is_handed_over_without_a_category_of_its_own(
    watched: Watched,
) -> None:
    """The list that has it then gave it its category, and takes it away again."""
    await watched.add("known")
    watched.put(opml("known", "b", "c", folder="First"))
    watched.put(opml("known", "d", "e", folder="Second"), OTHER)
    first, second = await watched.watch(), await watched.watch(OTHER)
    watched.put(opml("b", "c", folder="First"))
    await watched.next_reading(first)
    assert (await watched.feeds())["known"] == "Second"

    watched.put(opml("d", "e", folder="Second"), OTHER)
    after = await watched.next_reading(second)

    assert (after.removed, after.kept) == (0, 1)
    assert (await watched.feeds())["known"] == ""


async def test_a_category_from_another_list_is_nobodys_own(watched: Watched) -> None:
    watched.put(opml("both", "b", "c", "d"))
    watched.put(opml("both", "e", "f", "g", folder="Second"), OTHER)
    first, second = await watched.watch(), await watched.watch(OTHER)
    assert (await watched.feeds())["both"] == "Second"
    watched.put(opml("both", "b", "c", "d", folder="First"))
    first = await watched.next_reading(first)
    assert (await watched.feeds())["both"] == "Second"

    watched.put(opml("e", "f", "g", folder="Second"), OTHER)
    await watched.next_reading(second)
    assert (await watched.feeds())["both"] == "First"
    watched.put(opml("b", "c", "d", folder="First"))
    assert (await watched.next_reading(first)).removed == 1


class CutOff(Exception):
    """The hub ends here."""


class CutOffFeeds(FeedService):
    """Ends before it adds anything."""

    def __init__(self, feeds: FeedService) -> None:
        self._feeds = feeds

    async def find(self, url: str) -> StoredFeed | None:
        return await self._feeds.find(url)

    async def add_all(self, *requests: object, **more: object) -> list[ImportedFeed]:
        raise CutOff


async def test_a_known_feed_is_not_lost_by_an_interruption(watched: Watched) -> None:
    known = await watched.add("known")
    store, feeds = watched.hub.storage.list_watches, watched.hub.services.feeds
    watch, _ = await store.add(NewListWatch(url=LIST), watched.hub.clock.now())
    walk = OutlineWalk()
    walk.begin_with(read_outlines(opml("known", "a", folder="News"), LIST))
    cut_off = ListFollower(watched.hub.storage, CutOffFeeds(feeds))
    with pytest.raises(CutOff):
        await cut_off.follow(watch, walk, ReadingProgress())
    assert [held for held, _ in await store.holders(known.id)] == [watch.id]

    watched.put(opml("known", "a", folder="News"))
    watch = await watched.watch()
    assert await watched.feeds() == {"known": "News", "a": "News"}

    watched.put(opml("a", folder="News"))
    await watched.next_reading(watch)
    assert (await watched.feeds())["known"] == ""


async def test_a_feed_of_two_lists_is_handed_over(watched: Watched) -> None:
    watched.put(opml("a", "b", "c", folder="First"))
    watched.put(opml("a", "d", "e", folder="Second"), OTHER)
    first, second = await watched.watch(), await watched.watch(OTHER)
    assert (await watched.feeds())["a"] == "First"

    watched.put(opml("b", "c", folder="First"))
    after = await watched.next_reading(first)
    assert (after.removed, after.kept) == (0, 1)
    assert (await watched.feeds())["a"] == "Second"

    watched.put(opml("d", "e", folder="Second"), OTHER)
    assert (await watched.next_reading(second)).removed == 1
    assert "a" not in await watched.feeds()


async def test_what_was_removed_by_hand_stays_removed(watched: Watched) -> None:
    watched.put(opml("a", "b", "c"))
    first = await watched.watch()
    await watched.hub.services.feeds.remove((await watched.feed("a")).id)

    second = await watched.next_reading(first)
    assert list(await watched.feeds()) == ["b", "c"]

    watched.put(opml("b", "c"))
    third = await watched.next_reading(second)
    assert (third.removed, third.kept) == (0, 1)
    watched.put(opml("a", "b", "c"))
    await watched.next_reading(third)
    assert (await watched.feed("a")).state is FeedState.ACTIVE


async def test_what_cannot_be_added_is_counted_and_tried_again(
    watched: Watched,
) -> None:
    watched.put(opml("a", "inside"))
    first = await watched.watch()

    assert (first.feeds, first.added, first.refused) == (2, 1, 1)
    second = await watched.next_reading(first)
    assert (second.refused, second.changed_at) == (1, first.changed_at)


async def test_an_interrupted_reading_goes_on(watched: Watched) -> None:
    """What it had added by then is its own: it was noted before."""
    store = watched.hub.storage.list_watches
    watched.put(opml("a", "b", "c", "d"))
    watch, _ = await store.add(NewListWatch(url=LIST), watched.hub.clock.now())
    feed = await watched.add("a")
    gone = await watched.add("e")
    pending = [
        WatchedFeed(url=each.url, category="", fate=WatchedFate.PENDING)
        for each in (feed, gone)
    ]
    await store.put_feeds(watch.id, pending)

    resumed = await watched.watch()

    assert resumed.feeds == 4
    assert list(await watched.feeds()) == ["a", "b", "c", "d"]  # e had left meanwhile
    watched.put(opml("b", "c", "d"))
    await watched.next_reading(resumed)
    assert list(await watched.feeds()) == ["b", "c", "d"]


async def test_a_list_that_is_unwatched_while_it_is_read_adds_no_more(
    watched: Watched,
) -> None:
    going_on = asyncio.Event()

    async def answer(request: Request) -> Scripted:
        await going_on.wait()
        return answered(body=opml("a"))

    watched.hub.network.at[LIST] = answer
    watch_id, _ = await watched.service.watch(NewListWatch(url=LIST))
    reading = (await watched.service.wait(watch_id, 0.0)).reading
    assert reading is not None

    await watched.service.unwatch(watch_id)
    going_on.set()
    watched.put(opml("b"), OTHER)
    await watched.watch(OTHER)

    assert list(await watched.feeds()) == ["b"]
    with pytest.raises(NotFound):
        await watched.service.unwatch(watch_id)


async def test_a_reading_that_is_stopped_changes_and_removes_nothing(
    watched: Watched,
) -> None:
    watched.put(opml("a", "b", "c", folder="News"))
    watch = await watched.watch()
    follower = ListFollower(watched.hub.storage, watched.hub.services.feeds)
    for names, folder in ((("a", "b", "c"), "Sport"), (("a", "b"), "News")):
        walk = OutlineWalk()
        walk.begin_with(read_outlines(opml(*names, folder=folder), LIST))
        stopped = ReadingProgress(is_stopped=True)

        assert await follower.follow(watch, walk, stopped) == watch
        assert (stopped.done, stopped.total > 0) == (0, True)
    assert await watched.feeds() == {"a": "News", "b": "News", "c": "News"}


async def test_feeds_that_move_to_another_list_stay(watched: Watched) -> None:
    """Though both are read at the same time."""
    moving = [f"m{number}" for number in range(20)]
    staying = [f"s{number}" for number in range(30)]
    watched.put(opml(*staying, *moving, folder="First"))
    watched.put(opml("other"), OTHER)
    first, _ = await watched.watch(), await watched.watch(OTHER)
    watched.put(opml(*staying, folder="First"))
    watched.put(opml("other", *moving, folder="Second"), OTHER)

    watched.hub.clock.advance(2 * HOUR)
    await asyncio.gather(watched.watch(), watched.watch(OTHER))

    feeds = await watched.feeds()
    assert {feeds.get(each) for each in moving} == {"Second"}
    assert (await watched.read(first.id)).feeds == len(staying)


async def test_feeds_stay_when_their_list_is_unwatched(watched: Watched) -> None:
    watched.put(opml("a"))
    watch = await watched.watch()

    assert await watched.service.unwatch(watch.id) == watch
    assert list(await watched.feeds()) == ["a"]
    assert await watched.service.page(after=ListWatchId(0), limit=9) == []


@pytest.mark.parametrize(
    ("url", "more", "error"),
    [
        ("example.org", {}, InvalidValue),
        ("https://me:secret@example.org/list", {}, InvalidValue),
        ("https://inside.example/list", {}, AddressRefused),
        (LIST, {"category": "x" * 201}, InvalidValue),
    ],
)
async def test_what_can_never_be_read_is_not_watched(
    watched: Watched, url: str, more: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await watched.service.watch(NewListWatch(url=url, **more))
    assert await watched.service.page(after=ListWatchId(0), limit=9) == []


@pytest.mark.parametrize("other", [{"category": "y"}, {"private": True}])
async def test_a_list_is_watched_in_one_way_only(
    watched: Watched, other: dict[str, Any]
) -> None:
    watched.put(opml("a"))
    await watched.watch(category="x")
    with pytest.raises(Conflict, match="unwatch"):
        await watched.watch(**other)


async def test_there_is_a_bound(watched: Watched) -> None:
    store, now = watched.hub.storage.list_watches, watched.hub.clock.now()
    urls = [f"{LIST}?{number}" for number in range(MOST_WATCHES)]
    later = now + timedelta(days=1)
    await asyncio.gather(*(store.add(NewListWatch(url=url), later) for url in urls))
    with pytest.raises(Conflict, match="1,000 lists are watched"):
        await watched.watch()
    watched.put(opml("a"), f"{LIST}?7")
    assert (await watched.watch(f"{LIST}?7")).feeds == 1


async def test_a_host_that_is_asked_too_often_is_left_alone(watched: Watched) -> None:
    watched.put(429, Retry_After="9000")
    refused = await watched.watch()
    asked = len(watched.hub.network.requests)
    other = "https://example.org/other.opml"
    watched.put(opml("a"), other)

    put_off = await watched.watch(other)

    assert (refused.due - watched.hub.clock.now()).total_seconds() == 9_000
    assert (put_off.due - watched.hub.clock.now()).total_seconds() == 9_000
    assert put_off.error == ""
    assert len(watched.hub.network.requests) == asked


async def test_a_fault_of_the_hub_is_told_and_ends_nothing(watched: Watched) -> None:
    watched.hub.network.at[LIST] = ZeroDivisionError()
    with capture_logs() as logs:
        broken = await watched.watch()

    assert broken.error == "internal error (ZeroDivisionError); the log has details"
    assert [each["event"] for each in logs if each["log_level"] == "error"] == [
        "list_broke"
    ]
    watched.put(opml("a"))
    assert (await watched.next_reading(broken)).error == ""


async def test_the_log_says_what_is_new_once(watched: Watched) -> None:
    with capture_logs() as logs:
        watched.put(404)
        failing = await watched.watch()
        failing = await watched.next_reading(failing)
        watched.put(opml("a"))
        good = await watched.next_reading(failing)
        await watched.next_reading(good)

    assert [each["event"] for each in logs if each.get("kind") == "list"] == [
        f"watched list {LIST}: answered 404 Not Found",
        f"watched list {LIST}: read again",
        f"watched list {LIST}: 1 added, 0 removed, 0 kept",
    ]
