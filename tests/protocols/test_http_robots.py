"""robots.txt by RFC 9309: whose rules count, and which of them wins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.http import Robots, read_robots
from protocols.http.robots import LONGEST_RULE, MOST_BYTES, MOST_PARTS, MOST_RULES

EXAMPLE = """\
# of RFC 9309, 5.1
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


@pytest.mark.parametrize(
    ("product", "path", "is_allowed"),
    [
        ("Fanfare", "/feed.xml", True),
        ("Fanfare", "/example/feed.xml", False),
        ("Fanfare", "/a/b.gif", False),
        ("Fanfare", "/a/b.gif?c", True),
        ("foobot", "/feed.xml", False),
        ("foobot", "/example/page.html", True),
        ("FooBot", "/example/allowed.gif", True),
        ("foobot", "", False),
        ("foobot", "/robots.txt", True),
        ("foobot", "/robots.txt.gz", False),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/example/page.html", False),
        ("bazbot", "/example/", True),
        ("quxbot", "/example/", True),
    ],
)
def test_a_client_heeds_its_own_rules_or_those_of_all(
    product: str, path: str, is_allowed: bool
) -> None:
    assert read_robots(EXAMPLE.encode(), product).allows(path) is is_allowed


@pytest.mark.parametrize(
    ("rules", "path", "is_allowed"),
    [
        pytest.param("Disallow: /a\nAllow: /a/b", "/a/b/c", True, id="longest-wins"),
        pytest.param("Allow: /a\nDisallow: /a", "/a", True, id="allow-of-equals"),
        pytest.param("Disallow:", "/", True, id="empty-disallows-nothing"),
        pytest.param("Disallow: /*.xml", "/a/b.xml.gz", False, id="within"),
        pytest.param("Disallow: /*.xml$", "/a/b.xml.gz", True, id="at-the-end"),
        pytest.param("Disallow: /a$", "/a", False, id="whole"),
        pytest.param("Disallow: /a$", "/ab", True, id="not-whole"),
        pytest.param("Disallow: /ab*ba$", "/aba", True, id="parts-do-not-overlap"),
        pytest.param("Disallow: /a*b*c", "/a-c-b", True, id="parts-in-order"),
        pytest.param("Disallow: /ü", "/%C3%BC", False, id="encoded-by-them"),
        pytest.param("Disallow: /%c3%bc", "/ü", False, id="encoded-by-us"),
        pytest.param("Disallow: /%61", "/a", False, id="needlessly-encoded"),
        pytest.param("Disallow: /a%2Fb", "/a/b", True, id="an-encoded-slash-is-none"),
        pytest.param("Disallow: /a # b", "/a", False, id="comment"),
        pytest.param("Disallow /a", "/a", True, id="no-colon"),
        pytest.param("Crawl-delay: 9\nDisallow: /a", "/a", False, id="other-fields"),
    ],
)
def test_the_most_specific_rule_wins(rules: str, path: str, is_allowed: bool) -> None:
    robots = read_robots(f"User-agent: *\n{rules}\n".encode(), "Fanfare")
    assert robots.allows(path) is is_allowed


def test_a_version_behind_a_name_is_not_the_name() -> None:
    body = b"User-agent: Fanfare/9.1\nDisallow: /\n"
    assert not read_robots(body, "Fanfare").allows("/")


def test_all_groups_of_a_client_count() -> None:
    body = (
        b"User-agent: Fanfare\nDisallow: /a\n\n"
        b"User-agent: *\nDisallow: /c\n\n"
        b"User-agent: fanfare\nDisallow: /b\n"
    )
    robots = read_robots(body, "Fanfare")
    assert [robots.allows(path) for path in ("/a", "/b", "/c")] == [False, False, True]


def test_rules_before_any_name_are_nobody_s() -> None:
    assert read_robots(b"Disallow: /\n", "Fanfare").allows("/")


def test_a_name_that_is_no_token_is_not_ours() -> None:
    body = b"User-agent: 7up\nDisallow: /\n"
    assert read_robots(body, "Fanfare").allows("/")


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    body = b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n"
    assert not read_robots(body, "Fanfare").allows("/")


def test_what_comes_after_the_limit_is_not_read() -> None:
    body = b"User-agent: *\n" + b"#" * MOST_BYTES + b"\nDisallow: /\n"
    assert read_robots(body, "Fanfare").allows("/")


def test_names_and_rules_of_others_cost_nothing() -> None:
    names = b"".join(b"User-agent: a%d\n" % number for number in range(12_000))
    rules = b"Disallow: /\n" * 12_000
    assert read_robots(names + rules, "Fanfare") == Robots()


def test_more_rules_than_a_site_needs_are_not_kept() -> None:
    rules = b"".join(b"Disallow: /%d\n" % number for number in range(MOST_RULES + 9))
    robots = read_robots(b"User-agent: *\n" + rules, "Fanfare")
    assert len(robots.rules) == MOST_RULES


def test_asterisks_that_would_take_long_to_look_for_are_not_kept() -> None:
    rule = b"Disallow: /" + b"*a" * 999 + b"\n"
    robots = read_robots(b"User-agent: *\n" + rule * 200, "Fanfare")
    assert sum(len(rule.parts) for rule in robots.rules) == MOST_PARTS
    robots = read_robots(b"User-agent: *\nDisallow: /" + b"*" * 4_000 + b"a", "")
    assert [rule.parts for rule in robots.rules] == [("/", "a")]


def test_a_rule_longer_than_any_url_is_ignored() -> None:
    path = b"/" + b"a" * LONGEST_RULE
    body = b"User-agent: *\nDisallow: " + path + b"\nDisallow: /b\n"
    assert len(read_robots(body, "Fanfare").rules) == 1


@given(st.binary(max_size=300), st.text(max_size=50))
def test_nothing_that_a_site_writes_fails(body: bytes, path: str) -> None:
    read_robots(b"User-agent: *\nDisallow: " + body, "Fanfare").allows(path)
