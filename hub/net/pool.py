"""Connections that servers keep open, to be used again within seconds."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from hub.net.connection import Connection
from hub.net.urls import Server

KEPT_SECONDS = 15.0


class Pool:
    """Idle connections by server; the one used last is used next.

    Never shared between purposes: a connection that was permitted for one must not be
    used for the other.
    """

    def __init__(self, *, seconds: float = KEPT_SECONDS) -> None:
        self._seconds = seconds
        self._by_server: dict[Server, list[Connection]] = {}
        self._since: OrderedDict[Connection, tuple[float, Server]] = OrderedDict()
        self._sweep: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._since)

    def take(self, server: Server) -> Connection | None:
        """One that was open a moment ago, if there is any; it is the caller's now."""
        latest = asyncio.get_running_loop().time() - self._seconds
        while kept := self._by_server.get(server):
            connection = kept.pop()
            if not kept:
                del self._by_server[server]
            since, _ = self._since.pop(connection)
            if connection.is_open and since > latest:
                return connection
            connection.close()
        return None

    def keep(self, server: Server, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        self._by_server.setdefault(server, []).append(connection)
        self._since[connection] = loop.time(), server
        if self._sweep is None:
            self._sweep = loop.call_later(self._seconds, self._close_old)

    def drop_oldest(self) -> None:
        """Make room for another connection."""
        oldest = next(iter(self._since), None)
        if oldest is not None:
            self._forget(oldest)
            oldest.close()

    def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        while self._since:
            self.drop_oldest()

    def _close_old(self) -> None:
        loop = asyncio.get_running_loop()
        latest = loop.time() - self._seconds
        self._sweep = None
        while self._since:
            since, _ = next(iter(self._since.values()))
            if since > latest:
                due = since + self._seconds
                self._sweep = loop.call_at(due, self._close_old)
                return
            self.drop_oldest()

    def _forget(self, connection: Connection) -> None:
        _, server = self._since.pop(connection)
        kept = self._by_server[server]
        kept.remove(connection)
        if not kept:
            del self._by_server[server]
