"""How often PostgreSQL is asked for what callbacks lack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest

from storage.postgres.connections import Connections, Row
from storage.postgres.control import PostgresControl
from storage.postgres.deliveries import FollowingClaims, PostgresDeliveries
from storage.records import SubscriptionId, UndeliveredFilter
from storage.secrets import SecretBox


@dataclass
class FakeReads:
    """Finds nothing."""

    count: int = 0

    async def all(self, sql: str, parameters: object = ()) -> list[Row]:
        self.count += 1
        return []

    async def first(self, sql: str, parameters: object = ()) -> Row | None:
        self.count += 1
        return None


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (UndeliveredFilter(), 1),
        (UndeliveredFilter(subscription_id=SubscriptionId(7)), 1),
        (UndeliveredFilter(host="slow.example"), 2),
    ],
)
async def test_failures_are_counted_only_for_a_filter_that_names_them(
    wanted: UndeliveredFilter, count: int
) -> None:
    reads = FakeReads()
    deliveries = PostgresDeliveries(
        cast("Connections", reads),
        cast("SecretBox", None),
        cast("PostgresControl", None),
        cast("FollowingClaims", None),
    )

    await deliveries.dead_letters(after=0, limit=9, wanted=wanted)
    await deliveries.retrying(after=SubscriptionId(0), limit=9, wanted=wanted)
    await deliveries.count_undelivered(wanted, 9)

    assert reads.count == 3 * count
