from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from click.testing import Result

import hub
from tests.support.fake_api import FakeApi

Fanfare = Callable[..., Result]


def health(**changes: object) -> dict[str, Any]:
    backlog = dict.fromkeys(
        ("feeds", "subscriptions", "fanouts", "chunks", "stragglers", "dead"), 0
    )
    document: dict[str, Any] = {
        "ready": True,
        "troubles": [],
        "warnings": [],
        "version": "1",
        "uptime": 90.0,
        "backlog": {**backlog, "oldest_due": None},
        "database": {"location": "/srv/hub.db", "size_bytes": 4096},
    }
    return {**document, **changes}


def test_a_ready_hub_is_exit_code_0(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/health"] = (200, health())
    result = fanfare("health")
    assert result.exit_code == 0
    assert "up for         1.5 min" in result.stdout
    assert "nothing is due" in result.stdout


def test_a_hub_that_is_not_ready_is_exit_code_1_and_says_why(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["GET /api/health"] = (
        200,
        health(ready=False, troubles=["the disk is full"]),
    )
    result = fanfare("health", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["ready"] is False
    assert result.stderr == "fanfare: not ready: the disk is full\n"


def test_what_an_operator_should_look_at_is_told_of_a_hub_that_works(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["GET /api/health"] = (200, health(warnings=["the clock went back"]))
    result = fanfare("health")
    assert result.exit_code == 0
    assert result.stderr == "warning: the clock went back\n"


def test_the_version_is_printed_without_a_hub(alone: Fanfare) -> None:
    assert alone("version").stdout == f"fanfare {hub.__version__}\n"
