"""Entries are cleaned by a process that may be killed, and by it alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec import msgpack

from hub.ingest.entry_sanitizer import WorkerSanitizer
from hub.ingest.sanitizing_worker import sanitize_entries
from hub.ingest.worker_frames import Task
from protocols.feeds import ParseContext
from protocols.model import Entry, Text

BAD = Text(value="<b onclick=x>a</b>")
HOSTILE = Text(value="".join(f"<a><b title={i}><table>" for i in range(50_000)))


def entries_of(*texts: Text) -> tuple[Entry, ...]:
    return tuple(
        Entry(key=str(number), id=str(number), content=text)
        for number, text in enumerate(texts)
    )


async def test_entries_come_back_clean_and_in_order() -> None:
    async with WorkerSanitizer(seconds=60) as sanitizer:
        cleaned = await sanitizer.sanitize(entries_of(BAD, Text(value="b"), BAD))
        assert await sanitizer.sanitize(()) == ()

    assert cleaned == entries_of(
        Text(value="<b>a</b>"), Text(value="b"), Text(value="<b>a</b>")
    )


async def test_an_entry_that_takes_too_long_shows_its_source() -> None:
    async with WorkerSanitizer(seconds=2) as sanitizer:
        first, hostile, last = await sanitizer.sanitize(entries_of(BAD, HOSTILE, BAD))

    assert hostile.content is not None
    assert hostile.content.value.startswith("&lt;a&gt;&lt;b title=0&gt;")
    assert (first.key, hostile.key, last.key) == ("0", "1", "2")
    assert first.content == last.content == Text(value="<b>a</b>")


async def test_two_entries_that_take_too_long_take_the_others_with_them() -> None:
    async with WorkerSanitizer(seconds=1) as sanitizer:
        *_, other = await sanitizer.sanitize(entries_of(HOSTILE, HOSTILE, BAD))

    assert other.content == Text(value="&lt;b onclick=x&gt;a&lt;/b&gt;")


@pytest.mark.parametrize("module", ["tests.support.hostile_worker", "no_such_module"])
async def test_a_worker_that_fails_leaves_entries_disarmed(module: str) -> None:
    async with WorkerSanitizer(seconds=60, module=module) as sanitizer:
        (entry,) = await sanitizer.sanitize(entries_of(Text(value="<b>")))

    assert entry.content == Text(value="&lt;b&gt;")


def test_the_worker_reads_and_writes_entries() -> None:
    body = msgpack.encode(entries_of(BAD))
    context = ParseContext(url="", now=datetime(2026, 1, 1, tzinfo=UTC))
    assert sanitize_entries(Task(body, context)).entries == entries_of(
        Text(value="<b>a</b>")
    )
