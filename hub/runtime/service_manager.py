"""What the hub tells the service manager that started it, and takes over from it.

The manager is systemd, or another that speaks its protocols: sd_notify(3) for readiness
and liveness, sd_listen_fds(3) for a socket that outlives the hub.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

FIRST_INHERITED: Final = 3
"""The descriptor of the first file that is handed over (SD_LISTEN_FDS_START)."""
STATUS_SECONDS: Final = 5.0
"""Seconds between two looks at the status, unless the watchdog asks for shorter
ones."""


class InheritedSocketUnusable(Exception):
    """What the service manager handed over is not one listening TCP socket."""

    def __init__(self, found: str) -> None:
        self.found = found
        super().__init__(
            f"LISTEN_FDS: expected one listening TCP socket, and got {found};"
            " see ListenStream in the socket unit"
        )


@dataclass(frozen=True, slots=True)
class ServiceManager:
    """``address``: of the manager's datagram socket; "" if there is no manager, and
    nothing is sent. ``watchdog``: seconds without a message after which the manager
    takes the hub for dead; None: never."""

    address: str = ""
    watchdog: float | None = None

    @classmethod
    def of_environment(cls, environment: Mapping[str, str], pid: int) -> Self:
        """The one that NOTIFY_SOCKET and WATCHDOG_USEC name."""
        address = environment.get("NOTIFY_SOCKET", "")
        watched = environment.get("WATCHDOG_PID", str(pid)) == str(pid)
        microseconds = environment.get("WATCHDOG_USEC", "") if watched else ""
        watchdog = int(microseconds) / 1e6 if microseconds.isdecimal() else None
        return cls(address, watchdog or None)

    def tell(self, *assignments: str) -> None:
        """Send assignments such as ``READY=1`` or ``STATUS=...``. A manager that no
        longer listens is no reason to stop."""
        if not self.address:
            return
        # "@" is how a name without a file is written (unix(7), abstract).
        address = self.address.replace("@", "\0", 1)
        with (
            suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel,
        ):
            channel.setblocking(False)
            lines = (each.replace("\n", " ") for each in assignments)
            channel.sendto("\n".join(lines).encode(), address)

    async def keep_informed(self, describe_status: Callable[[], str]) -> None:
        """Tell the manager that the event loop runs, and the status when it changes,
        until cancelled. The manager is told twice in each interval of its watchdog."""
        pause = STATUS_SECONDS
        if self.watchdog is not None:
            pause = min(pause, self.watchdog / 2)
        told = ""
        while True:
            status = describe_status()
            changes = [] if status == told else [f"STATUS={status}"]
            self.tell("WATCHDOG=1", *changes)
            told = status
            await asyncio.sleep(pause)


def inherited_listener(
    environment: Mapping[str, str], pid: int, first: int = FIRST_INHERITED
) -> socket.socket | None:
    """The listening socket that the service manager handed over; None if it handed over
    none to this process. Raises `InheritedSocketUnusable`."""
    if environment.get("LISTEN_PID") != str(pid):
        return None
    if (count := environment.get("LISTEN_FDS", "")) != "1":
        raise InheritedSocketUnusable(f"{count or 'no'} files")
    try:
        listener = socket.socket(fileno=first)
    except OSError as error:
        raise InheritedSocketUnusable(str(error)) from error
    if fault := _fault_of(listener):
        listener.close()
        raise InheritedSocketUnusable(fault)
    listener.set_inheritable(False)
    return listener


def _fault_of(found: socket.socket) -> str:
    """Why the socket cannot be reached by TCP; "" if it can."""
    is_tcp = found.family in (socket.AF_INET, socket.AF_INET6)
    if not is_tcp or found.type != socket.SOCK_STREAM:
        return f"{found.family.name} {found.type.name}"
    listens = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    return "" if listens else "a socket that does not listen"
