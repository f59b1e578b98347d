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
from urllib.parse import urlsplit

import psycopg
import pytest

from storage.errors import TermEnded
from storage.postgres import open_database
from storage.postgres.operations import PostgresStorage
from storage.records import (
    ANONYMOUS,
    AccessEnded,
    ControlEvent,
    DecisionsMissed,
    EpochBegan,
    FeedChange,
    FeedState,
    NewNode,
    NewToken,
    NewVerification,
    NodeTerm,
    PauseChanged,
    Position,
    QueriesCame,
    QueriesWent,
    RetryMoved,
    ShardKind,
    SubscriberGroup,
    SubscriptionsEnded,
    TokenScope,
    TrackQuery,
    VerificationMode,
    VerificationTry,
    WorkKind,
)
from tests.support.new_database import new_postgres
from tests.support.storage_scene import START, Scene, all_of, at, fetch
from tests.support.waiting import eventually

SLOW, FAST = START, datetime(2100, 1, 1, tzinfo=UTC)
"""Clocks of two hubs, behind the server's and ahead of it."""


WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


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
        with self.connect() as connection:
            connection.execute(statement, values)

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self._location, autocommit=True)

    def end_term(self, name: str) -> None:
        """As time does, for a node that is silent."""
        self.execute(
            "UPDATE nodes SET expires_at = clock_timestamp() - interval '1 ms'"
            " WHERE name = %s",
            name,
        )

    def has_waiting(self) -> bool:
        """Whether anybody waits for what another one has locked."""
        with self.connect() as connection:
            return connection.execute(WAITING).fetchone() != (0,)

    def let_leases_end(self) -> None:
        """As time does, for leases that nobody renews."""
        self.execute("UPDATE chunks SET due = lease_time(0)")
        self.execute("UPDATE retries SET leased_until = lease_time(0)")
        self.execute("UPDATE claims SET until = lease_time(0)")


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


async def test_who_takes_over_waits_for_a_write_that_is_under_way(
    nodes: Nodes,
) -> None:
    removed, other = await nodes.join("removed"), await nodes.join("other")
    nodes.end_term("removed")
    with nodes.connect() as connection, connection.transaction():
        connection.execute("SELECT require_term(%s)", (removed.term.incarnation,))
        renewing = asyncio.create_task(other.renew())
        await asyncio.wait([renewing], timeout=0.1)
        assert not renewing.done()

    await renewing
    with nodes.connect() as connection, pytest.raises(psycopg.Error, match="is over"):
        connection.execute("SELECT require_term(%s)", (removed.term.incarnation,))


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


# --- shards ---


async def divided(*members: Member) -> None:
    """Have them renew their terms until each has what it is to have."""
    for each in members * 2:
        await each.renew()


async def share(nodes: Nodes, *members: Member) -> None:
    await divided(*members)
    drained(nodes)
    await divided(*members)


def drained(nodes: Nodes) -> None:
    """As time does, for shards that are to be given up."""
    nodes.execute("UPDATE shards SET given_up_at = given_up_at - interval '20 s'")


@pytest.mark.parametrize("kind", [ShardKind.FEEDS, ShardKind.CALLBACKS])
async def test_each_shard_belongs_to_one_node_at_a_time(
    nodes: Nodes, kind: ShardKind
) -> None:
    one = await nodes.join("one")
    assert one.term.shards(kind) == set(range(256))
    other = await nodes.join("other")
    assert (other.term.shards(kind), other.term.is_leader) == (frozenset(), False)
    await divided(one, other)

    kept = one.term.shards(kind)
    assert kept is not None
    assert 80 < len(kept) < 176
    assert other.term.shards(kind) == frozenset(), "one still ends what it has begun"

    drained(nodes)
    await divided(one, other)
    assert one.term.shards(kind) == kept
    assert other.term.shards(kind) == set(range(256)) - kept
    assert one.term.is_leader is not other.term.is_leader

    nodes.end_term("one")
    await other.renew()
    assert other.term.shards(kind) == set(range(256))
    assert other.term.is_leader


