"""Nodes: joining a database, staying a member, and owning shards of its work."""

from __future__ import annotations

from typing import Protocol

from storage.records import MemberNode, NewNode, NodeTerm


class MembershipStore(Protocol):
    """Terms are given out by the engine, and end by its clock and no other.

    What a node owns is its own for as long as its term: shards of feeds, which it
    polls and whose records it splits; shards of callbacks, which it tries again and
    verifies; the leader's work. Who owns nothing of a kind is given nothing of it (see
    ``shards`` of `FeedStore.due` and its like). Chunks are any node's that claims them.

    SQLite is a cluster of one, which owns all there is until it is closed: the lock of
    the file is its term. It looks at no shards.
    """

    async def join(self, node: NewNode) -> NodeTerm:
        """Begin a term; an earlier one of that name is over.

        Nothing that was written under that one is stored any more. What it held is
        free: chunks, and retries, which are due at once, for who was at them may have
        failed before it could say so.
        """
        ...

    async def renew(self, term: NodeTerm) -> NodeTerm:
        """The term as it goes on, with the shards that are owned from now on.

        Raises `TermEnded`: the node joins anew, and forgets what it was at.
        """
        ...

    async def leave(self, term: NodeTerm) -> None:
        """End it now, unless it is over; what it held and owned is free."""
        ...

    async def nodes(self) -> list[MemberNode]:
        """Those that have joined, by name; whose terms are over for long are not
        among them."""
        ...
