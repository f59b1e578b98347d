"""Group commit: many units, one COMMIT, and no unit's trouble is another's."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from storage.errors import (
    OutcomeUnknown,
    StorageBusy,
    StorageClosed,
    StorageFull,
    WriteFailed,
)
from storage.sqlite.writer import GROUP_SIZE, MOST_URGENT, Assignments, Writer

INSERT = "INSERT INTO numbers VALUES (?, zeroblob(?))"
ASSIGN = Assignments(
    "UPDATE numbers SET filling = asked.value FROM json_each(?) asked"
    " WHERE number = CAST(asked.key AS INTEGER)"
)


class Disk(sqlite3.Connection):
    """A connection that counts commits and can refuse them."""

    commits = 0
    refusals = 0
    lost_rollbacks = 0
    is_lost = False
    code = sqlite3.SQLITE_IOERR
    next_code = 0

    def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:
        if sql == "COMMIT":
            if self.refusals:
                self.refusals -= 1
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = self.code
                self.code = self.next_code or self.code
                raise error
            self.commits += 1
        return super().execute(sql, *parameters)

    def rollback(self) -> None:
        if self.lost_rollbacks:
            self.lost_rollbacks -= 1
            raise sqlite3.OperationalError("disk I/O error")
        super().rollback()

    def close(self) -> None:
        super().close()
        if self.is_lost:
            raise sqlite3.OperationalError("unable to close due to unfinalized")


class Pen:
    """A writer over one table of numbers, which can be made to wait."""

    def __init__(self, path: Path, *, capacity: int = 10_000) -> None:
        self.disk = sqlite3.connect(
            path, factory=Disk, isolation_level=None, check_same_thread=False
        )
        self.disk.execute("PRAGMA journal_mode = WAL")
        self.disk.execute(
            "CREATE TABLE numbers"
            " (number INTEGER UNIQUE, filling CHECK (filling <> 13))"
        )
        self.disk.commits = 0
        self.writer = Writer(self.disk, capacity=capacity)
        self._path = path
        self._gate = threading.Event()

    async def hold(self) -> None:
        """Let the writer wait in a unit, so that what follows is one group."""
        entered = threading.Event()

        def wait(connection: sqlite3.Connection) -> None:
            entered.set()
            self._gate.wait(10)

        self.holding = self.writer.submit(wait, is_single=True)
        await asyncio.to_thread(entered.wait, 10)

    def go_on(self) -> None:
        self._gate.set()

    def write(
        self, number: int, *, is_single: bool = False, size: int = 0
    ) -> asyncio.Future[int]:
        def insert(connection: sqlite3.Connection) -> int:
            connection.execute(INSERT, (number, size))
            return number

        return self.writer.submit(insert, is_single=is_single)

    def write_and_fail(self, number: int, error: Exception) -> asyncio.Future[None]:
        def insert(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO numbers VALUES (?, '')", (number,))
            raise error

        return self.writer.submit(insert)

    def state(self, *parameters: object) -> asyncio.Future[None]:
        return self.writer.execute(INSERT, parameters)

    def assign(self, number: int, filling: object) -> asyncio.Future[None]:
        return self.writer.execute(ASSIGN, (number, filling))

    def filled(self) -> dict[int, object]:
        with sqlite3.connect(self._path) as reader:
            found = dict(reader.execute("SELECT number, filling FROM numbers"))
        reader.close()
        return found

    def written(self) -> list[int]:
        with sqlite3.connect(self._path) as reader:
            rows = reader.execute("SELECT number FROM numbers ORDER BY 1").fetchall()
        reader.close()
        return [number for (number,) in rows]


@pytest.fixture
async def make_pen(tmp_path: Path) -> AsyncIterator[Callable[..., Pen]]:
    pens = []

    def make(**options: int) -> Pen:
        pens.append(Pen(tmp_path / f"{len(pens)}.db", **options))
        return pens[-1]

    yield make
    for pen in pens:
        pen.go_on()
        await pen.writer.close()


@pytest.fixture
async def pen(make_pen: Callable[..., Pen]) -> Pen:
    return make_pen()


@pytest.mark.parametrize("is_single", [True, False])
async def test_a_unit_is_durable_when_its_caller_is_told(
    pen: Pen, is_single: bool
) -> None:
    assert await pen.write(1, is_single=is_single) == 1

    assert pen.written() == [1]


async def test_all_that_waits_goes_into_one_commit(pen: Pen) -> None:
    await pen.hold()
    waiting = [pen.write(number) for number in range(100)]
    pen.go_on()

    assert await asyncio.gather(*waiting) == list(range(100))
    assert pen.disk.commits <= 2, "the one that was held up, and the hundred"


async def test_a_group_has_a_bound(pen: Pen) -> None:
    await pen.hold()
    waiting = [pen.write(number) for number in range(GROUP_SIZE + 1)]
    pen.go_on()
    await asyncio.gather(*waiting)

    assert pen.disk.commits == 3


async def test_a_group_is_handed_to_the_loop_in_one_call(pen: Pen) -> None:
    loop = asyncio.get_running_loop()
    calls = []
    real = loop.call_soon_threadsafe
    loop.call_soon_threadsafe = lambda *of: (calls.append(of[0]), real(*of))[1]
    await pen.hold()
    waiting = [pen.write(number) for number in range(50)]
    pen.go_on()
    await asyncio.gather(*waiting)
    del loop.call_soon_threadsafe

    assert len([each for each in calls if each.__name__ == "_deliver"]) == 2


@pytest.mark.parametrize(
    "error", [KeyError("a bug"), sqlite3.IntegrityError("as if"), WriteFailed("no")]
)
async def test_a_unit_that_fails_is_rolled_back_alone(
    pen: Pen, error: Exception
) -> None:
    await pen.hold()
    before = pen.write(1)
    failing = pen.write_and_fail(2, error)
    after = pen.write(3)
    pen.go_on()

    assert [await before, await after] == [1, 3]
    with pytest.raises((KeyError, WriteFailed)):
        await failing
    assert pen.written() == [1, 3]
    assert pen.writer.write_error == "", "the unit is to blame, not the disk"


async def test_a_single_statement_that_fails_harms_nobody(pen: Pen) -> None:
    await pen.write(1)
    await pen.hold()
    again = pen.write(1, is_single=True)
    other = pen.write(2, is_single=True)
    pen.go_on()

    with pytest.raises(WriteFailed):
        await again
    await other
    assert pen.written() == [1, 2]


@pytest.mark.parametrize(
    "failing", [{0}, {2}, {4}, {0, 1}, {1, 3}, {3, 4}, set(range(5))]
)
async def test_statements_alike_fail_each_by_itself(
    pen: Pen, failing: set[int]
) -> None:
    await pen.state(99, 0)
    await pen.hold()
    waiting = [pen.state(99 if turn in failing else turn, 0) for turn in range(5)]
    pen.go_on()
    results = await asyncio.gather(*waiting, return_exceptions=True)

    failed = {turn for turn, result in enumerate(results) if result is not None}
    assert failed == failing
    assert {type(results[turn]) for turn in failing} == {WriteFailed}
    assert pen.written() == [*sorted(set(range(5)) - failing), 99]
    assert pen.writer.write_error == "", "the statements are to blame, not the disk"


async def test_a_statement_that_cannot_be_bound_fails_by_itself(pen: Pen) -> None:
    await pen.hold()
    waiting = [pen.state(1, 0), pen.state(2), pen.state(object(), 0), pen.state(3, 0)]
    pen.go_on()
    results = await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(each) for each in results] == [
        *(type(None), WriteFailed, WriteFailed, type(None))
    ]
    assert pen.written() == [1, 3]


async def test_a_statement_that_is_no_sql_fails_for_each_who_asked(pen: Pen) -> None:
    await pen.hold()
    waiting = [pen.writer.execute("INSERT NOWHERE", (number,)) for number in range(3)]
    other = pen.state(1, 0)
    pen.go_on()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    await other

    assert [type(each) for each in results] == [WriteFailed] * 3
    assert pen.written() == [1]


async def test_assignments_alike_are_one_statement(pen: Pen) -> None:
    await asyncio.gather(*(pen.write(number) for number in range(5)))
    statements: list[str] = []
    pen.disk.set_trace_callback(statements.append)
    await asyncio.gather(*(pen.assign(number, 10 + number) for number in range(3)))

    assert pen.filled() == {0: 10, 1: 11, 2: 12, 3: b"", 4: b""}
    assert len([each for each in statements if each.startswith("UPDATE")]) == 1


async def test_the_later_of_two_assignments_holds(pen: Pen) -> None:
    await pen.write(1)
    await asyncio.gather(*(pen.assign(1, filling) for filling in (7, 9, 8)))

    assert pen.filled() == {1: 8}


@pytest.mark.parametrize("harm", [13, object()], ids=["refused", "no integer"])
async def test_an_assignment_that_fails_harms_nobody(pen: Pen, harm: object) -> None:
    await asyncio.gather(*(pen.write(number) for number in range(3)))
    await pen.hold()
    waiting = [pen.assign(0, 10), pen.assign(1, harm), pen.assign(2, 12)]
    pen.go_on()
    results = await asyncio.gather(*waiting, return_exceptions=True)

    assert [result is None for result in results] == [True, False, True]
    assert pen.filled() == {0: 10, 1: b"", 2: 12}
    assert pen.writer.write_error == "", "the assignment is to blame, not the disk"


async def test_work_of_all_kinds_is_done_in_the_order_it_was_asked_for(
    pen: Pen,
) -> None:
    await pen.hold()
    waiting: list[asyncio.Future[object]] = [
        pen.state(1, 0),
        pen.state(2, 0),
        pen.writer.execute("UPDATE numbers SET number = number + ?", (10,)),
        pen.write(3),
        pen.write(4, is_single=True),
        pen.state(5, 0),
        pen.writer.execute("UPDATE numbers SET number = number + ?", (10,)),
    ]
    pen.go_on()

    assert await asyncio.gather(*waiting) == [None, None, None, 3, 4, None, None]
    assert pen.written() == [13, 14, 15, 21, 22]


async def test_a_disk_that_fails_amid_statements_fails_them_all(pen: Pen) -> None:
    await pen.writer.submit(lambda disk: disk.execute("PRAGMA max_page_count = 20"))
    await pen.hold()
    waiting = [pen.state(1, 0), pen.state(2, 1_000_000), pen.state(3, 0)]
    pen.go_on()
    results = await asyncio.gather(*waiting, return_exceptions=True)

    told = [number for number, each in enumerate(results, 1) if each is None]
    assert type(results[1]) is StorageFull
    assert "full" in pen.writer.write_error
    assert pen.written() == told, "who was told it is written finds it written"


async def test_cancelling_a_caller_does_not_cancel_its_statement(pen: Pen) -> None:
    await pen.hold()
    caller, neighbour = pen.state(1, 0), pen.state(2, 0)
    caller.cancel()
    pen.go_on()
    await neighbour

    assert pen.written() == [1, 2]


async def test_all_that_is_asked_for_in_one_turn_of_the_loop_is_one_commit(
    pen: Pen,
) -> None:
    await asyncio.gather(*(pen.state(number, 0) for number in range(GROUP_SIZE)))

    assert pen.disk.commits == 1


async def test_cancelling_a_caller_does_not_cancel_its_commit(pen: Pen) -> None:
    told = []
    await pen.hold()
    unit = pen.writer.submit(
        lambda connection: connection.execute("INSERT INTO numbers VALUES (7, '')"),
        then=told.append,
    )
    caller = asyncio.ensure_future(unit)
    caller.cancel()
    pen.go_on()
    await pen.write(8)

    assert caller.cancelled()
    assert pen.written() == [7, 8]
    assert len(told) == 1, "what is to happen after the commit happens"


async def test_a_commit_that_fails_fails_all_of_its_units(pen: Pen) -> None:
    await pen.hold()
    pen.disk.refusals = 1
    waiting = [pen.write(number) for number in range(3)]
    late = pen.write_and_fail(4, KeyError("its own"))
    pen.go_on()
    results = await asyncio.gather(pen.holding, *waiting, late, return_exceptions=True)
    kinds = {type(each) for each in results}

    assert kinds <= {type(None), WriteFailed, KeyError, int}
    assert WriteFailed in kinds


async def test_there_is_an_error_until_a_commit_works(pen: Pen) -> None:
    pen.disk.refusals = 1

    with pytest.raises(WriteFailed):
        await pen.write(1)
    troubled = pen.writer.write_error
    await pen.writer.submit(lambda connection: None)
    still_troubled = pen.writer.write_error
    await pen.write(2)

    assert "disk I/O error" in troubled
    assert still_troubled == troubled, "nothing was written, so nothing is proved"
    assert pen.writer.write_error == ""
    assert pen.written() == [2]


async def test_a_full_disk_says_so_and_writes_go_on_when_space_returns(
    pen: Pen,
) -> None:
    await pen.write(1)
    await pen.writer.submit(lambda disk: disk.execute("PRAGMA max_page_count = 20"))
    await pen.hold()
    small = pen.write(2)
    large = pen.write(3, size=1_000_000)
    pen.go_on()

    with pytest.raises(StorageFull):
        await large
    assert "full" in pen.writer.write_error
    await asyncio.gather(small, return_exceptions=True)
    await pen.writer.submit(lambda disk: disk.execute("PRAGMA max_page_count = 9999"))
    await pen.write(4, size=1_000_000)
    assert pen.writer.write_error == ""
    assert {1, 4} <= set(pen.written())


async def test_a_file_that_may_not_be_written_counts_as_full(pen: Pen) -> None:
    await pen.writer.submit(lambda disk: disk.execute("PRAGMA query_only = ON"))

    with pytest.raises(StorageFull):
        await pen.write(1)


@pytest.mark.parametrize(
    "error", [sqlite3.OperationalError("disk I/O error"), KeyError("a bug")]
)
async def test_a_rollback_of_the_whole_transaction_fails_the_whole_group(
    pen: Pen, error: Exception
) -> None:
    def lose(connection: sqlite3.Connection) -> None:
        connection.rollback()  # as SQLite does by itself when a disk fails
        raise error

    await pen.hold()
    before, losing, after = pen.write(1), pen.writer.submit(lose), pen.write(2)
    pen.go_on()

    for each in (before, losing, after):
        with pytest.raises((WriteFailed, KeyError)):
            await each
    assert pen.written() == []
    assert await pen.write(3) == 3, "the writer goes on"


@pytest.mark.parametrize(("lost_rollbacks", "failing"), [(1, 1), (5, 3)])
async def test_who_writes_while_no_rollback_works_is_told_and_then_it_goes_on(
    pen: Pen, lost_rollbacks: int, failing: int
) -> None:
    pen.disk.refusals, pen.disk.lost_rollbacks = 1, lost_rollbacks
    for number in range(failing):
        with pytest.raises(WriteFailed, match="disk I/O error"):
            await pen.write(number)
        assert "disk I/O error" in pen.writer.write_error

    assert await pen.write(failing) == failing
    assert pen.written() == [failing]
    assert pen.writer.write_error == ""


async def test_the_writer_outlives_whatever_a_unit_raises(pen: Pen) -> None:
    def leave(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO numbers VALUES (7, '')")
        raise SystemExit("a way out")

    await pen.hold()
    beside, leaving = pen.write(1), pen.writer.submit(leave)
    pen.go_on()

    for each in (beside, leaving):
        with pytest.raises(WriteFailed, match="SystemExit: a way out"):
            await each
    assert await pen.write(2) == 2
    assert pen.written() == [2]


async def test_what_follows_a_write_and_fails_is_its_own_callers_alone(
    pen: Pen,
) -> None:
    def fail(number: int) -> None:
        raise KeyError(number)

    await pen.hold()
    before = pen.write(1)
    failing = pen.writer.submit(lambda connection: 2, then=fail)
    after = pen.write(3)
    statement = pen.state(4, 0)
    pen.go_on()

    assert await before == 1
    with pytest.raises(KeyError):
        await failing
    assert await after == 3
    await statement
    assert pen.written() == [1, 3, 4]


async def test_what_follows_a_write_and_fails_is_told_the_loop_if_nobody_waits(
    pen: Pen,
) -> None:
    told: list[dict[str, object]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: told.append(context))

    def fail(number: int) -> None:
        raise KeyError(number)

    await pen.hold()
    failing = pen.writer.submit(lambda connection: 2, then=fail)
    after = pen.write(3)
    failing.cancel()
    pen.go_on()

    assert await after == 3
    assert [repr(each["exception"]) for each in told] == ["KeyError(2)"]


async def test_closing_ends_though_the_connection_cannot_be_closed(pen: Pen) -> None:
    pen.disk.is_lost = True
    assert await pen.write(1) == 1

    async with asyncio.timeout(10):
        await pen.writer.close()

    assert pen.written() == [1]


async def test_what_is_urgent_is_durable_before_all_that_waits(pen: Pen) -> None:
    await pen.hold()
    told: list[int] = []
    waiting = [pen.write(number) for number in range(5)]
    await asyncio.sleep(0)  # they are handed over
    urgent = pen.writer.submit(
        lambda connection: len(pen.written()), is_urgent=True, then=told.append
    )
    pen.go_on()

    assert await urgent == 0
    assert await asyncio.gather(*waiting) == list(range(5))
    assert told == [0]
    assert pen.disk.commits == 3


@pytest.mark.parametrize("is_single", [True, False])
async def test_a_group_under_way_makes_way_for_what_is_urgent(
    pen: Pen, is_single: bool
) -> None:
    told: list[int] = []
    begun, gate = threading.Event(), threading.Event()

    def first(connection: sqlite3.Connection) -> int:
        begun.set()
        gate.wait(10)
        return 0

    def seen(connection: sqlite3.Connection) -> list[int]:
        rows = connection.execute("SELECT number FROM numbers").fetchall()
        return [number for (number,) in rows]

    group: list[asyncio.Future[int]] = [pen.writer.submit(first, is_single=is_single)]
    group += [pen.write(number, is_single=is_single) for number in (1, 2)]
    group[2].add_done_callback(lambda each: told.append(each.result()))
    group.append(pen.writer.submit(lambda _: 3, then=told.append))
    statement = pen.state(4, 0)
    await asyncio.to_thread(begun.wait, 10)
    urgent = pen.writer.submit(seen, is_urgent=True)
    gate.set()

    assert await urgent == []
    assert await asyncio.gather(*group) == [0, 1, 2, 3]
    await statement
    assert pen.written() == [1, 2, 4]
    await asyncio.sleep(0)  # what is to be called when one is done is called then
    assert sorted(told) == [2, 3]


async def test_what_made_way_is_written_though_the_part_before_it_failed(
    pen: Pen,
) -> None:
    begun, gate = threading.Event(), threading.Event()

    def first(connection: sqlite3.Connection) -> None:
        begun.set()
        gate.wait(10)

    beginning, rest = pen.writer.submit(first), pen.write(1)
    await asyncio.to_thread(begun.wait, 10)
    pen.disk.refusals = 1
    urgent = pen.writer.submit(lambda connection: 2, is_urgent=True)
    gate.set()

    with pytest.raises(WriteFailed):
        await beginning
    assert (await urgent, await rest) == (2, 1)
    assert pen.written() == [1]


async def test_what_is_urgent_has_a_bound_and_an_end_too(pen: Pen) -> None:
    await pen.hold()
    urgent = [
        pen.writer.submit(lambda connection: 1, is_urgent=True)
        for _ in range(MOST_URGENT)
    ]
    with pytest.raises(StorageBusy):
        pen.writer.submit(lambda connection: 1, is_urgent=True)
    closing = asyncio.create_task(pen.writer.close())
    await asyncio.sleep(0)
    pen.go_on()

    assert await asyncio.gather(*urgent) == [1] * MOST_URGENT
    await closing
    with pytest.raises(StorageClosed):
        pen.writer.submit(lambda connection: 1, is_urgent=True)


async def test_the_queue_is_bounded(make_pen: Callable[..., Pen]) -> None:
    pen = make_pen(capacity=2)
    await pen.hold()
    waiting = [pen.write(1), pen.write(2)]

    with pytest.raises(StorageBusy):
        pen.write(3)

    pen.go_on()
    await asyncio.gather(*waiting)
    assert await pen.write(3) == 3


async def test_closing_finishes_what_waits_and_takes_no_more(pen: Pen) -> None:
    await pen.hold()
    waiting = [pen.write(number) for number in range(3)]
    closing = asyncio.create_task(pen.writer.close())
    await asyncio.sleep(0)

    with pytest.raises(StorageClosed):
        pen.write(9)

    pen.go_on()
    await closing
    await pen.writer.close()
    assert [each.result() for each in waiting] == [0, 1, 2]
    assert pen.written() == [0, 1, 2]


def test_a_loop_that_ended_does_not_stop_the_writer(tmp_path: Path) -> None:
    runner = asyncio.Runner()

    async def leave_early() -> Pen:
        pen = Pen(tmp_path / "left.db")
        await pen.hold()
        pen.write(1)
        closing = asyncio.create_task(pen.writer.close())
        await asyncio.sleep(0)
        assert not closing.done()
        return pen

    pen = runner.run(leave_early())
    runner.close()
    pen.go_on()
    for thread in threading.enumerate():
        if thread.name == "storage-writer":
            thread.join(10)

    assert pen.written() == [1]


async def test_closing_finishes_what_was_asked_for_in_this_very_turn(pen: Pen) -> None:
    waiting = [pen.state(number, 0) for number in range(3)]
    await pen.writer.close()

    assert await asyncio.gather(*waiting) == [None] * 3
    assert pen.written() == [0, 1, 2]


async def test_there_is_room_again_for_as_many_as_were_written(
    make_pen: Callable[..., Pen],
) -> None:
    pen = make_pen(capacity=3)

    for start in (0, 3, 6):
        waiting = [pen.state(start + number, 0) for number in range(3)]
        with pytest.raises(StorageBusy):
            pen.state(99, 0)
        await asyncio.gather(*waiting)

    assert pen.written() == list(range(9))


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (sqlite3.SQLITE_IOERR_WRITE, OutcomeUnknown),
        (sqlite3.SQLITE_IOERR_FSYNC, WriteFailed),
    ],
)
async def test_what_was_written_and_neither_flushed_nor_written_over_is_unknown(
    pen: Pen, second: int, expected: type[Exception]
) -> None:
    pen.disk.execute("CREATE TABLE meta (checked_at INTEGER)")
    pen.disk.code, pen.disk.next_code = sqlite3.SQLITE_IOERR_FSYNC, second
    pen.disk.refusals = 2  # of the write, and of what is written over it

    with pytest.raises(expected) as raised:
        await pen.writer.execute(INSERT, (1, 0))

    assert type(raised.value) is expected
