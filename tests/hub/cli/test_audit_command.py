"""``fanfare audit``."""

from __future__ import annotations

import json
from typing import Any

from hub.cli.audit_command import TARGETS
from storage.records import AuditTarget
from tests.hub.cli.conftest import Fanfare
from tests.support.fake_api import FakeApi

RECORD: dict[str, Any] = {
    "id": 3,
    "at": "2026-01-01T12:00:00Z",
    "account": "alice",
    "token": 7,
    "session": "",
    "address": "192.0.2.1",
    "source": "api",
    "operation": "edit_feed",
    "summary": "Change a feed",
    "target": "feed",
    "target_id": 12,
    "target_name": "https://a.example/feed",
    "status": 409,
    "detail": 'category: "news"',
}


def test_the_targets_are_those_there_are() -> None:
    assert set(TARGETS) == set(AuditTarget)


def test_each_record_is_a_row(api: FakeApi, fanfare: Fanfare) -> None:
    api.answers["GET /api/audit"] = (200, {"records": [RECORD], "next": None})
    result = fanfare("audit")
    assert result.exit_code == 0
    row = " ".join(result.stdout.splitlines()[1].split())
    assert "alice (token 7), 192.0.2.1" in row
    assert 'edit_feed: category: "news"' in row
    assert "feed 12 https://a.example/feed 409" in row


def test_what_is_asked_for_goes_to_the_api(api: FakeApi, fanfare: Fanfare) -> None:
    api.answers["GET /api/audit"] = (200, {"records": [], "next": None})
    wanted = "--target", "feed", "--id", "12", "--since", "2h", "--without", "parse"
    result = fanfare("audit", *wanted)
    assert "nothing like that was done" in result.stdout
    [(asked, _)] = api.requests
    assert asked == "GET /api/audit?limit=500&target=feed&id=12&since=2h&without=parse"


def test_no_more_than_wanted_are_listed(api: FakeApi, fanfare: Fanfare) -> None:
    records = [{**RECORD, "id": each} for each in range(5)]
    api.answers["GET /api/audit"] = (200, {"records": records, "next": "more"})
    result = fanfare("audit", "--limit", "2", "--json")
    assert [each["id"] for each in json.loads(result.stdout)] == [0, 1]
