from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.support.fake_api import FakeApi

Fanfare = Callable[..., Result]
RETRY = "POST /api/deliveries/retry"
STRAGGLER: dict[str, Any] = {
    "subscription": 4,
    "attempts": 2,
    "next_try": "2026-01-01T12:05:00Z",
    "under_way": False,
    "last_error": "",
    "last_status": 503,
    "callback": "https://you.example/hook",
}
DEAD: dict[str, Any] = {
    "id": 1,
    "subscription": 4,
    "first": 3,
    "last": 9,
    "at": "2026-01-01T12:00:00Z",
    "reason": "gave up",
    "callback": "https://you.example/hook",
}


def test_the_list_has_what_is_late_and_what_was_given_up(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["GET /api/deliveries"] = (
        200,
        {"stragglers": [STRAGGLER], "dead": [DEAD]},
    )
    lines = fanfare("deliveries", "list").stdout
    assert "503" in lines
    assert "2026-01-01 12:05:00Z" in lines
    assert "3-9" in lines
    as_json = json.loads(fanfare("deliveries", "list", "--json").stdout)
    assert as_json["dead"] == [DEAD]


def test_a_straggler_whose_attempt_is_running_is_being_tried(
    fanfare: Fanfare, api: FakeApi
) -> None:
    late = {**STRAGGLER, "under_way": True}
    api.answers["GET /api/deliveries"] = (200, {"stragglers": [late], "dead": []})
    lines = fanfare("deliveries", "list").stdout
    assert "being tried" in lines
    assert "12:05:00Z" not in lines


def test_nothing_in_trouble_is_said(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/deliveries"] = (200, {"stragglers": [], "dead": []})
    assert "nothing is late" in fanfare("deliveries", "list").stdout


@pytest.mark.parametrize("what", ["subscription", "dead"])
def test_retry_names_what_is_tried(fanfare: Fanfare, api: FakeApi, what: str) -> None:
    api.answers[RETRY] = (202, {"due": "now"})
    assert fanfare("deliveries", "retry", f"--{what}", "4").exit_code == 0
    assert api.requests == [(RETRY, {what: 4})]


@pytest.mark.parametrize("options", [[], ["--dead", "1", "--subscription", "2"]])
def test_retry_takes_one_of_the_two(fanfare: Fanfare, options: list[str]) -> None:
    assert fanfare("deliveries", "retry", *options).exit_code == 2
