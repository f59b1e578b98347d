"""Nodes: joining a database, staying a member, and owning shards of its work."""

from __future__ import annotations

from typing import Protocol

from storage.records import MemberNode, NewNode, NodeTerm


class MembershipStore(Protocol):
    """Membership of nodes. Terms are given out by the engine, and end by its clock
    only.

    During its term a node owns shards of feeds, which it polls and keeps statistics and
    pushes of; shards of callbacks, which it verifies, sends digests to, and tells of
    the end of subscriptions; and, for one node, the leader's work. Methods that
    list what is due (``due``, ``ending``) list it to the owner of its shard only, which
    polls feeds by that alone, and claims all else before it begins (`ClaimStore`). What
    a node stores of such work after its term is refused, by `TermEnded`. Chunks and
    retries go to any node that claims them.

    Shards are divided evenly between members. One that a node is to give up is nobody's
    for 20 s, in which it ends what it has begun. A node that is alone, or has not
    joined, owns everything.

    SQLite is a cluster of one node, which owns everything until it is closed: the lock
    of the file is its term.
    """

    async def join(self, node: NewNode) -> NodeTerm:
        """Begin a term; an earlier term of a node of that name ends, and what it held
        is free. Raises `StorageBusy` if another node is a member and either of the two
        is to be alone.

        Nothing written under the earlier term is stored any more. What it held is free:
        chunks, what it had claimed (`ClaimStore`), and retries, which are due at once,
        because the node may have died before it could report how they went.
        """
        ...

    async def renew(self, term: NodeTerm) -> NodeTerm:
        """The continued term, with the shards that the node owns from now on.

        Raises `TermEnded`: then the node joins anew, and drops what it was working on.
        """
        ...

    async def leave(self, term: NodeTerm) -> None:
        """End the term now, if it is not over; what the node held and owned is free."""
        ...

    async def nodes(self) -> list[MemberNode]:
        """Nodes that have joined, by name; nodes whose terms ended long ago are left
        out."""
        ...
