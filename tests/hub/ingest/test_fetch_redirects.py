from __future__ import annotations

import pytest

from hub.ingest.fetcher import RedirectRefused, bare_url, origin, redirect_target

HERE = "http://host.example/feeds/news?page=1"


@pytest.mark.parametrize(
    ("url", "bare"),
    [
        ("http://host.example/feed", "http://host.example/feed"),
        ("http://host.example/feed#top", "http://host.example/feed"),
        (" http://host.example/a b ", "http://host.example/a%20b"),
        ("http://me:secret@host.example/feed", "http://host.example/feed"),
        ("HTTPS://me@host.example", "https://host.example/"),
        ("http://HOST.example:80/Feed", "http://host.example/Feed"),
        ("http://host.example/@me", "http://host.example/@me"),
        ("http://host.example?mail=a@b", "http://host.example/?mail=a@b"),
        ("http://HOST.example/%7e/../x?&&=", "http://host.example/%7e/../x?&&="),
    ],
)
def test_a_url_is_requested_as_it_was_given_less_what_is_not_for_the_wire(
    url: str, bare: str
) -> None:
    assert bare_url(url) == bare


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("http://host.example/a", "http://HOST.example:80/b", True),
        ("https://host.example/", "https://host.example:443/", True),
        ("http://host.example/", "https://host.example/", False),
        ("http://host.example/", "http://host.example:8080/", False),
        ("http://host.example/", "http://www.host.example/", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(
    one: str, other: str, are_same: bool
) -> None:
    assert (origin(one) == origin(other)) is are_same


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("https://other.example/x", "https://other.example/x"),
        ("/x", "http://host.example/x"),
        ("x", "http://host.example/feeds/x"),
        ("?page=2", "http://host.example/feeds/news?page=2"),
        ("//other.example/x", "http://other.example/x"),
        ("/a b#c", "http://host.example/a%20b"),
        ("http://me:secret@other.example/", "http://other.example/"),
        ("/\\other.example", "http://host.example/\\other.example"),
    ],
)
def test_a_redirect_leads_to_its_location(location: str, target: str) -> None:
    assert redirect_target(HERE, location, [HERE]) == target


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("", "names no target"),
        ("file:///etc/passwd", "not an http or https URL"),
        ("gopher://host.example/", "not an http or https URL"),
        ("ftp://host.example/", "not an http or https URL"),
        ("data:,x", "not an http or https URL"),
        ("javascript:alert(1)", "not an http or https URL"),
        ("https://", "not an http or https URL"),
        ("https:@", "not an http or https URL"),
        ("http://[::1", "not a valid URL"),
        ("http://host.example:port/", "not a valid URL"),
        ("http://host.example/\r\nSet-Cookie: a=b", "not a valid URL"),
        ("http://host\t.example/", "not a valid URL"),
        ("http://\udcff.example/", "not a valid URL"),
        (HERE, "form a loop"),
        (HERE + "#fragment", "form a loop"),
    ],
)
def test_a_redirect_elsewhere_is_refused(location: str, reason: str) -> None:
    with pytest.raises(RedirectRefused, match=reason):
        redirect_target(HERE, location, [HERE])


def test_a_redirect_from_https_to_http_is_refused() -> None:
    with pytest.raises(RedirectRefused, match="from https to http"):
        redirect_target("https://host.example/", "http://host.example/", [])


def test_five_redirects_are_followed_and_the_sixth_is_refused() -> None:
    visited = [f"http://host.example/{number}" for number in range(6)]
    assert redirect_target(HERE, "/new", visited[:5]) == "http://host.example/new"
    with pytest.raises(RedirectRefused, match="more than 5"):
        redirect_target(HERE, "/new", visited)
