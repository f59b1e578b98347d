"""Membership of the model: a cluster of one."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from storage.errors import TermEnded
from storage.records import MemberNode, NewNode, NodeTerm

from .state import State

_START = datetime(1970, 1, 1, tzinfo=UTC)


class MemoryMembership:
    def __init__(self, state: State) -> None:
        self._state = state
        self._node: NewNode | None = None
        self._incarnation = 0

    async def join(self, node: NewNode) -> NodeTerm:
        self._state.claims.clear()
        for chunk in self._state.chunks.values():
            chunk.lease_id, chunk.due = 0, _START
        for each in self._state.retries.values():
            if each.stored.lease_id:
                at_once = min(each.stored.next_try, each.stored.failing_since)
                next_try = each.stored.next_try if each.stored.attempts else at_once
                each.due = at_once
                each.stored = replace(each.stored, lease_id=0, next_try=next_try)
        self._node = node
        self._incarnation += 1
        return NodeTerm(name=node.name, incarnation=self._incarnation)

    async def renew(self, term: NodeTerm) -> NodeTerm:
        if self._node is None or term.incarnation != self._incarnation:
            raise TermEnded(term.name, term.incarnation)
        return term

    async def leave(self, term: NodeTerm) -> None:
        if term.incarnation == self._incarnation:
            await self.join(NewNode(name=""))
            self._node = None

    async def nodes(self) -> list[MemberNode]:
        if self._node is None:
            return []
        return [
            MemberNode(
                name=self._node.name,
                url=self._node.url,
                incarnation=self._incarnation,
                seconds=None,
            )
        ]
