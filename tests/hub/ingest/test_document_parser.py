from __future__ import annotations

import asyncio
import gzip
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from backports import zstd
from structlog.testing import capture_logs

from hub.ingest.document_parser import INLINE_BYTES, REST, WorkerParser
from protocols.feeds import ParseContext
from protocols.model import ParsedFeed
from protocols.protocol_errors import (
    EmptyDocument,
    LimitExceeded,
    MalformedDocument,
    NotAFeed,
)
from tests.support.clock import ManualClock
from tests.support.waiting import eventually

CONTEXT = ParseContext(url="https://x.example/", now=datetime(2026, 1, 1, tzinfo=UTC))
HOSTILE = "tests.support.hostile_worker"


def rss(items: int) -> bytes:
    listed = "".join(
        f"<item><guid>{number}</guid><title>Entry {number}</title></item>"
        for number in range(items)
    )
    return f"<rss version='2.0'><channel>{listed}</channel></rss>".encode()


def processes() -> set[int]:
    """The ids of our child processes that have not been buried."""
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # the thread has just ended
            found.update(map(int, (thread / "children").read_text().split()))
    return found


@pytest.fixture
async def parser() -> AsyncIterator[WorkerParser]:
    async with WorkerParser() as parser:
        yield parser


@pytest.fixture
async def hostile() -> AsyncIterator[WorkerParser]:
    """All documents go to one worker, which does what they say."""
    before = processes()
    async with WorkerParser(
        workers=1, seconds=5.0, inline_bytes=-1, module=HOSTILE
    ) as parser:
        yield parser
    assert processes() <= before


OTHER = replace(CONTEXT, url="https://other.example/")
PART = replace(CONTEXT, selector="$.a")


async def title(
    parser: WorkerParser, order: str, context: ParseContext = CONTEXT
) -> str:
    return (await parser.parse(order.encode(), context)).feed.title


async def test_a_small_document_is_read_without_a_process(parser: WorkerParser) -> None:
    before = processes()
    parsed = await parser.parse(rss(3), CONTEXT)
    assert len(parsed.entries) == 3
    assert processes() <= before


async def test_a_large_document_is_read_by_a_worker(parser: WorkerParser) -> None:
    before = processes()
    parsed = await parser.parse(rss(2000), CONTEXT)
    assert len(parsed.entries) == 2000
    assert parsed.path == "strict"
    assert len(processes() - before) == 1


async def test_a_small_document_of_many_tags_is_read_by_a_worker(
    parser: WorkerParser,
) -> None:
    before = processes()
    body = b"<rss><channel>%b</channel></rss>" % (b"<item/>" * 5_000)
    assert len(body) < INLINE_BYTES
    await parser.parse(body, CONTEXT)
    assert len(processes() - before) == 1


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
async def test_a_packed_document_is_unpacked_by_a_worker(
    parser: WorkerParser, pack: Callable[[bytes], bytes]
) -> None:
    before = processes()
    with pytest.raises(NotAFeed):
        await parser.parse(pack(b"words"), CONTEXT)
    assert len(processes() - before) == 1


async def test_an_ill_formed_document_is_repaired_by_a_worker(
    parser: WorkerParser,
) -> None:
    parsed = await parser.parse(rss(3).replace(b"</rss>", b""), CONTEXT)
    assert len(parsed.entries) == 3
    assert parsed.path != "strict"


async def test_a_fault_of_the_strict_parser_is_left_to_a_worker() -> None:
    def fail(body: bytes, context: ParseContext) -> ParsedFeed:
        raise KeyError("a fault")

    async with WorkerParser(read=fail) as parser:
        assert len((await parser.parse(rss(3), CONTEXT)).entries) == 3


async def test_both_ways_give_the_same_feed() -> None:
    async with WorkerParser() as inline, WorkerParser(inline_bytes=-1) as remote:
        body = rss(20)
        assert await inline.parse(body, CONTEXT) == await remote.parse(body, CONTEXT)


