"""Options that were called otherwise: they work, and say what they are called now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.support.fake_api import FakeApi, feed_document

Fanfare = Callable[..., Result]


@pytest.fixture
def taking(api: FakeApi) -> FakeApi:
    """Takes whatever the commands of `RENAMED` send."""
    empty = {"feeds": [], "cursor": None, "next": None}
    api.answers["GET /api/feeds"] = (200, empty)
    api.answers["PATCH /api/feeds/7"] = (200, {**feed_document(), "follows": []})
    api.answers["POST /api/tokens"] = (201, {"token": "t"})
    api.answers["POST /api/deliveries/retry"] = (202, {"due": "now"})
    return api


RENAMED = [
    (("feeds", "list"), "--section", "--category", ""),
    (("feeds", "edit", "7"), "--section", "--category", ""),
    (("tokens", "create"), "--right", "--scope", "list"),
    (("deliveries", "retry"), "--dead", "--dead-letter", "4"),
]


@pytest.mark.parametrize(("command", "former", "name", "value"), RENAMED)
def test_the_former_name_does_the_same_and_names_the_new_one(
    taking: FakeApi,
    fanfare: Fanfare,
    command: tuple[str, ...],
    former: str,
    name: str,
    value: str,
) -> None:
    sent: list[Any] = []
    for option, warned in ((former, True), (name, False)):
        result = fanfare(*command, option, value, "--json")
        assert result.exit_code == 0, result.output
        assert (f"{former} is now called {name}" in result.stderr) == warned
        sent.append(taking.requests[:])
        taking.requests.clear()
    assert sent[0] == sent[1]


@pytest.mark.parametrize(("command", "former", "name", "value"), RENAMED)
def test_help_has_the_new_name_only(
    fanfare: Fanfare, command: tuple[str, ...], former: str, name: str, value: str
) -> None:
    text = fanfare(*command, "--help").stdout.split()
    assert name in text
    assert former not in text


def test_of_both_the_new_name_counts_and_what_is_collected_is_collected(
    taking: FakeApi, fanfare: Fanfare
) -> None:
    fanfare("feeds", "edit", "7", "--category", "new", "--section", "former", "--json")
    fanfare("tokens", "create", "--right", "list", "--scope", "retrieve", "--json")

    edited, made = (body for _, body in taking.requests)
    assert edited == {"category": "new"}
    assert sorted(made["scopes"]) == ["list", "retrieve"]
