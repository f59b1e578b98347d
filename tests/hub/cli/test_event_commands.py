from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from protocols.operational_events import EventType
from tests.support.fake_api import FakeApi, subscription_document

Fanfare = Callable[..., Result]
SUBSCRIBE = "POST /api/events/subscriptions"
HOOK = "https://you.example/hook"


def subscribed(**changes: Any) -> dict[str, Any]:
    return subscription_document(events=["feed.*", "hub.disk"], **changes)


def test_the_secret_is_shown_once_and_what_to_do_next(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers[SUBSCRIBE] = (201, subscribed(secret="whsec_abc"))
    result = fanfare("events", "subscribe", HOOK, "--types", "feed.*,hub.disk")
    assert result.stdout == (
        f"subscribed  {HOOK}  (subscription 4)\n"
        "  to feed.*, hub.disk\n"
        "  secret  whsec_abc\n"
        "  keep it: it is not shown again\n"
        "  try it: fanfare subs test 4\n"
    )
    body = {"callback": HOOK, "types": ["feed.*", "hub.disk"], "secret": ""}
    assert api.requests == [(SUBSCRIBE, body)]


def test_a_secret_of_ones_own_is_not_shown(
    fanfare: Fanfare, api: FakeApi, tmp_path: Path
) -> None:
    api.answers[SUBSCRIBE] = (200, subscribed(secret=""))
    file = tmp_path / "secret"
    file.write_text("geheim\n")
    result = fanfare("events", "subscribe", HOOK, "--secret-file", str(file))
    assert "secret" not in result.stdout
    ((_, body),) = api.requests
    assert body == {"callback": HOOK, "types": ["*"], "secret": "geheim"}


def test_of_one_to_events_no_format_is_shown(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/subscriptions/4"] = (200, subscribed(topic="events:feed.*"))
    shown = fanfare("subs", "show", "4").stdout
    assert "events:feed.*" in shown
    assert not re.search(r"^(format|updates)", shown, re.MULTILINE)


def test_the_answer_can_be_had_as_json(fanfare: Fanfare, api: FakeApi) -> None:
    document = subscribed(secret="whsec_abc")
    api.answers[SUBSCRIBE] = (201, document)
    result = fanfare("events", "subscribe", HOOK, "--json")
    assert json.loads(result.stdout) == document


@pytest.mark.parametrize("has_hub", [False, True])
def test_the_types_are_listed_without_a_hub(
    fanfare: Fanfare, alone: Fanfare, has_hub: bool
) -> None:
    run = fanfare if has_hub else alone
    heading, *rows = run("events", "types").stdout.splitlines()
    assert heading.split() == ["TYPE", "WHEN"]
    assert [row.split()[0] for row in rows] == [*EventType]
    found = json.loads(run("events", "types", "--json").stdout)
    assert [each["type"] for each in found] == [*EventType]
