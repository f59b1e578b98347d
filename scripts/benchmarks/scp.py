"""Collections: all pages at once, and a delta of few among many."""

from __future__ import annotations

import gzip
import resource
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from hub.clock import SystemClock
from hub.collections.builder import BuildOptions, CollectionBuilder
from hub.collections.pages import PageKeeper
from hub.collections.shelf import Shelf
from protocols.model import Author, Category, Entry, Link, Status, Text
from scripts.benchmarks.measuring import Finding, Stopwatch
from storage.interface import Storage
from storage.packing import pack
from storage.records import (
    EntryWrite,
    FetchCommit,
    NewFeed,
    Polling,
    RecordKind,
    RecordWrite,
    StoredFeed,
)
from storage.sqlite import open_database

PAGES = 100_000
QUICK_PAGES = 10_000
FEEDS = 100
CHANGED = 1_000
LEAST_MEGABYTES = 8.0
MOST_MEMORY = 80.0
MOST_DELTA_RATIO = 1.5
START = datetime(2026, 1, 1, tzinfo=UTC)
_WORDS = tuple(
    f"{first}{middle}{last}"
    for first in ("br", "c", "d", "fl", "gr", "m", "pl", "s", "t", "w")
    for middle in ("a", "e", "i", "ou")
    for last in ("d", "ll", "n", "nt", "rs", "st", "ther")
)


@dataclass(frozen=True, slots=True)
class _Scene:
    storage: Storage
    builder: CollectionBuilder
    directory: Path


async def measure(directory: Path, *, is_quick: bool) -> list[Finding]:
    """CPU of this process, its threads included; the delta of a small database is the

    floor for that of a large one.
    """
    few, many = (QUICK_PAGES // 10, QUICK_PAGES) if is_quick else (10_000, PAGES)
    small = await _open(directory / "small")
    await _fill(small.storage, few)
    await small.builder.build()
    of_few = await _delta(small)
    await small.storage.close()
    large = await _open(directory / "large")
    await _fill(large.storage, many)
    found = await _snapshot(large, many)
    of_many = await _delta(large)
    await large.storage.close()
    ratio = of_many / of_few
    return [
        *found,
        Finding(
            bench="scp",
            measure=f"CPU ms for a delta of {CHANGED:,} among {many:,} pages",
            hub=of_many,
            floor=of_few,
            ratio=ratio,
            target=f"<= {MOST_DELTA_RATIO:g} x of {few:,}",
            met=ratio <= MOST_DELTA_RATIO,
        ),
    ]


async def _open(directory: Path) -> _Scene:
    clock, shelf = SystemClock(), Shelf(directory / "scp")
    shelf.open()
    storage = await open_database(directory / "hub.db")
    keeper = PageKeeper(storage.pages, clock, "https://hub.example")
    builder = CollectionBuilder(storage, keeper, shelf, clock, BuildOptions())
    return _Scene(storage, builder, directory / "scp")


async def _fill(storage: Storage, pages: int) -> None:
    draw = Random(1)  # noqa: S311 - hides nothing
    for number in range(FEEDS):
        new = NewFeed(url=f"https://{number}.example/feed")
        feed, _ = await storage.feeds.add(new, START)
        for begin in range(0, pages // FEEDS, 500):
            count = min(500, pages // FEEDS - begin)
            keys = range(begin, begin + count)
            await _commit(storage, feed, [_entry(feed, key, draw) for key in keys])


def _entry(feed: StoredFeed, key: int, draw: Random) -> Entry:
    """Some 2.5 kB of HTML, as a middling post has."""

    def words(count: int) -> str:
        return " ".join(draw.choices(_WORDS, k=count)) + f" {draw.randrange(10**9)}"

    paragraphs = [
        f'<p>{words(45)} <a href="https://example.org/{draw.random()}">{words(2)}</a>'
        f" <b>{words(3)}</b> {words(20)}.</p>"
        for _ in range(6)
    ]
    body = f"<h2>{words(5)}</h2>{''.join(paragraphs)}<ul><li>{words(6)}</li></ul>"
    return Entry(
        key=str(key),
        id=f"tag:{feed.id},{key}",
        title=words(6),
        content=Text(value=body),
        published=START + timedelta(minutes=key),
        links=(Link(href=f"https://{feed.id}.example/posts/{key}"),),
        authors=(Author(name=words(2)),),
        categories=(Category(term=words(1)),),
    )


async def _commit(storage: Storage, feed: StoredFeed, entries: list[Entry]) -> None:
    await storage.log.commit(
        FetchCommit(
            feed_id=feed.id,
            at=START,
            next_fetch=START,
            polling=Polling(code=200),
            entries=tuple(
                EntryWrite(key=each.key, body=pack(each), published=each.published)
                for each in entries
            ),
            records=(
                RecordWrite(
                    kind=RecordKind.BASELINE,
                    status=Status(code=200),
                    entries=tuple((each.key, False) for each in entries),
                ),
            ),
        )
    )


async def _snapshot(scene: _Scene, pages: int) -> list[Finding]:
    """All that is left to do when so many entries have been stored."""
    before = _peak()
    watch = Stopwatch()
    await scene.builder.catch_up()
    judging = watch.sample(pages).microseconds
    watch = Stopwatch()
    (built,) = await scene.builder.build()
    seconds = watch.sample(1).microseconds / 1e6
    raw = _raw_size(scene.directory / built.name)
    speed, memory = raw / 1e6 / seconds, _peak() - before
    return [
        Finding(
            bench="scp",
            measure=f"MB of JSON lines per CPU second, {pages:,} pages",
            hub=speed,
            target=f">= {LEAST_MEGABYTES:g}",
            met=speed >= LEAST_MEGABYTES,
        ),
        Finding(
            bench="scp",
            measure="MB of memory above idle while they are judged and built",
            hub=memory,
            target=f"<= {MOST_MEMORY:g}",
            met=memory <= MOST_MEMORY,
        ),
        Finding(
            bench="scp",
            measure="CPU us for judging an entry once",
            hub=judging,
        ),
    ]


async def _delta(scene: _Scene) -> float:
    """CPU milliseconds for so many changed pages, judged and built."""
    draw = Random(2)  # noqa: S311 - hides nothing
    feeds = await scene.storage.feeds.page(after=0, limit=10)  # type: ignore[arg-type]
    each = CHANGED // len(feeds)
    for feed in feeds:
        keys = range(min(each, 100))
        await _commit(scene.storage, feed, [_entry(feed, key, draw) for key in keys])
    watch = Stopwatch()
    (built,) = await scene.builder.build()
    if built.pages != CHANGED:
        raise AssertionError(f"{built.pages} pages, not {CHANGED}")
    return watch.sample(1).microseconds / 1e3


def _raw_size(path: Path) -> int:
    size = 0
    with gzip.open(path) as file:
        while chunk := file.read(1 << 20):
            size += len(chunk)
    return size


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
