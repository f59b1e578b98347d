"""Hosts that the operator lists are never asked."""

from __future__ import annotations

import pytest

from hub.ingest.fetcher import BlockedHosts


@pytest.mark.parametrize(
    ("url", "is_covered"),
    [
        ("https://example.org/feed", True),
        ("https://EXAMPLE.org.:8443/feed", True),
        ("https://a.b.example.org/feed", True),
        ("https://notexample.org/feed", False),
        ("https://org/feed", False),
        ("https://192.0.2.7/feed", True),
        ("https://[not-a-url/feed", False),
        ("nonsense", False),
    ],
)
def test_a_listed_host_is_covered_with_all_below_it(url: str, is_covered: bool) -> None:
    assert BlockedHosts(["Example.ORG.", "192.0.2.7"]).cover(url) is is_covered


def test_nothing_is_covered_by_an_empty_list() -> None:
    assert not BlockedHosts().cover("https://example.org/")