async def ask(member: Member, callback: str, token: str = "") -> None:
    request = NewVerification(
        account=ANONYMOUS,
        mode=VerificationMode.SUBSCRIBE,
        topic="https://a.example/feed",
        callback=callback,
        token=token or callback,
        lease_seconds=300,
    )
    assert await member.storage.verifications.add(
        request, START, most=99, most_of_host=99
    )


async def test_what_is_due_is_listed_to_the_owner_of_its_shard_only(
    nodes: Nodes,
) -> None:
    one, other = await nodes.join("one"), await nodes.join("other")
    await share(nodes, one, other)
    names = "abcdefghijkl"
    for name in names:
        feed = await one.scene.add_feed(name)
        callback = f"https://{name}.example/hook"
        subscription = await one.scene.subscribe(feed, callback=callback)
        await one.storage.digests.set(subscription.id, START)
        ended = await one.scene.subscribe(feed, callback=f"{callback}?ended")
        await one.storage.subscriptions.end(ended.id, "ended", START, tell=True)
        await ask(one, callback)

    async def lists(storage: PostgresStorage) -> list[list[str]]:
        digests = await storage.digests.due(FAST, 99)
        ending = await storage.subscriptions.ending(FAST, 99)
        asked = await storage.verifications.due(FAST, per_host=9, limit=99)
        statistics = await storage.feed_statistics.due(FAST, 99)
        feeds = await storage.feeds.several(statistics)
        polled = await storage.feeds.due(FAST, after={}, limit=99)
        assert await storage.feeds.next_due() is not None
        return [
            sorted(urlsplit(url).hostname or "" for url in urls)
            for urls in (
                [each.callback for each in digests],
                [each.callback for each in ending],
                [each.callback for each in asked],
                [each.url for each in feeds.values()],
                [each.url for each in polled],
            )
        ]

    hosts = [f"{name}.example" for name in names]
    for mine, others in zip(
        await lists(one.storage), await lists(other.storage), strict=True
    ):
        assert mine
        assert others
        assert sorted(mine + others) == hosts


async def test_outcomes_of_who_was_removed_are_refused(nodes: Nodes) -> None:
    removed, other = await nodes.join("removed"), await nodes.join("other")
    feed = await removed.scene.add_feed()
    subscription = await removed.scene.subscribe(feed)
    ended = await removed.scene.subscribe(feed, "ended")
    await removed.storage.subscriptions.end(ended.id, "ended", START, tell=True)
    await ask(removed, subscription.callback)
    (asked,) = await removed.storage.verifications.due(FAST, per_host=9, limit=9)
    nodes.end_term("removed")
    await other.renew()

    tried = VerificationTry(at=START, status=500, reason="answered 500")
    storage = removed.storage
    for call in (
        storage.claims.claim(
            WorkKind.DENIALS, [ended.id], lease_id=1, seconds=60, now=FAST
        ),
        storage.claims.release(WorkKind.DENIALS, [ended.id], lease_id=1),
        storage.verifications.retry(asked.id, tried, FAST, lease_id=1),
        storage.subscriptions.mark_denied([ended.id], lease_id=1),
        storage.digests.set(subscription.id, START),
        storage.digests.settle(subscription.id, START, lease_id=1),
        storage.feed_statistics.save([], lease_id=1),
        storage.pushes.forget(feed.id, lease_id=1),
        storage.log.commit(fetch(feed)),
        storage.feeds.defer([(feed.id, FAST)]),
    ):
        with pytest.raises(TermEnded):
            await call


# --- claims ---


async def asked_of_both(nodes: Nodes) -> tuple[Member, Member, int]:
    """Two nodes that have divided the shards, and a request that is due; it is listed
    to the first of them."""
    one, other = await nodes.join("one"), await nodes.join("other")
    await share(nodes, one, other)
    await ask(one, "https://a.example/hook")
    if not await due(one):
        one, other = other, one
    (asked,) = await due(one)
    return one, other, asked


async def due(member: Member) -> list[int]:
    found = await member.storage.verifications.due(FAST, per_host=9, limit=9)
    return [each.id for each in found]


