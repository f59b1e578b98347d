from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.websub.verification import denial_url

TOPIC = "https://site.example/feed"
DENIED = "hub.mode=denied&hub.topic=https%3A%2F%2Fsite.example%2Ffeed"


@pytest.mark.parametrize(
    ("callback", "expected"),
    [
        ("https://r.example", f"https://r.example?{DENIED}"),
        ("https://r.example/cb", f"https://r.example/cb?{DENIED}"),
        ("https://r.example/cb?", f"https://r.example/cb?{DENIED}"),
        ("https://r.example/cb?a=1", f"https://r.example/cb?a=1&{DENIED}"),
        ("https://r.example/cb?a=1&", f"https://r.example/cb?a=1&{DENIED}"),
        ("https://r.example/cb?a=1#top", f"https://r.example/cb?a=1&{DENIED}"),
        (
            "https://r.example/cb?hub.mode=mine",
            f"https://r.example/cb?hub.mode=mine&{DENIED}",
        ),
    ],
)
def test_the_denial_follows_the_callbacks_own_query(
    callback: str, expected: str
) -> None:
    assert denial_url(callback, TOPIC) == expected


def test_a_reason_is_told() -> None:
    url = denial_url("https://r.example/cb", TOPIC, "the feed is gone & over")
    assert url.endswith("&hub.reason=the%20feed%20is%20gone%20%26%20over")


@given(st.text(max_size=60), st.text(min_size=1, max_size=60))
def test_topic_and_reason_arrive_as_they_were(topic: str, reason: str) -> None:
    query = urlsplit(denial_url("https://r.example/cb?k=v", topic, reason)).query
    assert parse_qsl(query, keep_blank_values=True) == [
        ("k", "v"),
        ("hub.mode", "denied"),
        ("hub.topic", topic),
        ("hub.reason", reason),
    ]
