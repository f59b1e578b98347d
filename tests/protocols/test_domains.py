"""Hosts as they are compared, and whose they are."""

from __future__ import annotations

import pytest

from protocols.domains import registrable_domain, site_of


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://example.org/a", ("example.org", "")),
        ("HTTP://WWW.Example.ORG:80", ("example.org", "")),
        ("https://example.org.:443?x", ("example.org", "")),
        ("http://example.org:443/", ("example.org", "443")),
        ("https://someone:secret@example.org:8/", ("example.org", "8")),
        ("https://victim.example@evil.example/", ("evil.example", "")),
        ("https://victim.example%40evil.example/", ("evil.example", "")),
        ("https://evil.example\\@victim.example/", ("evil.example", "")),
        ("https://bücher.example/", ("xn--bcher-kva.example", "")),
        ("https://b%C3%BCcher.example/", ("xn--bcher-kva.example", "")),
        ("https://\u2603\u0300.example/", ("\u2603\u0300.example", "")),
        ("http://[2001:DB8::1]:8080/", ("[2001:db8::1]", "8080")),
        ("http://127.0.0.1:80/", ("127.0.0.1", "")),
        ("mailto:a@example.org", ("", "")),
        ("", ("", "")),
    ],
)
def test_a_host_is_compared_without_what_makes_no_difference(
    url: str, site: tuple[str, str]
) -> None:
    assert site_of(url) == site


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.b.example.org", "example.org"),
        ("example.org", "example.org"),
        ("feeds.example.co.uk", "example.co.uk"),
        ("example.co.uk", "example.co.uk"),
        ("q7z.me", "q7z.me"),
        ("alice.github.io", "alice.github.io"),
        ("x.alice.github.io", "alice.github.io"),
        ("github.io", "github.io"),
        ("localhost", "localhost"),
        ("10.0.0.1", "10.0.0.1"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("", ""),
    ],
)
def test_a_domain_is_what_one_owner_has_registered(host: str, domain: str) -> None:
    assert registrable_domain(host) == domain
