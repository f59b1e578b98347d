"""The control log: what all nodes have to know that somebody decided on one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from storage.records import ControlEvent


class ControlStore(Protocol):
    def watch(
        self, tell: Callable[[ControlEvent], None]
    ) -> AbstractContextManager[None]:
        """While entered, call ``tell`` with what is decided, in one order for all.

        On the event loop. Of what this node has written as soon as it is durable, and
        before the call that wrote it returns; of what others have, a little later. What
        was told before may be told again, also of before it was entered.

        Whoever watches reads what there is after it has entered, and so misses nothing.

        An epoch begins while the hub runs only where the engine is a server, which may
        lose the end of the log when it is restored or fails over. SQLite has one from
        opening to closing.
        """
        ...
