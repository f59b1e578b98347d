from __future__ import annotations

import json
from collections.abc import Callable

from click.testing import Result

from tests.support.fake_api import FakeApi

Fanfare = Callable[..., Result]
BUILD = "POST /api/scp/build"
BUILT = {
    "name": "all-delta-20260101T000000Z-abc.scp.gz",
    "section": "all",
    "type": "delta",
    "generated": "2026-01-01T00:00:00Z",
    "since": "2025-12-31T23:00:00Z",
    "expires": "2026-01-03T00:00:00Z",
    "pages": 7,
    "size": 1234,
}


def test_what_was_built_is_listed(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[BUILD] = (201, {"collections": [BUILT]})
    lines = fanfare("scp", "build").stdout
    assert "1234" in lines
    assert BUILT["name"] in lines
    assert api.requests == [(BUILD, {"snapshots": False})]


def test_snapshots_can_be_asked_for_and_the_answer_be_json(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers[BUILD] = (201, {"collections": [BUILT]})
    done = fanfare("scp", "build", "--snapshots", "--json")
    assert json.loads(done.stdout) == {"collections": [BUILT]}
    assert api.requests == [(BUILD, {"snapshots": True})]


def test_nothing_to_build_is_said(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[BUILD] = (201, {"collections": []})
    assert fanfare("scp", "build").stdout == "nothing has changed\n"
