"""CSS paths match what they match as XPath, and take no squared time for it."""

from __future__ import annotations

import pytest
from cssselect import ExpressionError, HTMLTranslator, SelectorError
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from protocols.feeds.document_parts import select
from protocols.feeds.element import Element
from protocols.feeds.feed_links import parse_page
from protocols.protocol_errors import LimitExceeded

_MARKUP = (
    "<div>",
    "<div class='a b' lang=fr>",
    "</div>",
    "<p class=a>",
    "<p id=x data-n=abc>",
    "<span>",
    "</span>",
    "<!-- n -->",
    "words ",
    "<ul><li>one<li class=a>two</ul>",
    "<input checked disabled>",
)
pages = st.lists(st.sampled_from(_MARKUP), min_size=1, max_size=12).map("".join)
_names = st.sampled_from(["", "*", "div", "p", "span", "LI"])
_conditions = st.sampled_from(
    [
        *("", ".a", "#x", "[data-n]", "[data-n^=ab]", "[class~=b]", "[DATA-N=ABC i]"),
        *(":first-child", ":last-child", ":only-child", ":empty", ":root", ":checked"),
        *(":nth-child(2)", ":nth-child(2n+1)", ":nth-child(-n+2)", ":nth-child(n)"),
        *(":nth-last-child(2)", ":nth-last-child(-2n+3)", ":nth-child(-3)"),
        *(":nth-of-type(2)", ":nth-last-of-type(odd)", ":first-of-type"),
        *(":last-of-type", ":only-of-type", ":lang(fr)", ":contains('one')"),
        *(":not(.a)", ":not(:first-child)", ":is(p, .a)", ":where(span, li)"),
        *(":has(p)", ":has(> .a)", ":has(+ p)", ":has(~ span)", ":has(.a span)"),
        *(":has(> p ~ span)", ":has(div > p + p)", ":has(p, > li)", ":disabled"),
    ]
)
_compounds = st.tuples(_names, _conditions, _conditions).map(
    lambda parts: "".join(parts) or "p"
)
_signs = st.sampled_from([" ", " > ", " + ", " ~ ", ", "])
paths = st.lists(st.tuples(_compounds, _signs), min_size=1, max_size=4).map(
    lambda parts: "".join(part + sign for part, sign in parts[:-1]) + parts[-1][0]
)


@given(pages, paths)
def test_a_path_matches_what_it_matches_as_xpath(page: str, path: str) -> None:
    root = read(page)
    try:
        expected = etree.XPath(HTMLTranslator().css_to_xpath(path))(root)
    except ExpressionError:  # a type of any element, of which XPath can say nothing
        select(root, path)
    else:
        assert select(root, path) == expected


def test_places_may_be_counted_among_elements_of_any_name() -> None:
    root = read("<div><p>1<span>2</span></p><span>3</span><p>4</div>")
    found = select(root, "div *:first-of-type")
    assert [each.text for each in found] == ["1", "2", "3"]


@pytest.mark.parametrize("path", ["p::before", "p:nth-child(x)", "p:new", "a|p", "p >"])
def test_what_is_no_path_is_said(path: str) -> None:
    with pytest.raises((SelectorError, etree.XPathError)):
        select(read("<p>"), path)


@pytest.mark.parametrize(
    "path",
    [
        "p ~ p ~ p ~ p:last-child",
        "p + p + p + p:last-child",
        "p:nth-child(2) ~ p:nth-last-child(1)",
        "p:has(~ p):not(p ~ p) ~ p:last-of-type",
        "body > p:only-of-type ~ p, p:last-of-type",
    ],
)
def test_a_wide_page_takes_as_long_as_it_is_wide(path: str) -> None:
    """As XPath each of these would take minutes or more."""
    found = select(read("<p>" * 20_000 + "last"), path)
    assert [each.text for each in found] == ["last"]


def test_the_steps_of_a_path_are_bounded() -> None:
    root = read("<p>" * 98)
    assert select(root, "p ~ p:last-child", most_steps=400)
    with pytest.raises(LimitExceeded, match="limit of 399"):
        select(root, "p ~ p:last-child", most_steps=399)


def read(page: str) -> Element:
    root = parse_page(f"<!doctype html><body>{page}".encode())
    assert root is not None
    return root
