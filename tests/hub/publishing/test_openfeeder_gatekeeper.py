"""Which pages readers are shown, by their addresses."""

from __future__ import annotations

import pytest

from hub.publishing.openfeeder_gatekeeper import Gatekeeper


@pytest.mark.parametrize(
    ("url", "is_shown"),
    [
        ("https://a.example/cart", False),
        ("https://a.example/cart/1", False),
        ("https://a.example/c%61rt", False),
        ("https://a.example/cartography", True),
        ("https://a.example", True),
        ("http://[/cart", False),
        ("http://[::1/other", False),
    ],
)
def test_of_excluded_paths_nothing_is_shown_nor_what_cannot_be_told_apart(
    url: str, is_shown: bool
) -> None:
    assert Gatekeeper(excluded_paths=("/cart",)).shows_url(url) is is_shown
    assert Gatekeeper().shows_url(url)
