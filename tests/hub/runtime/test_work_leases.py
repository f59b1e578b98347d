"""Claims of this node: begun is nothing that another one may have taken over."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import cast

import pytest
from structlog.testing import capture_logs

from hub.runtime.work_leases import WorkClaims, WorkLeases
from storage.contract import ClaimStore
from storage.errors import WriteFailed
from storage.records import WorkKind
from tests.support.clock import ManualClock

KIND = WorkKind.DIGESTS


@dataclass
class FakeClaims:
    """Gives what is asked for. ``trust``: whether the node's term is trusted, one
    answer after the other, the last for good."""

    trust: list[bool] = field(default_factory=lambda: [True])
    leases: list[int] = field(default_factory=list)
    released: list[int] = field(default_factory=list)
    is_broken: bool = False

    def is_trusted(self) -> bool:
        return self.trust.pop(0) if len(self.trust) > 1 else self.trust[0]

    async def claim(
        self, kind: WorkKind, ids: Collection[int], *, lease_id: int, **terms: object
    ) -> frozenset[int]:
        self.leases.append(lease_id)
        return frozenset(ids)

    async def release(
        self, kind: WorkKind, ids: Sequence[int], *, lease_id: int
    ) -> None:
        if self.is_broken:
            raise WriteFailed("the disk is full")
        self.released += ids


def claims_of(store: FakeClaims) -> WorkClaims:
    leases = WorkLeases(ManualClock(), Random(1), store.is_trusted)
    return WorkClaims(cast("ClaimStore", store), leases)


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
    store.is_broken = True
    with capture_logs() as lines:
        await claims.release(KIND, [1], 7)
        await claims.release(KIND, [2], 8)
    told = [(each["event"], each["count"], each["error"]) for each in lines]
    unreleased, why = "claims_not_released", "the disk is full"
    assert told == [(unreleased, 1, why), (unreleased, 2, why)]
    with pytest.raises(WriteFailed):
        await claims.may_begin()

    store.is_broken = False

    assert await claims.may_begin()
    assert sorted(store.released) == [1, 2]
    assert await claims.may_begin()
    assert len(store.released) == 2
