from __future__ import annotations

import pytest

from protocols.http import quality

JSON = "application/json"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", 0.0),
        ("*/*", 0.0),
        ("text/html", 0.0),
        ("application/json-seq", 0.0),
        ("application/json", 1.0),
        ("Application/JSON; charset=utf-8", 1.0),
        ("application/atom+xml, application/json;q=0.1", 0.1),
        ("application/json;q=0", 0.0),
        ("application/json; Q=0.5", 0.5),
        ("application/json;q=0.2, application/json;q=0.7", 0.7),
        ("application/json;q=much", 1.0),
        ("application/json;q=9", 1.0),
        ("application/json;q=-1", 0.0),
    ],
)
def test_a_type_is_wanted_as_much_as_is_said(accept: str, expected: float) -> None:
    assert quality(accept, JSON) == expected
