"""Hosts that the operator lists, with all below them."""

from __future__ import annotations

import pytest

from hub.core.host_set import HostSet


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
    assert HostSet(["Example.ORG.", "192.0.2.7"]).covers(url) is is_covered


def test_nothing_is_covered_by_an_empty_list() -> None:
    assert not HostSet().covers("https://example.org/")


@pytest.mark.parametrize("hosts", [[], ["example.org"]])
def test_a_set_without_hosts_is_false(hosts: list[str]) -> None:
    assert bool(HostSet(hosts)) is bool(hosts)
