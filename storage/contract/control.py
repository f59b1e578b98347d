"""The control log: decisions made on one node that all nodes have to know."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from storage.records import ControlEvent


class ControlStore(Protocol):
    def watch(
        self, tell: Callable[[ControlEvent], None]
    ) -> AbstractContextManager[None]:
        """While entered, call ``tell`` with each decision, in one order for all nodes.

        It is called on the event loop: for a decision written by this node as soon as
        it is durable, and before the call that wrote it returns; for those of other
        nodes, a little later. An event may be told again, even one from before the
        block was entered. A watcher that reads the current state after it has entered
        misses nothing. In the place of what cannot be read, `DecisionsMissed` is told.

        An epoch begins while the hub runs only if the engine is a server, which may
        lose the end of the log when it is restored or fails over. SQLite has one epoch
        from opening to closing.
        """
        ...
