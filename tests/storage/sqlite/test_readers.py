"""Reads that a task makes again and again: those of the last time in one trip."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable
from typing import Any

import pytest

from storage.errors import StorageError
from storage.sqlite.connection_threads import Read, fetch_each
from storage.sqlite.readers import Readers

NAME = "SELECT name FROM things WHERE id = ?"
COUNT = "SELECT count(*) FROM things WHERE id > :id"


class CountedReader:
    """Reads in memory. ``trips``: how many reads each trip made."""

    def __init__(self) -> None:
        self.trips: list[int] = []
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, name)")
        self.connection.execute("INSERT INTO things VALUES (1, 'one')")

    async def execute_fetchall(self, sql: str, parameters: Any = None) -> Iterable[Any]:
        return (await self.fetch_each([(sql, parameters)]))[0]

    async def fetch_each(self, reads: Iterable[Read]) -> list[list[Any]]:
        reads = list(reads)
        self.trips.append(len(reads))
        await asyncio.sleep(0)
        return fetch_each(self.connection, reads)

    async def close(self) -> None:
        self.connection.close()


@pytest.fixture
def reader() -> CountedReader:
    return CountedReader()


@pytest.fixture
def readers(reader: CountedReader) -> Readers:
    return Readers([reader])


async def look(readers: Readers) -> tuple[object, ...]:
    with await readers.read_ahead():
        return (await readers.first(NAME, (1,)), await readers.first(COUNT, {"id": 0}))


async def test_what_was_read_the_last_time_is_read_in_one_trip(
    readers: Readers, reader: CountedReader
) -> None:
    for _ in range(3):
        assert await look(readers) == (("one",), (1,))
    assert reader.trips == [1, 1, 2, 2]


async def test_each_time_sees_what_was_written_before_it(
    readers: Readers, reader: CountedReader
) -> None:
    await look(readers)
    reader.connection.execute("UPDATE things SET name = 'other'")
    reader.connection.execute("INSERT INTO things VALUES (2, 'two')")
    assert await look(readers) == (("other",), (2,))
    reader.connection.execute("DELETE FROM things")
    assert await look(readers) == (None, (0,))


async def test_what_was_not_read_before_is_read_when_it_is_wanted(
    readers: Readers, reader: CountedReader
) -> None:
    await look(readers)
    with await readers.read_ahead():
        reader.connection.execute("INSERT INTO things VALUES (2, 'two')")
        assert await readers.first(NAME, (2,)) == ("two",)
        assert await readers.first(COUNT, {"id": 1}) == (1,)
        assert await readers.first(COUNT, {"id": 0}) == (1,)  # as it was ahead


async def test_other_tasks_and_times_read_for_themselves(
    readers: Readers, reader: CountedReader
) -> None:
    await look(readers)
    with await readers.read_ahead():
        reader.connection.execute("UPDATE things SET name = 'other'")
        other = asyncio.create_task(readers.first(NAME, (1,)))
        assert await other == ("other",)
    assert await readers.first(NAME, (1,)) == ("other",)


async def test_rows_may_be_changed_by_who_was_given_them(readers: Readers) -> None:
    await look(readers)
    with await readers.read_ahead():
        (await readers.all(NAME, (1,))).clear()
        assert await readers.all(NAME, (1,)) == [("one",)]


async def test_a_read_that_fails_is_told_to_who_makes_it_and_no_other(
    readers: Readers, reader: CountedReader
) -> None:
    reader.connection.execute("CREATE TABLE short_lived (id)")
    with await readers.read_ahead():
        await readers.all("SELECT * FROM short_lived")
        await readers.first(NAME, (1,))
    reader.connection.execute("DROP TABLE short_lived")
    with await readers.read_ahead():
        with pytest.raises(StorageError):
            await readers.all("SELECT * FROM short_lived")
        assert await readers.first(NAME, (1,)) == ("one",)


async def test_a_closed_database_has_nothing_to_read_ahead(readers: Readers) -> None:
    await look(readers)
    await readers.close()
    with await readers.read_ahead(), pytest.raises(StorageError):
        await readers.first(NAME, (1,))
