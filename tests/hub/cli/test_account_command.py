"""``fanfare account``."""

from __future__ import annotations

import pytest

from tests.hub.cli.conftest import Fanfare
from tests.support.fake_api import FakeApi


@pytest.mark.parametrize(("count", "shown"), [(3, "3"), (None, "many")])
def test_an_account_is_shown_with_what_its_token_may_do(
    api: FakeApi, fanfare: Fanfare, count: int | None, shown: str
) -> None:
    api.answers["GET /api/account"] = (
        200,
        {
            "account": "alice",
            "scopes": ["list", "subscribe"],
            "notified": 12,
            "credits": 999_999_988,
            "subscriptions": count,
            "failing": 0,
        },
    )
    lines = [line.split(maxsplit=1) for line in fanfare("account").stdout.splitlines()]
    assert ["account", "alice"] in lines
    assert ["scopes", "list, subscribe"] in lines
    assert ["subscriptions", shown] in lines
    assert ["credits", "999999988"] in lines
