"""Which fragments select a part of what a URL leads to."""

from __future__ import annotations

import pytest

from protocols.urls import (
    LONGEST_SELECTOR,
    is_meant_as_path,
    may_take_forever,
    resource_url,
    selector_of,
)

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