async def claim(member: Member, id: int, lease_id: int, now: datetime = FAST) -> bool:
    held = await member.storage.claims.claim(
        WorkKind.VERIFICATIONS, [id], lease_id=lease_id, seconds=60, now=now
    )
    return id in held


async def fail(member: Member, id: int, lease_id: int) -> bool:
    tried = VerificationTry(at=START, status=500, reason="answered 500")
    later = datetime(2101, 1, 1, tzinfo=UTC)
    return await member.storage.verifications.retry(id, tried, later, lease_id=lease_id)


async def test_who_drains_a_shard_and_who_gets_it_do_nothing_twice(
    nodes: Nodes,
) -> None:
    former, owner, asked = await asked_of_both(nodes)
    assert await claim(former, asked, 1)
    nodes.execute(
        "UPDATE shards SET incarnation = (SELECT incarnation FROM nodes"
        " WHERE name = %s) WHERE kind = 'callbacks'",
        owner.term.name,
    )

    assert await due(owner) == []
    assert not await claim(owner, asked, 2)
    assert await fail(former, asked, 1)
    assert not await claim(owner, asked, 2), "it is not due any more"
    assert not await fail(owner, asked, 2)
    found = await owner.storage.verifications.find("https://a.example/hook")
    assert found is not None
    assert found.attempts == 1


async def test_of_two_that_claim_at_once_one_gets_it(nodes: Nodes) -> None:
    one, other, asked = await asked_of_both(nodes)
    claims = [
        claim(each, asked, number) for number, each in enumerate([one, other] * 4, 1)
    ]
    assert sorted(await asyncio.gather(*claims)) == [False] * 7 + [True]


async def test_what_a_stuck_node_holds_is_free_once_its_lease_is_over(
    nodes: Nodes,
) -> None:
    stuck, other, asked = await asked_of_both(nodes)
    assert await claim(stuck, asked, 1, SLOW)
    assert not await claim(other, asked, 2, FAST), "no hub's clock ends a lease"

    nodes.let_leases_end()

    assert await due(stuck) == [asked]
    assert await claim(other, asked, 2)
    assert not await fail(stuck, asked, 1)
    assert await fail(other, asked, 2)


async def test_what_a_removed_node_held_is_free_at_once(nodes: Nodes) -> None:
    removed, other, asked = await asked_of_both(nodes)
    assert await claim(removed, asked, 1)
    nodes.end_term(removed.term.name)
    await other.renew()

    assert await due(other) == [asked]
    assert await claim(other, asked, 2)
    with pytest.raises(TermEnded):
        await fail(removed, asked, 1)


async def test_who_claims_waits_for_an_outcome_that_is_under_way(
    nodes: Nodes,
) -> None:
    one, other, asked = await asked_of_both(nodes)
    assert await claim(one, asked, 1)
    nodes.let_leases_end()
    with nodes.connect() as connection, connection.transaction():
        connection.execute(
            "SELECT end_claims('verifications', ARRAY[%s::bigint], 1, 0)", (asked,)
        )
        connection.execute("UPDATE verifications SET due = NULL")
        claiming = asyncio.create_task(claim(other, asked, 2))
        await eventually(nodes.has_waiting)
    assert not await claiming


async def test_who_claims_a_request_waits_for_who_claims_another_of_its_key(
    nodes: Nodes,
) -> None:
    one, other, asked = await asked_of_both(nodes)
    with nodes.connect() as connection, connection.transaction():
        connection.execute(
            "SELECT claim_work('verifications', ARRAY[%s::bigint], 1, 0, 60000,"
            " lease_time(0))",
            (asked,),
        )
        await ask(one, "https://a.example/hook", "again")  # replaces it
        replacing = connection.execute("SELECT max(id) FROM verifications").fetchone()
        assert replacing is not None
        claiming = asyncio.create_task(claim(other, replacing[0], 2))
        await eventually(nodes.has_waiting)
    assert not await claiming
    nodes.let_leases_end()
    assert await claim(other, replacing[0], 2)


