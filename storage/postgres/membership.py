"""`storage.contract.MembershipStore` on PostgreSQL: one node at a time.

A second one may wait to take over. Its term ends by the server's clock, unless it is
renewed; what the former node still writes in a lane is refused from then on. Shards are
not divided between nodes yet.
"""

from __future__ import annotations

from typing import Final

from storage.errors import StorageBusy, TermEnded
from storage.postgres.connections import Connections
from storage.records import MemberNode, NewNode, NodeTerm

TERM_SECONDS: Final = 15.0
_RENEW: Final = """
UPDATE nodes SET expires_at = clock_timestamp() + make_interval(secs => %s)
WHERE name = %s AND incarnation = %s AND expires_at > clock_timestamp()
"""
_NODES: Final = """
SELECT name, url, incarnation,
    extract(epoch FROM expires_at - clock_timestamp())::double precision
FROM nodes ORDER BY name
"""


class PostgresMembership:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def join(self, node: NewNode) -> NodeTerm:
        """Raises `StorageBusy` while another node is a member."""
        ((incarnation, other),) = await self._connections.write(
            "SELECT * FROM join_nodes(%s, %s, %s)", (node.name, node.url, TERM_SECONDS)
        )
        if incarnation is None:
            raise StorageBusy(f"node {other} has the database; it is taken by one")
        term = NodeTerm(name=node.name, incarnation=incarnation, seconds=TERM_SECONDS)
        self._connections.term = term
        return term

    async def renew(self, term: NodeTerm) -> NodeTerm:
        if not await self._connections.change(
            _RENEW, (TERM_SECONDS, term.name, term.incarnation)
        ):
            raise TermEnded(term.name, term.incarnation)
        return term

    async def leave(self, term: NodeTerm) -> None:
        await self._connections.write("SELECT leave_nodes(%s)", (term.incarnation,))
        if self._connections.term == term:
            self._connections.term = None

    async def nodes(self) -> list[MemberNode]:
        rows = await self._connections.all(_NODES)
        return [
            MemberNode(name=name, url=url, incarnation=incarnation, seconds=seconds)
            for name, url, incarnation, seconds in rows
        ]
