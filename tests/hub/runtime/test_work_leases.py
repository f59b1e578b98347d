"""Claims of this node: begun is nothing that another one may have taken over."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import cast

import pytest
from structlog.testing import capture_logs

from hub.runtime.work_leases import (
    LONGEST_WORK_SECONDS,
    WORK_SECONDS,
    WorkClaims,
    WorkLeases,
)
from storage.contract import ClaimStore
from storage.errors import WriteFailed
from storage.records import WorkKind
from tests.support.played_time import PlayedTime

KIND = WorkKind.DIGESTS
LOST = 13
"""Whoever holds it, its lease is not renewed."""


@dataclass
class FakeClaims:
    """Gives what is asked for. ``trust``: whether the node's term is trusted, one
    answer after the other, the last for good."""

    trust: list[bool] = field(default_factory=lambda: [True])
    leases: list[int] = field(default_factory=list)
    released: list[int] = field(default_factory=list)
    renewed: list[tuple[float, frozenset[int]]] = field(default_factory=list)
    error: Exception | None = None
    time: PlayedTime = field(default_factory=PlayedTime)

    def is_trusted(self) -> bool:
        return self.trust.pop(0) if len(self.trust) > 1 else self.trust[0]

    async def claim(
        self, kind: WorkKind, ids: Collection[int], *, lease_id: int, **terms: object
    ) -> frozenset[int]:
        self.leases.append(lease_id)
        return frozenset(ids)

    async def renew(
        self,
        kind: WorkKind,
        ids: Collection[int],
        *,
        lease_id: int,
        seconds: float,
        now: datetime,
    ) -> frozenset[int]:
        if self.error:
            raise self.error
        assert (now, seconds > 0) == (self.time.clock.now(), True)
        self.renewed.append((self.time.now + seconds, frozenset(ids)))
        return frozenset(ids) - {LOST}

    async def release(
        self, kind: WorkKind, ids: Sequence[int], *, lease_id: int
    ) -> None:
        if self.error:
            raise self.error
        self.released += ids


def claims_of(store: FakeClaims) -> WorkClaims:
    leases = WorkLeases(store.time.clock, Random(1), store.is_trusted)
    return WorkClaims(cast("ClaimStore", store), leases, store.time.sleep)


async def test_each_claim_has_a_lease_of_its_own() -> None:
    store = FakeClaims()
    claims = claims_of(store)

    assert [await claims.claim(KIND, [1, 2]), await claims.claim(KIND, [3])] == [
        (store.leases[0], {1, 2}),
        (store.leases[1], {3}),
    ]
    assert (await claims.claim(KIND, []))[1] == frozenset()
    assert len(set(store.leases)) == 2


async def test_a_node_whose_term_may_be_over_claims_and_begins_nothing() -> None:
    store = FakeClaims([False])
    claims = claims_of(store)

    assert not await claims.may_begin()
    assert (await claims.claim(KIND, [1]))[1] == frozenset()
    assert store.leases == []


async def test_what_was_given_after_the_term_is_given_back() -> None:
    store = FakeClaims([True, False])

    _, held = await claims_of(store).claim(KIND, [1, 2])

    assert held == frozenset()
    assert sorted(store.released) == [1, 2]


async def test_what_cannot_be_given_up_is_given_up_before_more_is_begun() -> None:
    store = FakeClaims()
    claims = claims_of(store)
    store.error = WriteFailed("the disk is full")
    with capture_logs() as lines:
        await claims.release(KIND, [1], 7)
        await claims.release(KIND, [2], 8)
    told = [(each["event"], each["count"], each["error"]) for each in lines]
    unreleased, why = "claims_not_released", "the disk is full"
    assert told == [(unreleased, 1, why), (unreleased, 2, why)]
    with pytest.raises(WriteFailed):
        await claims.may_begin()

    store.error = None

    assert await claims.may_begin()
    assert sorted(store.released) == [1, 2]
    assert await claims.may_begin()
    assert len(store.released) == 2


async def test_a_lease_is_renewed_before_it_is_over_until_the_work_ends() -> None:
    store = FakeClaims()
    claims, time = claims_of(store), store.time

    async with claims.renewed(KIND, [1, 2], 7):
        for _ in range(8):
            await time.pass_by(WORK_SECONDS / 4)
            ends = [0.0, *(until for until, _ in store.renewed)]
            assert max(ends) > time.now or time.now < WORK_SECONDS
    assert {ids for _, ids in store.renewed} == {frozenset({1, 2})}
    count = len(store.renewed)
    await time.pass_by(WORK_SECONDS)
    assert len(store.renewed) == count


async def test_no_lease_is_renewed_beyond_the_longest_work() -> None:
    store = FakeClaims()
    async with claims_of(store).renewed(KIND, [1], 7):
        await store.time.pass_by(2 * LONGEST_WORK_SECONDS)
    assert max(until for until, _ in store.renewed) == LONGEST_WORK_SECONDS


async def test_no_lease_is_renewed_once_the_term_may_be_over() -> None:
    store = FakeClaims([True, False])
    async with claims_of(store).renewed(KIND, [1], 7):
        await store.time.pass_by(WORK_SECONDS)
    assert len(store.renewed) == 1


async def test_only_what_is_still_held_is_renewed() -> None:
    store = FakeClaims()
    claims = claims_of(store)
    async with claims.renewed(KIND, [1, LOST], 7), claims.renewed(KIND, [LOST], 8):
        await store.time.pass_by(WORK_SECONDS)
    alone = [ids for _, ids in store.renewed]
    assert alone[:3] == [frozenset({1, LOST}), frozenset({LOST}), frozenset({1})]
    assert set(alone[3:]) == {frozenset({1})}


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (WriteFailed("the disk is full"), "claims_not_renewed"),
        (TypeError("not a row"), "claims_renewal_broke"),
    ],
)
async def test_a_renewal_that_fails_is_told_and_made_later(
    error: Exception, event: str
) -> None:
    store = FakeClaims(error=error)
    with capture_logs() as lines:
        async with claims_of(store).renewed(KIND, [1], 7):
            await store.time.pass_by(WORK_SECONDS / 2)
            store.error = None
            await store.time.pass_by(WORK_SECONDS / 2)
    assert [line["event"] for line in lines] == [event]
    assert store.renewed
