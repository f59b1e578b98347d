"""URLs: made absolute, compared, and the fragments that select a part."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.urls import (
    LONGEST,
    LONGEST_SELECTOR,
    host_name,
    is_absolute,
    is_meant_as_path,
    is_public_url,
    is_same_site,
    is_web_url,
    may_take_forever,
    normal_url,
    requested_url,
    resolve,
    resource_url,
    selector_of,
    without_scheme,
    without_tracking,
)


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


PAGE = "https://a.example/page"


@pytest.mark.parametrize(
    ("fragment", "selector"),
    [
        ("%24.store.price", "$.store.price"),
        ("$", "$"),
        ("$[0]", "$[0]"),
        (".h-entry", ".h-entry"),
        ("%23main%20p", "#main p"),
        ("[rel=next]", "[rel=next]"),
        ("*", "*"),
        ("div.news", "div.news"),
        ("article%20%3E%20h2", "article > h2"),
        ("ul>li", "ul>li"),
    ],
)
def test_paths_select(fragment: str, selector: str) -> None:
    assert selector_of(f"{PAGE}#{fragment}") == selector


@pytest.mark.parametrize(
    "fragment",
    [
        *("", "top", "L12", "v1.2", "!/page", ":~:text=a%20b", "/route", "a=b&c=d"),
        *("section-1.2", "main", "$price", "%24", "Some%20heading")[:3],
        *("changelog.md", ".5", "%00.a", "." + "a" * LONGEST_SELECTOR),
    ],
)
def test_names_of_places_select_nothing(fragment: str) -> None:
    assert selector_of(f"{PAGE}#{fragment}") == ""
    assert resource_url(f"{PAGE}#{fragment}") == resource_url(PAGE)


@pytest.mark.parametrize(
    ("fragment", "is_meant"),
    [
        *((each, True) for each in ("[[[", ".", "%23%2F", "*", "$..[", "%24", ".é")),
        ("." + "a" * LONGEST_SELECTOR, True),
        *((each, False) for each in ("", "top", "!/page", "/route", ".5", "$price")),
    ],
)
def test_what_begins_as_a_path_is_meant_as_one(
    fragment: str, *, is_meant: bool
) -> None:
    assert is_meant_as_path(f"{PAGE}#{fragment}") is is_meant


def test_a_part_is_another_resource_however_it_is_spelled() -> None:
    assert (
        resource_url("HTTPS://A.example:443/page#%24.a")
        == resource_url(f"{PAGE}#$.a")
        != resource_url(PAGE)
    )
    assert resource_url(f"{PAGE}#$.a") != resource_url(f"{PAGE}#$.b")


@pytest.mark.parametrize(
    ("selector", "is_told"),
    [
        ("$[?match(@, '(a+)+b')]", True),
        ("$[?search(@.x, '(.*)*$')]", True),
        ("$[?@ =~ /([a-z]{2,}?){3}/]", True),
        ("$[?match(@, '(ab)+c*')]", False),
        (r"$[?match(@, '(a\\+)+')]", False),
        ("$[?(@.n > 1)].name", False),
        ("p:nth-child(2n+1)", False),
    ],
)
def test_expressions_that_may_take_forever_are_told(
    selector: str, *, is_told: bool
) -> None:
    assert may_take_forever(selector) is is_told


BASE = "https://site.example/blog/feed.xml"


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("https://a.example/x", "https://a.example/x"),
        ("  http://a.example/x\n", "http://a.example/x"),
        ("HTTP://a.example/x", "HTTP://a.example/x"),
        ("post", "https://site.example/blog/post"),
        ("/post", "https://site.example/post"),
        ("?page=2", "https://site.example/blog/feed.xml?page=2"),
        ("//cdn.example/x", "https://cdn.example/x"),
        ("https://a.example/one\ntwo", "https://a.example/onetwo"),
        ("https://a.example/one two", "https://a.example/one%20two"),
        ("mailto:jo@a.example", "mailto:jo@a.example"),
        ("tag:a.example,2026:1", "tag:a.example,2026:1"),
        (None, ""),
        ("", ""),
        ("javascript:alert(1)", ""),
        ("JavaScript:alert(1)", ""),
        ("java\nscript:alert(1)", ""),
        ("data:image/png;base64,AAAA", ""),
        ("//[", ""),
        ("https://a.example/" + "x" * LONGEST, ""),
    ],
)
def test_a_reference_becomes_absolute(reference: str | None, expected: str) -> None:
    assert resolve(reference, BASE) == expected


def test_without_a_base_a_relative_reference_stays_as_it_is() -> None:
    assert resolve("post", "") == "post"


@given(st.text(), st.text())
def test_no_reference_fails_to_resolve(reference: str, base: str) -> None:
    assert isinstance(resolve(reference, base), str)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example/?id=1", "https://a.example/?id=1"),
        ("https://a.example/?utm_source=x", "https://a.example/"),
        ("https://a.example/?utm_source=x&id=1", "https://a.example/?id=1"),
        ("https://a.example/?id=1&utm_source=x", "https://a.example/?id=1"),
        (
            "https://a.example/?id=1&UTM_medium=x&b=2#top",
            "https://a.example/?id=1&b=2#top",
        ),
        ("https://a.example/?a=1&utm_source=x&utm_medium=y", "https://a.example/?a=1"),
        ("https://a.example/utm_source", "https://a.example/utm_source"),
    ],
)
def test_tracking_parameters_are_dropped(url: str, expected: str) -> None:
    assert without_tracking(url) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://A.example/B?c#d", "//a.example/B?c#d"),
        ("http://A.example", "//a.example"),
        ("tag:A.example,2026:1", "tag:A.example,2026:1"),
    ],
)
def test_http_and_https_are_one_page(url: str, expected: str) -> None:
    assert without_scheme(url) == expected


def test_web_urls_are_told_from_other_absolute_ones() -> None:
    assert is_web_url("https://a.example/")
    assert not is_web_url("ftp://a.example/")
    assert is_absolute("ftp://a.example/")
    assert not is_absolute("/a")


@pytest.mark.parametrize(
    ("authority", "is_one"),
    [
        ("a.example", True),
        ("A.example:8080", True),
        ("a_b.example", True),
        ("b\xfccher.example", True),
        ("me:secret@a.example:65535", True),
        ("[::1]:80", True),
        ("[::1", False),
        ("::1]", False),
        ("[words]", False),
        ("a.example:65536", False),
        ("a.example:999999", False),
        ("a.example:http", False),
        ("a.example\u2100", False),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "HTTPS"])
@pytest.mark.parametrize("rest", ["", "/a:b?c", "?[", "#["])
def test_a_web_url_has_a_host_and_a_port_that_can_be_read(
    scheme: str, authority: str, rest: str, is_one: bool
) -> None:
    assert is_web_url(f"{scheme}://{authority}{rest}") is is_one


@given(st.text("htps:/[]@.-1290aA?#\u2100%", max_size=20))
def test_whatever_is_a_web_url_can_be_split(rest: str) -> None:
    url = f"http://{rest}"
    if is_web_url(url):
        assert urlsplit(url).port != -1


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://a.example/~me", "https://a.example/~me"),
        ("https://a.example/%7Eme", "https://a.example/~me"),
        ("https://a.example/%7eme", "https://a.example/~me"),
        ("HTTPS://A.example:443", "https://a.example/"),
        ("http://a.example:80/", "http://a.example/"),
        ("http://a.example:443/", "http://a.example:443/"),
        ("https://a.example?q=%41", "https://a.example/?q=A"),
        ("https://a.example/%2f%3F", "https://a.example/%2F%3F"),
        ("https://a.example/100%", "https://a.example/100%"),
        ("https://a.example/Path?Q", "https://a.example/Path?Q"),
        ("urn:%7E", "urn:%7E"),
    ],
)
def test_spellings_of_one_url_have_one_normal_form(url: str, normal: str) -> None:
    assert normal_url(url) == normal


@pytest.mark.parametrize(
    ("url", "requested"),
    [
        ("https://a.example/%7Eme?Q=%41", "https://a.example/%7Eme?Q=%41"),
        ("HTTPS://A.example:443#top", "https://a.example/"),
        ("http://a.example:8080?q#a#b", "http://a.example:8080/?q"),
        ("http://a.example/\u00e9", "http://a.example/\u00e9"),
        ("urn:A#b", "urn:A"),
    ],
)
def test_a_request_names_no_fragment_and_leaves_the_path_alone(
    url: str, requested: str
) -> None:
    assert requested_url(url) == requested


@pytest.mark.parametrize(
    ("url", "resource"),
    [
        ("https://a.example/feed", "https://a.example/feed"),
        ("HTTPS://A.EXAMPLE:443/feed#a", "https://a.example/feed"),
        ("https://a.example/%66eed", "https://a.example/feed"),
        ("https://a.example", "https://a.example/"),
        ("https://a.example/\u00e9?\u00fc", "https://a.example/%C3%A9?%C3%BC"),
        ("https://a.example/%c3%a9?%c3%bc", "https://a.example/%C3%A9?%C3%BC"),
        ("https://a.example/100%", "https://a.example/100%"),
        ("https://a.example/\ud800", "https://a.example/%ED%A0%80"),
        ("https://B\u00dcCHER.example/\u00e9", "https://xn--bcher-kva.example/%C3%A9"),
        ("https://XN--BCHER-KVA.example/", "https://xn--bcher-kva.example/"),
        ("http://b\u00fccher.example:80", "http://xn--bcher-kva.example/"),
        ("http://b\u00fccher.example:8080", "http://xn--bcher-kva.example:8080/"),
        ("http://\u00fc@b\u00fccher.example/", "http://\u00fc@xn--bcher-kva.example/"),
        ("http://fa\u00df.example/", "http://xn--fa-hia.example/"),
        ("http://\ud800.example/", "http://\ud800.example/"),
        ("http://\u00fc..example/", "http://\u00fc..example/"),
        ("urn:A#b", "urn:A"),
    ],
)
def test_urls_that_ask_for_the_same_are_one_resource(url: str, resource: str) -> None:
    assert resource_url(url) == resource


@pytest.mark.parametrize(
    "other",
    [
        "http://a.example/feed",
        "https://a.example/Feed",
        "https://a.example/feed/",
        "https://a.example/feed?",
        "https://a.example/feed?a",
        "https://a.example:80/feed",
        "https://a.example/%2Ffeed",
        "https://www.a.example/feed",
    ],
)
def test_urls_that_may_ask_for_something_else_are_others(other: str) -> None:
    assert resource_url(other) != resource_url("https://a.example/feed")


@given(st.text("aA~%7eE/?:.#\u00e9", max_size=20))
def test_a_resource_is_its_own(rest: str) -> None:
    once = resource_url(f"HTTPS://A.example/{rest.replace('%', '%25')}")
    assert resource_url(once) == once


@given(st.text("aA~%7eE/?:.", max_size=20))
def test_a_normal_form_is_its_own(rest: str) -> None:
    once = normal_url(f"https://a.example/{rest.replace('%', '%25')}")
    assert normal_url(once) == once


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("https://a.example/x", "http://A.example:8080/y", True),
        ("https://www.a.example/x", "https://a.example/", True),
        ("https://blog.a.example/x", "https://a.example/", True),
        ("https://a.example/", "https://me@www.blog.a.example", True),
        ("https://a.example/", "https://b.example/", False),
        ("https://ba.example/", "https://a.example/", False),
        ("https://a.example/", "", False),
        ("", "", False),
        ("tag:a.example", "tag:a.example", False),
    ],
)
def test_a_site_is_a_host_with_all_below_it(
    one: str, other: str, is_same: bool
) -> None:
    assert is_same_site(one, other) is is_same
    assert is_same_site(other, one) is is_same


HOSTS = st.sampled_from(
    ["a.example", "A.example", "a.example.", "127.0.0.1", "[::1]", "u@a.b", "ä.b", ""]
)
PORTS = st.sampled_from(["", ":80", ":8080", ":0", ":99999", ":", ":x"])
RESTS = st.sampled_from(["", "/", "/a?b", "?b", "#c", "/a\\b", "/[", "\t/a"])


@given(st.sampled_from(["http://", "https://", "HTTP://", "ftp:"]), HOSTS, PORTS, RESTS)
def test_the_host_of_a_url_is_the_one_that_urllib_reads(
    scheme: str, host: str, port: str, rest: str
) -> None:
    url = f"{scheme}{host}{port}{rest}"
    assert host_name(url) == (urlsplit(url).hostname or "")
