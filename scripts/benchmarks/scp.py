"""Collections: all pages at once, and a delta of few among a million."""

from __future__ import annotations

import gzip
import resource
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random

from msgspec.structs import replace

from hub.publishing.collection_builder import BuildOptions, CollectionBuilder
from hub.publishing.collection_store import (
    Chain,
    CollectionStore,
    Generation,
    StoredCollection,
)
from hub.publishing.page_visibility import PageUpdater
from hub.runtime.clock import SystemClock
from protocols.model import Author, Category, Entry, Link, Status, Text
from protocols.scp.collection import ALL, CollectionType, Encoding
from scripts.benchmarks.measuring import (
    Finding,
    Sample,
    Size,
    Stopwatch,
    alternate,
    cpu_finding,
)
from scripts.benchmarks.stored_pages import FEEDS, START, open_pages, page_url
from storage.contract import Storage
from storage.records import (
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
CHANGED = 1_000
NOW = START + timedelta(days=700)
"""When all is fetched: after every entry's date."""
LEAST_MEGABYTES = 8.0
MOST_MEMORY = 80.0
MOST_DELTA_RATIO = 1.5
_WORDS = tuple(
    f"{first}{middle}{last}"
    for first in ("br", "c", "d", "fl", "gr", "m", "pl", "s", "t", "w")
    for middle in ("a", "e", "i", "ou")
    for last in ("d", "ll", "n", "nt", "rs", "st", "ther")
)


@dataclass(frozen=True, slots=True)
class _Scene:
    database: Path
    storage: Storage
    builder: CollectionBuilder
    store: CollectionStore


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    """CPU of this process, its threads included."""
    pages = size.pick(PAGES, QUICK_PAGES, 1_000)
    storage = await open_database(directory / "hub.db")
    try:
        await _fill(storage, pages)
        scene = _scene(directory / "hub.db", storage, directory / "scp")
        for found in await _snapshot(scene, pages):
            yield found
    finally:
        await storage.close()
    yield await _deltas(directory, size)


def _scene(database: Path, storage: Storage, directory: Path) -> _Scene:
    clock, store = SystemClock(), CollectionStore(directory)
    store.open()
    updater = PageUpdater(storage.pages, clock, "https://hub.example")
    builder = CollectionBuilder(storage, updater, store, clock, BuildOptions())
    return _Scene(database, storage, builder, store)


async def _fill(storage: Storage, pages: int) -> None:
    draw = Random(1)  # noqa: S311 - hides nothing
    each = pages // FEEDS
    for number in range(FEEDS):
        new = NewFeed(url=f"https://{number}.example/feed")
        feed, _ = await storage.feeds.add(new, START)
        for begin in range(number * each, (number + 1) * each, 500):
            keys = range(begin, min(begin + 500, (number + 1) * each))
            await _commit(storage, feed, [_entry(key, draw) for key in keys])


def _entry(key: int, draw: Random) -> Entry:
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
        id=f"tag:example.org,2026:{key}",
        title=words(6),
        content=Text(value=body),
        published=START + timedelta(minutes=key),
        links=(Link(href=f"https://entries.example/posts/{key}"),),
        authors=(Author(name=words(2)),),
        categories=(Category(term=words(1)),),
    )


async def _commit(storage: Storage, feed: StoredFeed, entries: list[Entry]) -> None:
    await storage.log.commit(
        FetchCommit(
            feed_id=feed.id,
            at=NOW,
            next_fetch=NOW,
            polling=Polling(code=200),
            entries=tuple(entries),
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
    raw = _raw_size(scene.store.path(built.name))
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


async def _deltas(directory: Path, size: Size) -> Finding:
    """Of as many changed pages, among very many and among no others."""
    many = size.pick(1_000_000, 100_000, 2_000)
    counts = (many, CHANGED)
    databases = [directory / f"{count}.db" for count in counts]
    storages = [
        await open_pages(database, count)
        for database, count in zip(databases, counts, strict=True)
    ]
    try:
        large, small = [
            await _published(_scene(database, storage, database.with_suffix(".scp")))
            for database, storage in zip(databases, storages, strict=True)
        ]
        samples = await alternate(
            size.pick(9, 3, 1),
            large=_changing(large, many),
            small=_changing(small, CHANGED),
        )
    finally:
        for storage in storages:
            await storage.close()
    return cpu_finding(
        "scp",
        f"page of a delta of {CHANGED:,} among {many:,} pages (floor: {CHANGED:,})",
        samples["large"],
        samples["small"],
        MOST_DELTA_RATIO,
    )


async def _published(scene: _Scene) -> _Scene:
    """As if a snapshot of all there is had just been built; its file is empty."""
    now = SystemClock().now().replace(microsecond=0)
    position = await scene.storage.pages.position()
    snapshot = StoredCollection(
        name="snapshot.scp.gz",
        section=ALL,
        type=CollectionType.SNAPSHOT,
        generated=now,
        since=None,
        expires=now + timedelta(days=2),
        gone=now + timedelta(days=3),
        encoding=Encoding.GZIP,
        digest="",
        pages=position,
        size=0,
    )
    scene.store.path(snapshot.name).touch()
    epoch = (await scene.storage.log.end()).epoch
    chains = {ALL: Chain(position=position, generated=now)}
    scene.store.generation = Generation(
        epoch=epoch, collections=(snapshot,), chains=chains
    )
    return scene


def _changing(scene: _Scene, count: int) -> Callable[[], Awaitable[Sample]]:
    draw = Random(2)  # noqa: S311 - hides nothing

    async def run() -> Sample:
        numbers = draw.sample(range(count), CHANGED)
        for feed in await scene.storage.feeds.page(after=0, limit=FEEDS):  # type: ignore[arg-type]
            edited = [
                _edited(each, draw) for each in numbers if each % FEEDS == feed.id - 1
            ]
            await _commit(scene.storage, feed, edited)
        _copy_log(scene.database)
        watch = Stopwatch()
        (built,) = await scene.builder.build()
        if built.pages != CHANGED:
            raise AssertionError(f"{built.pages} pages, not {CHANGED}")
        return watch.sample(CHANGED)

    return run


def _copy_log(database: Path) -> None:
    """Into the database: it is of the commits, and not to be counted as the delta's."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _edited(number: int, draw: Random) -> Entry:
    link = Link(href=page_url(number))
    return replace(_entry(number, draw), links=(link,))


def _raw_size(path: Path) -> int:
    size = 0
    with gzip.open(path) as file:
        while chunk := file.read(1 << 20):
            size += len(chunk)
    return size


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
