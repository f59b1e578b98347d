from __future__ import annotations

import pytest

from protocols.urls import is_public_url


@pytest.mark.parametrize(
    ("url", "is_public"),
    [
        ("https://hub.example.org", True),
        ("http://93.184.215.14:8080", True),
        ("http://[2606:2800:220:1:248:1893:25c8:1946]", True),
        ("", False),
        ("http://localhost:8080", False),
        ("http://hub", False),
        ("http://hub.local", False),
        ("http://127.0.0.1:8080", False),
        ("http://10.0.0.9", False),
        ("http://[::1]:8080", False),
    ],
)
def test_who_is_elsewhere_reaches_public_names_and_addresses(
    url: str, is_public: bool
) -> None:
    assert is_public_url(url) is is_public
