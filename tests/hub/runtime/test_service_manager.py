"""The datagrams that a service manager gets, and the socket that it hands over."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hub.runtime.service_manager import (
    InheritedSocketUnusable,
    ServiceManager,
    inherited_listener,
)

PID = 4711


@contextmanager
def listening_manager(name: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(name.replace("@", "\0", 1))
        channel.settimeout(10)
        yield channel


@pytest.mark.parametrize("kind", ["a file", "an abstract name"])
def test_it_is_told_by_datagrams_of_lines(kind: str, tmp_path: Path) -> None:
    name = str(tmp_path / "notify") if kind == "a file" else f"@{tmp_path}"
    with listening_manager(name) as channel:
        manager = ServiceManager.of_environment({"NOTIFY_SOCKET": name}, PID)
        manager.tell("READY=1", "STATUS=a disk\nMAINPID=1")
        assert channel.recv(4096) == b"READY=1\nSTATUS=a disk MAINPID=1"


@pytest.mark.parametrize("address", ["", "/nowhere/notify"])
def test_nobody_who_listens_is_no_reason_to_fail(address: str) -> None:
    ServiceManager(address).tell("READY=1")


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(PID)}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_is_that_of_this_process(
    variables: dict[str, str], seconds: float | None
) -> None:
    assert ServiceManager.of_environment(variables, PID).watchdog == seconds


async def test_while_the_loop_turns_the_watchdog_is_told_and_a_status_once(
    tmp_path: Path,
) -> None:
    name = str(tmp_path / "notify")
    statuses = iter(["ready", "ready", "not ready: no disk"])
    with listening_manager(name) as channel:
        telling = asyncio.create_task(
            ServiceManager(name, watchdog=0.02).keep_informed(lambda: next(statuses))
        )
        told = [await asyncio.to_thread(channel.recv, 4096) for _ in range(3)]
        telling.cancel()
    assert told == [
        b"WATCHDOG=1\nSTATUS=ready",
        b"WATCHDOG=1",
        b"WATCHDOG=1\nSTATUS=not ready: no disk",
    ]


def handed_over(count: str = "1", pid: int = PID) -> dict[str, str]:
    return {"LISTEN_FDS": count, "LISTEN_PID": str(pid)}


def test_a_listening_socket_is_taken_over_but_not_by_children() -> None:
    with socket.create_server(("127.0.0.1", 0)) as given:
        name = given.getsockname()
        found = inherited_listener(handed_over(), PID, given.detach())
    assert found is not None
    with found:
        assert (found.getsockname(), found.get_inheritable()) == (name, False)


@pytest.mark.parametrize("variables", [{}, handed_over(pid=1)])
def test_without_one_for_this_process_there_is_none(
    variables: dict[str, str],
) -> None:
    assert inherited_listener(variables, PID) is None


@pytest.mark.parametrize(
    ("family", "kind", "found"),
    [
        (socket.AF_INET, socket.SOCK_STREAM, "a socket that does not listen"),
        (socket.AF_INET, socket.SOCK_DGRAM, "AF_INET SOCK_DGRAM"),
        (socket.AF_UNIX, socket.SOCK_STREAM, "AF_UNIX SOCK_STREAM"),
    ],
)
def test_another_socket_is_refused_in_words(
    family: socket.AddressFamily, kind: socket.SocketKind, found: str
) -> None:
    given = socket.socket(family, kind)
    with pytest.raises(InheritedSocketUnusable, match=found):
        inherited_listener(handed_over(), PID, given.detach())


@pytest.mark.parametrize("count", ["0", "2", ""])
def test_more_or_fewer_than_one_are_refused(count: str) -> None:
    with pytest.raises(InheritedSocketUnusable, match="expected one listening TCP"):
        inherited_listener(handed_over(count), PID)


def test_what_is_no_socket_is_refused(tmp_path: Path) -> None:
    with (
        (tmp_path / "file").open("w") as file,
        pytest.raises(InheritedSocketUnusable, match="Socket operation on non-socket"),
    ):
        inherited_listener(handed_over(), PID, file.fileno())
