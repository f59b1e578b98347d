"""How long a request waits for a database that is away."""

from __future__ import annotations

import math

import pytest
from starlette.types import Receive, Scope, Send

from hub.web.middleware import READ_SECONDS, LimitReads
from storage.read_patience import READ_PATIENCE


@pytest.mark.parametrize(
    ("kind", "path", "seconds"),
    [
        ("http", "/api/feeds", READ_SECONDS),
        ("http", "/stream", math.inf),
        ("websocket", "/stream", math.inf),
    ],
)
async def test_a_request_waits_for_a_moment_and_a_stream_as_long_as_it_takes(
    kind: str, path: str, seconds: float
) -> None:
    found: list[float] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        found.append(READ_PATIENCE.get())

    async def unused(*_: object) -> None: ...

    scope = {"type": kind, "path": path}
    await LimitReads(application)(scope, unused, unused)  # type: ignore[arg-type]

    assert found == [seconds]