@pytest.mark.parametrize("inline_bytes", [-1, 65_536])
async def test_feed_errors_come_back_as_they_are(inline_bytes: int) -> None:
    page = (
        b"<!doctype html><html><head><link rel=alternate type=application/rss+xml "
        b"href=/feed.xml></head><body>hello</body></html>"
    )
    async with WorkerParser(inline_bytes=inline_bytes) as parser:
        with pytest.raises(EmptyDocument):
            await parser.parse(b"", CONTEXT)
        with pytest.raises(NotAFeed) as caught:
            await parser.parse(page, CONTEXT)
    assert [feed.href for feed in caught.value.feeds] == ["https://x.example/feed.xml"]


async def test_a_worker_is_used_again_and_replaced_in_time() -> None:
    async with WorkerParser(
        workers=1, documents=2, inline_bytes=-1, module=HOSTILE
    ) as parser:
        titles = [await title(parser, "one") for _ in range(4)]
    assert titles[0] == titles[1]
    assert titles[2] == titles[3]
    assert titles[0] != titles[2]


@pytest.mark.parametrize("order", ["hang {}", "spin"])
async def test_a_document_that_takes_too_long_costs_only_its_worker(
    order: str, tmp_path: Path
) -> None:
    async with WorkerParser(
        workers=1, seconds=2.0, inline_bytes=-1, module=HOSTILE
    ) as parser:
        with pytest.raises(LimitExceeded, match=r"time to parse .* limit of 2"):
            await title(parser, order.format(tmp_path / "started"))
        assert (await title(parser, "next", OTHER)).startswith("next by")


async def test_a_document_that_needs_too_much_memory_is_refused(
    hostile: WorkerParser,
) -> None:
    with pytest.raises(LimitExceeded, match="memory"):
        await title(hostile, "eat")


async def test_a_document_that_kills_its_worker_is_malformed(
    hostile: WorkerParser,
) -> None:
    with pytest.raises(MalformedDocument, match="the parser crashed"):
        await title(hostile, "die")
    assert (await title(hostile, "next", OTHER)).startswith("next by")


async def test_a_log_line_names_the_host_and_nothing_that_may_be_secret(
    hostile: WorkerParser,
) -> None:
    secret = replace(CONTEXT, url="https://me:pass@x.example/private?token=s3cret")

    with capture_logs() as lines, pytest.raises(MalformedDocument):
        await hostile.parse(b"die", secret)

    assert {(line["event"], line["host"]) for line in lines} == {
        ("parse_worker_died", "x.example")
    }
    assert not any("pass" in repr(line) or "token" in repr(line) for line in lines)


async def test_a_fault_of_the_parser_does_not_cost_the_worker(
    hostile: WorkerParser,
) -> None:
    worker = (await title(hostile, "one")).split()[-1]
    with pytest.raises(MalformedDocument, match="failed on it"):
        await title(hostile, "fail")
    assert (await title(hostile, "one")).split()[-1] == worker


async def test_what_a_library_prints_does_not_disturb(hostile: WorkerParser) -> None:
    assert (await title(hostile, "print")).startswith("print by")


