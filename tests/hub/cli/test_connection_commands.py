"""``fanfare connections``."""

from __future__ import annotations

import json
from typing import Any

from hub.cli.connection_commands import SORTS, TRANSPORTS
from hub.services.connection_reports import ConnectionSort, Transport
from tests.hub.cli.conftest import Fanfare
from tests.support.fake_api import FakeApi

CONNECTION: dict[str, Any] = {
    "id": 7,
    "transport": "sse",
    "account": "alice",
    "address": "192.0.2.1",
    "opened_at": "2026-01-01T12:00:00Z",
    "topics": ["https://example.org/feed"],
    "topic_count": 3,
    "queue_bytes": 2048,
    "messages": 12,
    "bytes": 5_000,
    "behind": False,
}


def test_the_choices_are_those_of_the_api() -> None:
    assert tuple(Transport) == TRANSPORTS
    assert tuple(ConnectionSort) == SORTS


def test_connections_are_listed_page_by_page(api: FakeApi, fanfare: Fanfare) -> None:
    api.answers["GET /api/connections"] = (
        200,
        {"connections": [CONNECTION], "total": 1, "next": None},
    )
    result = fanfare("connections", "list", "--topic", "x", "--sort", "-queue")
    assert "alice" in result.stdout
    assert "2.05 kB" in result.stdout
    [(asked, _)] = api.requests
    assert "topic=x" in asked
    assert "sort=-queue" in asked


def test_there_may_be_none(api: FakeApi, fanfare: Fanfare) -> None:
    api.answers["GET /api/connections"] = (
        200,
        {"connections": [], "total": 0, "next": None},
    )
    assert fanfare("connections", "list").stdout == "no connections\n"
    assert json.loads(fanfare("connections", "list", "--json").stdout) == []


def test_a_connection_is_ended(api: FakeApi, fanfare: Fanfare) -> None:
    api.answers["DELETE /api/connections/7"] = (200, CONNECTION)
    result = fanfare("connections", "disconnect", "7")
    assert result.stdout == "disconnected  connection 7 of alice at 192.0.2.1\n"
