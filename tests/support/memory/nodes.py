"""Several nodes around one model: each has a handle, and sees what it has read.

A write is a transaction: it begins with what is committed then, and others see its
changes once it is committed. A test can let others come in between by
`Node.before_commit`. `storage.contract` names what an engine must not leave to luck: a
holder of AUDIENCE keeps all others who need it waiting.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import fields
from functools import partial
from typing import Any, Final

from storage.contract import AUDIENCE
from storage.errors import OutcomeUnknown

from .state import State
from .storage import MemoryStorage

_LOCAL: Final = frozenset({"watching", "claim_after_commit", "last_ids", "node"})
"""State of each node alone; and numbers, which are given out only once.

They are not given out again if what took them comes to nothing.
"""
_DATA: Final = tuple(each.name for each in fields(State) if each.name not in _LOCAL)
_READS: Final = frozenset(
    {"records", "latest_records", "trails", "entries", "wait", "last_before"}
)
"""Methods of the log that a node may answer from what it has read last."""
_GONE: Final = object()


class Cluster:
    """What is committed, the same for all nodes."""

    def __init__(self) -> None:
        self.state = State()
        self.audience = asyncio.Lock()
        self.nodes = 0

    def node(
        self, *, audience: frozenset[str] = AUDIENCE, has_true_end: bool = True
    ) -> Node:
        """Add a node. For tests of the tests, it may break a promise of engines.

        ``audience``: the methods that hold it; ``has_true_end`` False: the node tells
        the end that it has read last.
        """
        return Node(self, audience, has_true_end)


class Node(MemoryStorage):
    def __init__(
        self, cluster: Cluster, audience: frozenset[str], has_true_end: bool
    ) -> None:
        cluster.nodes += 1
        super().__init__(State(last_ids=cluster.state.last_ids, node=cluster.nodes))
        self._cluster = cluster
        self._audience = audience
        self._has_true_end = has_true_end
        self.is_behind = False
        """Whether it reads what it has read before, until it asks for the log's end."""
        self.before_commit: Callable[[], Awaitable[None]] = _go_on
        self.is_lost_before = self.is_lost_after = False
        """Whether the next transaction's outcome is unknown, and what it is."""
        for name, store in list(vars(self).items()):
            if not name.startswith("_") and hasattr(store, "_state"):
                setattr(self, name, _Transactions(self, name, store))

    async def transact(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:
        """Run a call of a store, named ``store.method``."""
        store, _, method = name.partition(".")
        if self.is_behind and store == "log" and method in _READS:
            return await call()
        if name == "log.end":
            self.is_behind = self.is_behind and not self._has_true_end
            if not self.is_behind:
                self._read()
            return await call()
        async with self._locked(name):
            before = self._read()
            result = await call()
            changes = _changes(before, self._state)
            if changes:
                await self.before_commit()
            if not self.is_lost_before:
                _apply(changes, self._cluster.state)
        if changes and (self.is_lost_before or self.is_lost_after):
            self.is_lost_before = self.is_lost_after = False
            raise OutcomeUnknown("the connection was lost")
        return result

    def _locked(self, name: str) -> AbstractAsyncContextManager[object]:
        return self._cluster.audience if name in self._audience else nullcontext()

    def _read(self) -> Mapping[str, Any]:
        """Read what is committed, and return it as it is then."""
        committed = self._cluster.state
        for name in _DATA:
            setattr(self._state, name, copy.deepcopy(getattr(committed, name)))
        return {name: copy.deepcopy(getattr(committed, name)) for name in _DATA}


class _Transactions:
    """A store in which each call is a transaction."""

    def __init__(self, node: Node, name: str, store: object) -> None:
        self._node = node
        self._name = name
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not inspect.iscoroutinefunction(method):
            return method

        def call(*arguments: Any, **more: Any) -> Awaitable[Any]:
            doing = partial(method, *arguments, **more)
            return self._node.transact(f"{self._name}.{name}", doing)

        return call


async def _go_on() -> None:
    return


def _changes(before: Mapping[str, Any], state: State) -> dict[str, Any]:
    """What has changed: of a table the rows, of anything else the new value."""
    changes: dict[str, Any] = {}
    for name, was in before.items():
        now = getattr(state, name)
        if now == was:
            continue
        if isinstance(was, dict):
            now = {
                key: now.get(key, _GONE)
                for key in was.keys() | now.keys()
                if key not in was or key not in now or was[key] != now[key]
            }
        changes[name] = now
    return changes


def _apply(changes: Mapping[str, Any], state: State) -> None:
    for name, change in changes.items():
        table = getattr(state, name)
        if not isinstance(table, dict):
            setattr(state, name, copy.deepcopy(change))
            continue
        for key, row in change.items():
            if row is _GONE:
                table.pop(key, None)
            else:
                table[key] = copy.deepcopy(row)
