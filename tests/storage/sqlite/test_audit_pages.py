"""How many records of the audit trail are looked at for a page of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from storage.sqlite.audit import LOOKED_AT, most_looked_at

NOTHING: Mapping[str, object] = dict.fromkeys(
    (
        *("account", "token", "session", "source", "operation", "without"),
        *("target", "target_id", "outcome", "since", "until", "before_at"),
    )
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, 51),
        ({"since": 1, "until": 2, "before_at": 3}, 51),
        ({"account": 1}, 51),
        ({"operation": "x", "since": 1}, 51),
        ({"target_id": 7, "target": "feed"}, 51),
        ({"target": "feed"}, LOOKED_AT),
        ({"account": 1, "operation": "x"}, LOOKED_AT),
        ({"target_id": 7, "target": "feed", "without": "x"}, LOOKED_AT),
        ({"outcome": "refused"}, LOOKED_AT),
    ],
)
def test_no_more_than_are_shown_are_looked_at_if_an_index_finds_them(
    given: Mapping[str, object], expected: int
) -> None:
    assert most_looked_at({**NOTHING, **given}, 51) == expected
