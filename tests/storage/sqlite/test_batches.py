from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from storage.errors import StorageBusy, StorageClosed
from storage.sqlite import batches as batches_module
from storage.sqlite.batches import Batches, parted
from storage.sqlite.writer import Writer

written: list[list[int]] = []


def write_all(items: Sequence[int], connection: sqlite3.Connection) -> list[int]:
    """Doubles, and refuses 13."""
    connection.executemany("INSERT INTO t VALUES (?)", [(each,) for each in items])
    if 13 in items:
        raise ValueError("13")
    written.append(list(items))
    return [2 * each for each in items]


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[Writer]:
    written.clear()
    connection = sqlite3.connect(
        tmp_path / "t.db", isolation_level=None, check_same_thread=False
    )
    connection.execute("CREATE TABLE t (value INTEGER)")
    writer = Writer(connection)
    yield writer
    await writer.close()


async def test_what_comes_at_once_is_one_unit_and_each_gets_its_result(
    writer: Writer,
) -> None:
    batches = Batches(writer, write_all, pause=0)
    assert await asyncio.gather(*map(batches.submit, range(5))) == [0, 2, 4, 6, 8]
    assert await batches.submit(5) == 10
    assert written == [[0, 1, 2, 3, 4], [5]]


async def test_a_batch_is_bounded(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches_module, "BATCH_SIZE", 2)
    batches = Batches(writer, write_all, pause=0)
    await asyncio.gather(*map(batches.submit, range(5)))
    assert written == [[0, 1], [2, 3], [4]]


async def test_one_that_fails_harms_no_other(writer: Writer) -> None:
    batches = Batches(writer, write_all, pause=0)
    results = await asyncio.gather(
        *map(batches.submit, (1, 13, 2)), return_exceptions=True
    )
    assert (results[0], results[2]) == (2, 4)
    assert isinstance(results[1], ValueError)
    assert written == [[1], [2]]


async def test_cancelling_a_caller_does_not_cancel_its_write(writer: Writer) -> None:
    batches = Batches(writer, write_all, pause=0)
    cancelled, failing, other = map(batches.submit, (1, 13, 2))
    cancelled.cancel()
    failing.cancel()
    assert await other == 4
    assert written == [[1], [2]]


async def test_only_so_many_may_wait(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches_module, "CAPACITY", 2)
    batches = Batches(writer, write_all, pause=0)
    waiting = [batches.submit(1), batches.submit(2)]
    with pytest.raises(StorageBusy):
        batches.submit(3)
    await asyncio.gather(*waiting)


async def test_a_closed_database_is_told_to_each(writer: Writer) -> None:
    batches = Batches(writer, write_all, pause=0)
    await writer.close()
    for future in (batches.submit(1), batches.submit(2)):
        with pytest.raises(StorageClosed):
            await future


def test_runs_end_before_a_key_comes_again() -> None:
    assert list(parted([1, 2, 11, 3], lambda each: each % 10)) == [[1, 2], [11, 3]]
    assert list(parted([], lambda each: each)) == []
