"""Several nodes at one database: what each holds is its own until its term is over.

Leases are judged by the server's clock, whatever the hubs take the time to be.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from storage.errors import TermEnded
from storage.postgres import open_database
from storage.postgres.operations import PostgresStorage
from storage.records import (
    ControlEvent,
    EpochBegan,
    NewNode,
    NodeTerm,
    Position,
    RetryMoved,
)
from tests.support.new_database import new_postgres
from tests.support.storage_scene import START, Scene, all_of, at

SLOW, FAST = START, datetime(2100, 1, 1, tzinfo=UTC)
"""Clocks of two hubs, behind the server's and ahead of it."""


@dataclass(slots=True)
class Member:
    storage: PostgresStorage
    scene: Scene
    term: NodeTerm

    async def renew(self) -> None:
        self.term = await self.storage.membership.renew(self.term)


class Nodes:
    def __init__(self, location: str, key: Path, stack: AsyncExitStack) -> None:
        self._location = location
        self._key = key
        self._stack = stack

    async def join(self, name: str) -> Member:
        storage = await open_database(self._location, self._key)
        self._stack.push_async_callback(storage.close)
        term = await storage.membership.join(NewNode(name=name))
        return Member(storage, Scene(storage), term)

    def execute(self, statement: LiteralString, *values: str) -> None:
        with psycopg.connect(self._location, autocommit=True) as connection:
            connection.execute(statement, values)

    def end_term(self, name: str) -> None:
        """As time does, for a node that is silent."""
        self.execute(
            "UPDATE nodes SET expires_at = clock_timestamp() - interval '1 ms'"
            " WHERE name = %s",
            name,
        )

    def let_leases_end(self) -> None:
        """As time does, for leases that nobody renews."""
        self.execute("UPDATE chunks SET due = lease_time(0)")
        self.execute("UPDATE retries SET leased_until = lease_time(0)")


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with (
        new_postgres(is_played=False) as location,
        AsyncExitStack() as stack,
    ):
        yield Nodes(location, tmp_path / "key", stack)


async def test_no_chunk_is_claimed_twice_while_its_lease_lives(nodes: Nodes) -> None:
    one, other = await nodes.join("one"), await nodes.join("other")
    for name in "abcdef":
        feed = await one.scene.add_feed(name)
        await one.scene.subscribe(feed, name)
        await one.scene.publish(feed)

    claims = [
        each.scene.claim(now, limit=2, lease_id=number)
        for number, (each, now) in enumerate([(one, SLOW), (other, FAST)] * 3, 1)
    ]
    claimed = [chunk.id for some in await asyncio.gather(*claims) for chunk in some]

    assert len(claimed) == len(set(claimed)) == 6
    assert await other.scene.claim(FAST) == [], "its own clock ends no lease"


async def test_no_retry_is_claimed_twice_while_its_lease_lives(nodes: Nodes) -> None:
    one, other = await nodes.join("one"), await nodes.join("other")
    late = await one.scene.subscribe_retrying(await one.scene.add_feed())
    (retrying,) = await one.scene.claim_retrying(at(5))

    assert await other.scene.claim_retrying(FAST) == []

    progress = RetryMoved(
        subscription_id=late.id,
        lease_id=retrying.lease_id,
        position=Position(1),
        attempts=0,
        next_try=at(65),
        last_status=200,
    )
    nodes.let_leases_end()
    await one.scene.flush(when=at(5), moved=(progress,))
    assert await other.scene.claim_retrying(FAST) == [], "progress renews the lease"
    nodes.let_leases_end()
    (again,) = await other.scene.claim_retrying(SLOW, lease_id=2)
    assert (again.subscription.id, again.lease_id) == (late.id, 2)


async def test_who_is_silent_for_a_term_holds_nothing_and_stores_nothing(
    nodes: Nodes,
) -> None:
    killed, other = await nodes.join("killed"), await nodes.join("other")
    feed = await killed.scene.add_feed()
    late = await killed.scene.subscribe_retrying(feed)
    await killed.scene.subscribe(feed, "punctual")
    await killed.scene.publish(feed, "news")
    (chunk,) = await killed.scene.claim()
    (retrying,) = await killed.scene.claim_retrying(at(5))
    await other.renew()
    assert await other.scene.claim(FAST) == []

    nodes.end_term("killed")
    await other.renew()

    (chunk_again,) = await other.scene.claim(SLOW, lease_id=2)
    (retrying_again,) = await other.scene.claim_retrying(at(5), lease_id=2)
    assert chunk_again.id == chunk.id
    assert retrying_again.subscription == retrying.subscription
    for call in (
        killed.scene.flush(outcomes=all_of(chunk)),
        killed.scene.flush(notified=((late.account, 1),)),
        killed.scene.claim(FAST),
        killed.scene.claim_retrying(FAST),
        killed.storage.deliveries.renew([], lease_id=1, seconds=60, now=FAST),
        killed.scene.publish(feed, "too late"),
        killed.renew(),
    ):
        with pytest.raises(TermEnded):
            await call
    assert await other.storage.deliveries.notified() == {}
    assert (await other.storage.log.end()).position == 2


async def test_who_restarts_frees_what_it_held_and_nothing_of_others(
    nodes: Nodes,
) -> None:
    one, other = await nodes.join("one"), await nodes.join("other")
    feeds = [await one.scene.add_feed(name) for name in "ab"]
    for feed in feeds:
        await one.scene.subscribe(feed)
        await one.scene.publish(feed)
    (held,) = await one.scene.claim(limit=1)
    (others,) = await other.scene.claim(limit=1)

    again = await nodes.join("one")

    (freed,) = await again.scene.claim()
    assert freed.id == held.id
    await other.scene.flush(outcomes=all_of(others))
    assert (await other.storage.backlog()).chunks == 1


async def test_who_is_late_goes_on_if_nobody_was_faster(nodes: Nodes) -> None:
    late, other = await nodes.join("late"), await nodes.join("other")
    nodes.end_term("late")

    await late.renew()
    await other.renew()

    names = [each.name for each in await other.storage.membership.nodes()]
    assert names == ["late", "other"]


async def test_one_epoch_begins_for_all_nodes(nodes: Nodes) -> None:
    one, other = await nodes.join("one"), await nodes.join("other")
    told: list[ControlEvent] = []
    with (
        one.storage.control.watch(told.append),
        other.storage.control.watch(told.append),
    ):
        nodes.execute("UPDATE log_head SET identity = 'of another server'")
        for each in (one, other, one, other):
            await each.renew()

    epoch = (await one.storage.log.end()).epoch
    assert told == [EpochBegan(epoch)] * 2
