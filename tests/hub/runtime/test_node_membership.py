"""A hub that joins its database, stays a member, and notices that it is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest
from structlog.testing import capture_logs

from hub.runtime.node_membership import (
    JOINING_PAUSE,
    JOINING_SECONDS,
    MISSED_TOLD,
    MembershipLost,
    NodeMembership,
)
from storage.contract import Storage
from storage.errors import (
    StorageBusy,
    StorageError,
    StorageFull,
    TermEnded,
    WriteFailed,
)
from storage.records import (
    ControlEvent,
    DecisionsMissed,
    EpochBegan,
    NewNode,
    NodeTerm,
    QueriesWent,
)

NODE = NewNode(name="one")
BUSY = StorageBusy("another hub (two) is using this database")


@dataclass
class FakeStorage:
    """``failures``: of the next calls, in order, None: no failure; then they
    succeed."""

    failures: list[StorageError | None] = field(default_factory=list)
    seconds: float | None = 15.0
    calls: list[str] = field(default_factory=list)
    events: list[ControlEvent] = field(default_factory=list)

    @property
    def membership(self) -> FakeStorage:
        return self

    @property
    def control(self) -> FakeStorage:
        return self

    @contextmanager
    def watch(self, tell: Callable[[ControlEvent], None]) -> Iterator[None]:
        for event in self.events:
            tell(event)
        yield

    def _do(self, call: str) -> None:
        self.calls.append(call)
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure

    async def join(self, node: NewNode) -> NodeTerm:
        self._do("join")
        return NodeTerm(name=node.name, incarnation=7, seconds=self.seconds)

    async def renew(self, term: NodeTerm) -> NodeTerm:
        self._do("renew")
        return term

    async def leave(self, term: NodeTerm) -> None:
        self._do(f"leave {term.incarnation}")


@dataclass
class Scene:
    storage: FakeStorage = field(default_factory=FakeStorage)
    slept: list[float] = field(default_factory=list)
    trusted: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        store = cast("Storage", self.storage)
        self.membership = NodeMembership(
            store, NODE, self._sleep, lambda: sum(self.slept)
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.trusted.append(self.membership.is_trusted())

    async def lost(self, *failures: StorageError | None) -> str:
        """Joined, then this happens to its renewals; why it is lost in the end."""
        await self.membership.join()
        self.storage.failures = [*failures]
        with pytest.raises(MembershipLost) as raised:
            await self.membership.run()
        return str(raised.value)


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_it_joins_once_the_other_hub_has_left(scene: Scene) -> None:
    scene.storage.failures = [BUSY, BUSY]

    await scene.membership.join()
    await scene.membership.ensure_joined()

    assert scene.storage.calls == ["join"] * 3
    assert scene.slept == [JOINING_PAUSE] * 2


async def test_it_waits_no_longer_than_for_the_term_of_a_hub_that_died(
    scene: Scene,
) -> None:
    scene.storage.failures = [BUSY] * 100

    with pytest.raises(StorageBusy, match=r"another hub \(two\)"):
        await scene.membership.join()

    assert sum(scene.slept) == JOINING_SECONDS


async def test_a_full_disk_is_no_reason_not_to_start(scene: Scene) -> None:
    scene.storage.failures = [StorageFull("no space left")]

    await scene.membership.join()
    await scene.membership.leave()  # what it has not joined
    await scene.membership.ensure_joined()

    assert scene.storage.calls == ["join", "join"]


async def test_a_failed_renewal_is_tried_again(scene: Scene) -> None:
    lost = WriteFailed("no answer")
    with capture_logs() as lines:
        said = await scene.lost(lost, lost, None, TermEnded("one", 7))

    assert said == "another hub has taken over the database"
    assert scene.storage.calls == ["join"] + ["renew"] * 4
    assert scene.slept == [3.0] * 4
    assert [each["event"] for each in lines] == ["term_not_renewed", "term_renewed"]


async def test_a_term_is_trusted_for_as_long_as_nobody_can_have_taken_over(
    scene: Scene,
) -> None:
    """From when its last renewal was asked for, every three seconds, and a little less
    than the 15 of the term."""
    lost = WriteFailed("no answer")

    await scene.lost(None, *[lost] * 4, None, TermEnded("one", 7))

    assert scene.trusted == [True] * 5 + [False] + [True]


async def test_a_term_without_an_end_is_always_trusted(scene: Scene) -> None:
    scene.storage.seconds = None
    await scene.membership.join()
    scene.slept.append(1e9)
    assert scene.membership.is_trusted()


async def test_another_epoch_of_the_log_is_no_matter_to_go_on_with(
    scene: Scene,
) -> None:
    scene.storage.events = [QueriesWent(()), EpochBegan("ep0ch")]

    assert "begins epoch ep0ch" in await scene.lost()
    assert scene.storage.calls == ["join"]


async def test_decisions_that_cannot_be_read_are_told_of_if_that_is_repeated(
    scene: Scene,
) -> None:
    membership, event = scene.membership, DecisionsMissed("of the kind 'newer'")
    scene.storage.events = [event, EpochBegan("ep0ch")]
    await scene.lost()
    assert membership.warning() == ""
    await scene.lost()

    assert membership.warning().startswith("2 decisions of other hubs could not be")
    assert membership.warning().endswith("the last: of the kind 'newer'")
    scene.slept.append(MISSED_TOLD)
    assert membership.warning() == ""


@pytest.mark.parametrize("failures", [[], [StorageError("the server is gone")]])
async def test_leaving_is_tried_once(
    scene: Scene, failures: list[StorageError | None]
) -> None:
    await scene.membership.join()
    scene.storage.failures = failures

    await scene.membership.leave()

    assert scene.storage.calls == ["join", "leave 7"]
