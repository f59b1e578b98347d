"""Claims: who does what is due."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from storage.records import WorkKind


class ClaimStore(Protocol):
    """Claims to verifications, digests, denials, statistics and pushes that are due.

    Owning a shard (`MembershipStore`) says which node lists what is due; a claim says
    which one does it, even while a shard moves from one node to the other. A claim is a
    lease: a random id, held by the node's term until a time by the engine's clock, as
    with chunks (`DeliveryStore`). Lists of what is due leave out what is claimed. While
    the work goes on, its holder renews the lease. The outcome names the lease; if that
    is not held any more, nothing is stored, and the call that was to store it says so.
    A lease that is over is held until somebody else claims the same. A claim ends with
    an outcome after which nothing is due.

    What a node holds is free when its term ends.
    """

    async def claim(
        self,
        kind: WorkKind,
        ids: Collection[int],
        *,
        lease_id: int,
        seconds: float,
        now: datetime,
    ) -> frozenset[int]:
        """Claim those that are still due at ``now`` and that nobody holds; returns
        which.

        Of verifications with one key none is claimed while the lease on another lives.
        """
        ...

    async def renew(
        self,
        kind: WorkKind,
        ids: Collection[int],
        *,
        lease_id: int,
        seconds: float,
        now: datetime,
    ) -> frozenset[int]:
        """Let this lease last ``seconds`` from ``now`` for those of these ids for which
        it is not over; returns them."""
        ...

    async def release(
        self, kind: WorkKind, ids: Sequence[int], *, lease_id: int
    ) -> None:
        """Give up what is held under this lease, unless it has ended."""
        ...