# --- the control log ---


def in_the_end(told: list[ControlEvent]) -> list[ControlEvent]:
    """Each event at its last place: a node is told of its own twice."""
    return [*dict.fromkeys(reversed(told))][::-1]


async def test_what_one_node_decides_all_are_told_in_one_order(nodes: Nodes) -> None:
    one, other = await nodes.join("one"), await nodes.join("other")
    feed = await one.scene.add_feed()
    kept, ended = [await one.scene.subscribe(feed, name) for name in "ab"]
    told: dict[str, list[ControlEvent]] = {"one": [], "other": []}
    with (
        one.storage.control.watch(told["one"].append),
        other.storage.control.watch(told["other"].append),
    ):
        await one.storage.subscriptions.pause(kept.id, START)
        await other.storage.subscriptions.resume(kept.id, START)
        position = await one.scene.publish(feed)
        await one.storage.subscriptions.end(ended.id, "ended", START, tell=True)
        query = await other.storage.tracking.add("fanfare", "fanfare", START)
        await one.storage.feeds.set_state(query.id, FeedState.REMOVED, START)
        new = NewToken(
            account="me",
            digest=b"1",
            scopes=frozenset({TokenScope.SUBSCRIBE}),
            label="",
        )
        token = await one.storage.tokens.add(new, START)
        assert token is not None
        await one.storage.tokens.revoke(token.id, START)
        shut_out = FeedChange(private=True, shuts_out=SubscriberGroup.STRANGERS)
        await one.storage.feeds.edit(feed.id, shut_out, "private", START)

        log: list[ControlEvent] = [
            PauseChanged(kept.id, is_paused=True),
            PauseChanged(kept.id, is_paused=False),
            SubscriptionsEnded((ended.id,), position),
            QueriesCame(1, (TrackQuery(query.id, "fanfare"),)),
            QueriesWent((query.id,)),
            AccessEnded(feeds=(query.id,)),
            AccessEnded(tokens=(token.id,)),
            SubscriptionsEnded((kept.id,), position),
            AccessEnded(feeds=(feed.id,)),
        ]
        for events in told.values():
            await eventually(lambda events=events: in_the_end(events) == log)
    assert await other.storage.log.wait(Position(0), 0) == position


async def test_decisions_are_told_after_a_watcher_failed(nodes: Nodes) -> None:
    one, other = await nodes.join("one"), await nodes.join("other")
    feed = await one.scene.add_feed()
    subscription = await one.scene.subscribe(feed)
    failures: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: failures.append(repr(context["exception"]))
    )
    told: list[ControlEvent] = []

    def fail(event: ControlEvent) -> None:
        if event == PauseChanged(subscription.id, is_paused=True):
            raise ValueError

    with other.storage.control.watch(fail), other.storage.control.watch(told.append):
        await one.storage.subscriptions.pause(subscription.id, START)
        await one.storage.subscriptions.resume(subscription.id, START)
        await eventually(lambda: len(told) == 2)
    assert failures == ["ValueError()"]


@pytest.mark.parametrize(
    ("kind", "reason"), [("paused", "list index out of range"), ("newer", "may know")]
)
async def test_a_decision_that_cannot_be_read_is_told_as_missed_and_others_follow(
    nodes: Nodes, kind: str, reason: str
) -> None:
    one, other = await nodes.join("one"), await nodes.join("other")
    subscription = await one.scene.subscribe(await one.scene.add_feed())
    told: list[ControlEvent] = []
    with other.storage.control.watch(told.append):
        nodes.execute(
            "INSERT INTO control (kind, ids, number, query) VALUES (%s, '{}', 0, '')",
            kind,
        )
        await one.storage.subscriptions.pause(subscription.id, START)
        await eventually(lambda: len(told) == 2)

    missed, paused = told
    assert isinstance(missed, DecisionsMissed)
    assert f"of the kind '{kind}'" in missed.reason
    assert reason in missed.reason
    assert paused == PauseChanged(subscription.id, is_paused=True)
