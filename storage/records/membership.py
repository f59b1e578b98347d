"""Nodes around one database: who they are, and what each of them owns and claims."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

SHARDS: Final = 256
"""How many shards there are of feeds, and of callbacks."""

Shards: TypeAlias = frozenset[int] | None
"""The shards of one kind that a node owns; None: all of them."""

ALL_SHARDS: Final[Shards] = None


class ShardKind(StrEnum):
    FEEDS = "feeds"  # by the host that a feed is fetched from: its pace is kept locally
    CALLBACKS = "callbacks"  # by their host: an origin is tried by one node
    LEADER = "leader"  # one shard: what a single node does for all


class WorkKind(StrEnum):
    """Work that a node claims piece by piece, by an id: of what, is said here."""

    VERIFICATIONS = "verifications"  # of a request
    DIGESTS = "digests"  # of a subscription
    DENIALS = "denials"  # of a subscription
    STATISTICS = "statistics"  # of a feed
    PUSHES = "pushes"  # of a feed


class NewNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that joins. ``name`` is the same after a restart. ``url``: where others
    reach it. ``is_alone``: it joins only while no other node is a member, and keeps
    others from joining."""

    name: str
    url: str = ""
    is_alone: bool = False


class NodeTerm(msgspec.Struct, frozen=True, kw_only=True):
    """A node's membership, from joining until it is not renewed in time.

    ``incarnation`` rises each time the node joins. ``seconds``: how long the term
    lasts, counted from before it was asked for; None: until the node leaves. Its shards
    are owned for as long.
    """

    name: str
    incarnation: int
    seconds: float | None = None
    feeds: Shards = ALL_SHARDS
    callbacks: Shards = ALL_SHARDS
    is_leader: bool = True

    def shards(self, kind: ShardKind) -> Shards:
        """The node's shards of a kind; of the kind ``LEADER`` all or none."""
        if kind is ShardKind.LEADER:
            return ALL_SHARDS if self.is_leader else frozenset()
        return self.feeds if kind is ShardKind.FEEDS else self.callbacks


class MemberNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node as others see it. ``seconds``: the rest of its term, below 0 once it is
    over; None: it does not end."""

    name: str
    url: str
    incarnation: int
    seconds: float | None
