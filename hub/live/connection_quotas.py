"""How many live connections there may be, and how many of them one client may hold."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

MOST_CONNECTIONS: Final = 10_000


class HolderKind(StrEnum):
    ADDRESS = "address"
    ACCOUNT = "account"


class Holder(msgspec.Struct, frozen=True):
    """An account, or the address of a client without a token."""

    kind: HolderKind
    name: str


class ConnectionQuotas(msgspec.Struct, frozen=True, kw_only=True):
    """How many live connections there may be, and how many of them one address
    (``of_address``) or one account (``of_account``) may hold."""

    connections: int = MOST_CONNECTIONS
    of_address: int = MOST_CONNECTIONS
    of_account: int = MOST_CONNECTIONS

    def most(self, kind: HolderKind) -> int:
        return self.of_address if kind is HolderKind.ADDRESS else self.of_account


def divide_connections(connections: int, percent: int) -> ConnectionQuotas:
    """Quotas with ``percent`` of the connections for an address, at least one, and
    twice as many for an account: its token comes from the operator, and it may serve
    many readers."""
    share = max(1, connections * percent // 100)
    return ConnectionQuotas(
        connections=connections,
        of_address=share,
        of_account=min(2 * share, max(1, connections)),
    )
