"""Collections are built by the clock, and a failure waits for the next time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest
from structlog.testing import capture_logs

from hub.publishing.collection_builder import BuildOptions, CollectionBuilder
from hub.publishing.collection_publisher import PROMPT_SECONDS, CollectionPublisher
from storage.errors import StorageClosed, StorageError
from storage.records import Cursor, Position, Record
from tests.support.clock import ManualClock
from tests.support.waiting import eventually


@dataclass
class FakeBuilder:
    """Fails as it is told to, in whatever it is asked for."""

    failure: BaseException | None = None
    is_outdated: bool = True
    has_withdrawn: bool = False
    asked: list[str] = field(default_factory=list)
    options: BuildOptions = field(default_factory=BuildOptions)
    clock: ManualClock = field(default_factory=ManualClock)
    seconds: float = 0  # that a build takes

    async def build(self, *, snapshots: bool = False) -> None:
        self._ask("build all" if snapshots else "build")
        self.clock.advance(self.seconds)

    async def catch_up(self) -> None:
        self._ask("catch_up")

    async def needs_snapshot(self) -> bool:
        return self.is_outdated

    async def withdraw(self) -> bool:
        self._ask("withdraw")
        return self.has_withdrawn

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.failure is not None:
            raise self.failure


@dataclass
class FakeNews:
    """A log that tells of so many commits, and then closes."""

    commits: int = 0
    position: int = 0

    async def wait(self, after: Position, seconds: float) -> Position:
        assert after == self.position
        if self.position == self.commits:
            raise StorageClosed("the test is over")
        self.position += 1
        return Position(self.position)

    async def end(self) -> Cursor:
        return Cursor("e", Position(self.position))

    async def records(self, *, after: Position, limit: int) -> list[Record]:
        return []


def a_publisher(
    builder: FakeBuilder, clock: ManualClock | None = None, *, is_on: bool = True
) -> CollectionPublisher:
    made = cast("CollectionBuilder", builder)
    return CollectionPublisher(made, clock or ManualClock(), FakeNews(), is_on=is_on)


@pytest.mark.parametrize(
    "failure",
    [StorageError("the disk is full"), OSError("no space"), ValueError("odd")],
)
async def test_a_failure_is_logged_and_waits_for_the_next_time(
    failure: Exception,
) -> None:
    publisher = a_publisher(FakeBuilder(failure))
    is_fault = isinstance(failure, ValueError)

    with capture_logs() as lines:
        await publisher.build()

    assert [each["event"] for each in lines] == ["collections_failed"]
    assert lines[0].get("exc_info", False) is is_fault


@pytest.mark.parametrize(
    "failure", [StorageError("the disk is full"), ValueError("odd")]
)
async def test_pages_that_cannot_be_kept_up_are_logged_and_nothing_is_built(
    failure: Exception,
) -> None:
    builder = FakeBuilder(failure)
    is_fault = isinstance(failure, ValueError)

    with capture_logs() as lines:
        await a_publisher(builder).keep_up()

    assert builder.asked == ["catch_up"]
    assert [each["event"] for each in lines] == ["pages_not_kept_up"]
    assert lines[0].get("exc_info", False) is is_fault


async def test_cancellation_is_no_failure() -> None:
    publisher = a_publisher(FakeBuilder(asyncio.CancelledError()))

    with capture_logs() as lines:
        for job in (publisher.build, publisher.keep_up):
            with pytest.raises(asyncio.CancelledError):
                await job()

    assert lines == []


async def test_what_was_withdrawn_is_built_soon_but_not_at_once() -> None:
    builder, clock = FakeBuilder(), ManualClock()
    publisher = a_publisher(builder, clock)
    await publisher.build()

    await publisher.keep_up()
    clock.advance(PROMPT_SECONDS)
    await publisher.keep_up()

    assert builder.asked == ["build", "catch_up", "catch_up", "build"]


async def test_withdrawals_are_looked_for_often_and_the_rest_is_built_when_due() -> (
    None
):
    builder, clock = FakeBuilder(), ManualClock()
    publisher = a_publisher(builder, clock)
    await publisher.build()
    builder.asked.clear()

    for builder.has_withdrawn in (False, True, False):
        await publisher.withdraw()
    clock.advance(PROMPT_SECONDS)
    for _ in range(2):
        await publisher.withdraw()

    nothing, waits = ["withdraw"], ["withdraw", "catch_up"]
    assert builder.asked == [*nothing, *waits, *waits, *waits, "build", *nothing]


async def test_a_withdrawal_that_fails_is_logged_and_tried_again() -> None:
    builder = FakeBuilder(StorageError("busy"))

    with capture_logs() as lines:
        await a_publisher(builder).withdraw()

    assert [each["event"] for each in lines] == ["collections_not_withdrawn"]
    assert builder.asked == ["withdraw"]


async def test_a_hub_that_builds_for_long_does_not_only_build() -> None:
    builder = FakeBuilder(seconds=PROMPT_SECONDS / 2)
    publisher = a_publisher(builder, builder.clock)
    await publisher.build()

    builder.clock.advance(4 * PROMPT_SECONDS)
    await publisher.keep_up()
    builder.clock.advance(PROMPT_SECONDS)
    await publisher.keep_up()

    assert builder.asked == ["build", "catch_up", "catch_up", "build"]


@pytest.mark.parametrize(("is_on", "is_outdated"), [(False, True), (True, False)])
async def test_nothing_is_built_that_is_not_wanted(
    is_on: bool, is_outdated: bool
) -> None:
    builder = FakeBuilder(is_outdated=is_outdated)

    await a_publisher(builder, is_on=is_on).keep_up()

    assert builder.asked == ["catch_up"]


async def test_news_is_among_the_pages_soon() -> None:
    builder = FakeBuilder()
    publisher = CollectionPublisher(
        cast("CollectionBuilder", builder),
        ManualClock(),
        FakeNews(commits=2),
        gather_seconds=0,
    )

    with pytest.raises(StorageClosed):
        await publisher.follow()

    assert builder.asked == ["catch_up"] * 3


async def test_while_much_is_written_pages_are_judged_later() -> None:
    """Not by the clock either, which only asks whether anything was withdrawn."""
    builder = FakeBuilder(is_outdated=False)

    class Busy(FakeNews):
        async def records(self, *, after: Position, limit: int) -> list[Record]:
            await publisher.keep_up()
            return []

    publisher = CollectionPublisher(
        cast("CollectionBuilder", builder),
        ManualClock(),
        Busy(commits=1),
        gather_seconds=0,
    )
    with pytest.raises(StorageClosed):
        await publisher.follow()
    assert builder.asked == ["catch_up", "catch_up"], "at the start, and of the news"


async def test_a_build_that_is_asked_for_is_one_more() -> None:
    builder = FakeBuilder()
    publisher = a_publisher(builder)
    publisher.ask(snapshots=False)
    publisher.ask(snapshots=True)
    assert publisher.is_asked
    building = asyncio.create_task(publisher.build_when_asked())
    await eventually(lambda: not publisher.is_asked)
    assert builder.asked == ["build all"]
    publisher.ask(snapshots=False)
    await eventually(lambda: not publisher.is_asked)
    assert builder.asked == ["build all", "build"]
    building.cancel()
    await asyncio.wait([building])
