"""`storage.contract.MembershipStore` on SQLite: one node, which owns everything."""

from __future__ import annotations

import sqlite3

from storage.errors import TermEnded
from storage.records import MemberNode, NewNode, NodeTerm
from storage.sqlite.readers import Readers
from storage.sqlite.writer import Writer


class SqliteMembership:
    """The file lock keeps other processes out. A term only separates what the process
    does now from what it, or an earlier process, did before it joined."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers
        self._node: NewNode | None = None

    async def join(self, node: NewNode) -> NodeTerm:
        incarnation = await self._writer.submit(_join)
        self._node = node
        return NodeTerm(name=node.name, incarnation=incarnation)

    async def renew(self, term: NodeTerm) -> NodeTerm:
        if self._node is None or term.incarnation != await self._incarnation():
            raise TermEnded(term.name, term.incarnation)
        return term

    async def leave(self, term: NodeTerm) -> None:
        if term.incarnation == await self._incarnation():
            await self._writer.submit(_join)
            self._node = None

    async def nodes(self) -> list[MemberNode]:
        if self._node is None:
            return []
        return [
            MemberNode(
                name=self._node.name,
                url=self._node.url,
                incarnation=await self._incarnation(),
                seconds=None,
            )
        ]

    async def _incarnation(self) -> int:
        row = await self._readers.first("SELECT incarnation FROM meta")
        return row[0] if row else 0


def _join(connection: sqlite3.Connection) -> int:
    """Begin the next incarnation; what is leased or claimed becomes due at once.

    The schedule of a retry stays: a try ahead of it is still not counted. One that has
    not failed at its record has none, and its next try is the first.
    """
    connection.execute("DELETE FROM claims")
    connection.execute("UPDATE chunks SET lease_id = 0, due = 0")
    connection.execute(
        "UPDATE stragglers SET lease_id = 0, due = min(next_try, failing_since),"
        " next_try = iif(attempts, next_try, min(next_try, failing_since))"
        " WHERE lease_id <> 0"
    )
    ((incarnation,),) = connection.execute(
        "UPDATE meta SET incarnation = incarnation + 1 RETURNING incarnation"
    ).fetchall()
    return int(incarnation)
