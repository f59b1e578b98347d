"""How live connections are shared out."""

from __future__ import annotations

import pytest

from hub.live.connection_quotas import HolderKind, divide_connections


@pytest.mark.parametrize(
    ("connections", "percent", "address", "account"),
    [
        (10_000, 25, 2_500, 5_000),
        (10_000, 100, 10_000, 10_000),
        (10_000, 60, 6_000, 10_000),
        (3, 25, 1, 2),
        (1, 25, 1, 1),
        (0, 25, 1, 1),
    ],
)
def test_an_account_has_twice_what_an_address_has_and_nobody_more_than_all(
    connections: int, percent: int, address: int, account: int
) -> None:
    shares = divide_connections(connections, percent)
    assert shares.connections == connections
    assert shares.most(HolderKind.ADDRESS) == address
    assert shares.most(HolderKind.ACCOUNT) == account
