"""Sources other than feeds in XML, read as the hub reads them: a large SCP collection,
and documents in JSON of which only the head has changed."""

from __future__ import annotations

import gzip
import multiprocessing
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from statistics import median

from protocols.model import Author, Category, Entry, Feed, Link, Text
from protocols.scp.collection import ALL, CollectionHead, CollectionType, head_line
from protocols.scp.read.collection_entries import entry_of_page
from protocols.scp.read.collection_heads import HeadRules
from protocols.scp.read.collection_reader import CollectionPage, CollectionReader
from protocols.scp.write.page import PageContext, page_line
from scripts.benchmarks.known_items import measure_known_items
from scripts.benchmarks.measuring import Finding, Size, Stopwatch
from scripts.benchmarks.words import write_words

PAGES = 100_000
QUICK_PAGES = 10_000
ROUNDS = 3
LEAST_MEGABYTES = 20.0
MOST_MEMORY = 60.0
AT = datetime(2026, 1, 1, tzinfo=UTC)
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class _Round:
    """``memory`` is the most above idle so far, in MB, as the system counts it."""

    megabytes: float
    seconds: float
    memory: float


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    """In a process of its own, lest memory that was needed to make it counts."""
    pages = size.pick(PAGES, QUICK_PAGES, 1_000)
    file = directory / "all.scp.gz"
    _write(file, pages)
    rounds = _read_elsewhere(file, pages)
    speed = median(each.megabytes / each.seconds for each in rounds)
    memory = max(each.memory for each in rounds)
    yield Finding(
        bench="sources",
        measure=f"SCP: MB of JSON lines per CPU second, {pages:,} pages",
        hub=speed,
        target=f">= {LEAST_MEGABYTES:g}",
        met=speed >= LEAST_MEGABYTES,
    )
    yield Finding(
        bench="sources",
        measure="SCP: MB of memory above idle while they are read",
        hub=memory,
        target=f"<= {MOST_MEMORY:g}",
        met=memory <= MOST_MEMORY,
    )
    for finding in measure_known_items(size):
        yield finding


def _write(file: Path, pages: int) -> None:
    draw = Random(1)  # noqa: S311 - hides nothing
    head = CollectionHead(section=ALL, type=CollectionType.SNAPSHOT, generated=AT)
    with gzip.open(file, "wb", compresslevel=6) as packed:
        packed.write(head_line(head))
        for number in range(pages):
            context = PageContext(
                feed=Feed(title="The site"),
                url=f"https://site.example/posts/{number}",
                modified=AT - timedelta(minutes=number),
                language="en",
            )
            packed.write(page_line(_entry(number, draw), context))


def _entry(number: int, draw: Random) -> Entry:
    """Some 2.5 kB of HTML, as a middling post has."""

    words = partial(write_words, draw)
    paragraphs = [
        f'<p>{words(45)} <a href="https://example.org/{draw.random()}">{words(2)}</a>'
        f" <b>{words(3)}</b> {words(20)}.</p>"
        for _ in range(6)
    ]
    body = f"<h2>{words(5)}</h2>{''.join(paragraphs)}<ul><li>{words(6)}</li></ul>"
    return Entry(
        key=str(number),
        id=str(number),
        title=words(6),
        content=Text(value=body),
        published=AT - timedelta(minutes=number),
        links=(Link(href=f"https://site.example/posts/{number}"),),
        authors=(Author(name=words(2)),),
        categories=(Category(term=words(1)),),
    )


def _read_elsewhere(file: Path, pages: int) -> list[_Round]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_report, args=(file, pages, theirs))
    process.start()
    try:
        rounds: list[_Round] = ours.recv()
    finally:
        process.join()
    return rounds


def _report(file: Path, pages: int, answer: Connection) -> None:
    idle = _peak()
    answer.send([_round(file, pages, idle) for _ in range(ROUNDS)])


def _round(file: Path, pages: int, idle: float) -> _Round:
    """Read to its end before anything is believed, then once more for its entries."""
    watch = Stopwatch()
    checked = CollectionReader(HeadRules(now=AT))
    for _ in _pages(file, checked):
        pass
    reader = CollectionReader(HeadRules(now=AT))
    found = 0
    for page in _pages(file, reader):
        found += entry_of_page(page, reader.warnings).content is not None
    if found != pages:
        raise AssertionError(f"{found} entries, not {pages}")
    cpu = watch.sample(1).cpu
    return _Round(reader.output / 1e6, cpu, _peak() - idle)


def _pages(file: Path, reader: CollectionReader) -> Iterator[CollectionPage]:
    with file.open("rb") as packed:
        while piece := packed.read(_PIECE):
            yield from reader.feed(piece)
    yield from reader.finish()


def _peak() -> float:
    """Megabytes; what `resource` says includes what the parent once had."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("the system does not say how much memory was used")
