"""`storage.contract.MembershipStore` on PostgreSQL.

A node whose term is over by the server's clock is removed by the next one that joins or
renews its term. From then on, whatever it writes in a lane is refused, and what it held
is free. Until then its term continues even if it is renewed too late: nothing was given
to anybody else.

Each renewal checks whether the log is still the one that this node knows: a server that
was restored or promoted may lack its end. The end is noted on this machine.
"""

from __future__ import annotations

import secrets as randomness
from typing import Final

from storage.errors import StorageBusy, TermEnded
from storage.postgres.connections import Connections
from storage.postgres.control import PostgresControl
from storage.postgres.known_end import KnownEnd
from storage.postgres.schema import latest_schema
from storage.records import Cursor, MemberNode, NewNode, NodeTerm, Position
from storage.sqlite.log_end import LogEnd

TERM_SECONDS: Final = 15.0
_RENEW: Final = "SELECT * FROM renew_node(%s, %s, %s, %s, %s)"
_NODES: Final = """
SELECT name, url, incarnation,
    extract(epoch FROM expires_at - clock_timestamp())::double precision
FROM nodes ORDER BY name
"""


class PostgresMembership:
    def __init__(
        self,
        connections: Connections,
        control: PostgresControl,
        epoch: str,
        end: LogEnd,
        known_end: KnownEnd,
    ) -> None:
        self._known_end = known_end
        self._connections = connections
        self._control = control
        self._epoch = epoch
        self._end = end

    async def join(self, node: NewNode) -> NodeTerm:
        ((incarnation, other, last_event, *shards),) = await self._connections.write(
            "SELECT * FROM join_nodes(%s, %s, %s, %s, %s)",
            (node.name, node.url, TERM_SECONDS, node.is_alone, latest_schema()),
        )
        if incarnation is None:
            raise StorageBusy(f"another hub ({other}) is using this database")
        term = _term(node.name, incarnation, *shards)
        self._connections.term = term
        self._connections.is_alone = node.is_alone
        self._control.stop()
        if not node.is_alone:
            self._control.follow(last_event)
        return term

    async def renew(self, term: NodeTerm) -> NodeTerm:
        named, end = new_epoch(), self._end.position
        ((is_member, epoch, head, *shards),) = await self._connections.write(
            _RENEW, (term.incarnation, TERM_SECONDS, named, self._epoch, end)
        )
        if not is_member:
            raise TermEnded(term.name, term.incarnation)
        if epoch != self._epoch:
            self._epoch = epoch
            self._end.restart(Position(head))
            self._control.began(epoch)
        self._note_end()
        return _term(term.name, term.incarnation, *shards)

    async def leave(self, term: NodeTerm) -> None:
        await self._connections.write("SELECT leave_nodes(%s)", (term.incarnation,))
        if self._connections.incarnation == term.incarnation:
            self._connections.term = None
            self._connections.is_alone = False
            self._control.stop()
        self._note_end()

    def _note_end(self) -> None:
        self._known_end.note(Cursor(self._epoch, self._end.position))

    async def nodes(self) -> list[MemberNode]:
        rows = await self._connections.all(_NODES)
        return [
            MemberNode(name=name, url=url, incarnation=incarnation, seconds=seconds)
            for name, url, incarnation, seconds in rows
        ]


def _term(
    name: str,
    incarnation: int,
    feeds: list[int] | None,
    callbacks: list[int] | None,
    is_leader: bool,
) -> NodeTerm:
    return NodeTerm(
        name=name,
        incarnation=incarnation,
        seconds=TERM_SECONDS,
        feeds=None if feeds is None else frozenset(feeds),
        callbacks=None if callbacks is None else frozenset(callbacks),
        is_leader=is_leader,
    )


def new_epoch() -> str:
    return randomness.token_hex(5)
