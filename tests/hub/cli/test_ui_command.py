"""``fanfare ui``."""

from __future__ import annotations

import json

from tests.hub.cli.conftest import Fanfare
from tests.support.fake_api import FakeApi

LINK = {
    "url": "https://hub.example/admin/login?link=abc",
    "expires_at": "2026-01-01T12:05:00Z",
}


def test_the_link_is_all_that_goes_to_stdout(api: FakeApi, fanfare: Fanfare) -> None:
    api.answers["POST /api/login-links"] = (201, LINK)
    result = fanfare("ui")
    assert result.stdout == f"{LINK['url']}\n"
    assert "works once" in result.stderr


def test_programs_get_when_it_expires(api: FakeApi, fanfare: Fanfare) -> None:
    api.answers["POST /api/login-links"] = (201, LINK)
    assert json.loads(fanfare("ui", "--json").stdout) == LINK