async def test_a_worker_is_told_no_secrets(
    hostile: WorkerParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FANFARE_ADMIN_TOKEN", "secret")
    assert "FANFARE" not in await title(hostile, "environment")


async def test_a_worker_that_died_while_idle_is_replaced(hostile: WorkerParser) -> None:
    worker = int((await title(hostile, "one")).split()[-1])
    os.kill(worker, signal.SIGKILL)
    async with asyncio.timeout(60):
        while worker in processes():  # noqa: ASYNC110 - the kernel rings no bell
            await asyncio.sleep(0.01)
    assert (await title(hostile, "next")).startswith("next by")


@pytest.mark.parametrize("module", ["tests.support.no_such_worker", "this"])
async def test_a_worker_that_cannot_start_is_the_documents_trouble(module: str) -> None:
    before = processes()
    async with WorkerParser(inline_bytes=-1, module=module) as parser:
        with pytest.raises(MalformedDocument, match="no parser could be started"):
            await title(parser, "one")
    assert processes() <= before


async def test_a_worker_cancelled_while_it_starts_is_ended() -> None:
    before = processes()
    async with WorkerParser(inline_bytes=-1, module=HOSTILE) as parser:
        task = asyncio.create_task(title(parser, "one"))
        async with asyncio.timeout(60):
            while processes() <= before:  # noqa: ASYNC110 - the kernel rings no bell
                await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert processes() <= before


async def test_a_cancelled_document_ends_its_worker_at_once(
    hostile: WorkerParser, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    task = asyncio.create_task(title(hostile, f"hang {started}"))
    async with asyncio.timeout(60):
        while not started.exists():  # noqa: ASYNC110 - a process tells us by a file
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await title(hostile, "next")).startswith("next by")


async def test_no_more_documents_wait_than_agreed(tmp_path: Path) -> None:
    async with WorkerParser(
        workers=1, seconds=2.0, waiting=1, inline_bytes=-1, module=HOSTILE
    ) as parser:
        outcomes = await asyncio.gather(
            title(parser, f"hang {tmp_path / 'started'}"),
            title(parser, "one", OTHER),
            title(parser, "two", OTHER),
            return_exceptions=True,
        )
    assert isinstance(outcomes[0], LimitExceeded)
    assert str(outcomes[1]).startswith("one by")
    assert str(outcomes[2]) == "documents waiting to be parsed exceeds the limit of 1"


async def test_a_source_that_took_all_the_time_there_is_is_not_tried_again_soon(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with WorkerParser(
        workers=1, seconds=2.0, inline_bytes=-1, module=HOSTILE, clock=clock
    ) as parser:
        for context in (CONTEXT, PART):
            with pytest.raises(LimitExceeded, match="time to parse"):
                await title(parser, f"hang {tmp_path / 'started'}", context)
            clock.advance(REST - 1)
            with pytest.raises(LimitExceeded, match="time to parse"):
                await title(parser, "mended", context)
            clock.advance(1)
            assert (await title(parser, "mended", context)).startswith("mended by")


@pytest.mark.parametrize("is_part", [True, False])
async def test_slow_sources_and_parts_of_documents_have_one_worker_of_their_own(
    tmp_path: Path, *, is_part: bool
) -> None:
    started = tmp_path / "started"
    page = replace(CONTEXT, url="https://www.x.example/page")
    async with WorkerParser(
        workers=1, seconds=600.0, inline_bytes=-1, module=HOSTILE
    ) as parser:
        if not is_part:
            with pytest.raises(MalformedDocument, match="the parser crashed"):
                await title(parser, "die")
        slow = [
            asyncio.create_task(
                title(parser, order, replace(PART, url=page.url) if is_part else page)
            )
            for order in (f"hang {started}", "waits")
        ]
        await eventually(started.exists, seconds=60)

        assert (await title(parser, "next", OTHER)).startswith("next by")

        slow[0].cancel()
        assert (await slow[1]).startswith("waits by")


async def test_documents_that_waited_with_a_slow_one_go_on_in_the_line_of_the_slow(
    tmp_path: Path,
) -> None:
    """What is slow is known when it is over, and others came before."""
    async with WorkerParser(
        workers=1, seconds=2.0, inline_bytes=-1, module=HOSTILE
    ) as parser:
        orders = [f"hang {tmp_path / 'a'}", f"hang {tmp_path / 'b'}", "last"]
        contexts = [CONTEXT, replace(CONTEXT, url=CONTEXT.url + "b"), OTHER]
        slow, slower, last = (
            asyncio.create_task(title(parser, order, context))
            for order, context in zip(orders, contexts, strict=True)
        )
        assert (await last).startswith("last by")
        assert slow.done()
        for each in (slow, slower):
            with pytest.raises(LimitExceeded):
                await each
