from __future__ import annotations

from typing import Any

import pytest

from protocols.model import ActivityObject, Author, Entry, Feed, Link
from protocols.safe_urls import (
    LONGEST_NAME,
    display_name,
    is_safe_page,
    is_safe_url,
    safe_entry,
    safe_feed,
    without_addresses,
)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Ann", "Ann"),
        (" Ann  Bee ", "Ann Bee"),
        ("Ann <ann@b.example>", "Ann"),
        ("ann@b.example (Ann)", "Ann"),
        ("ann@b.example", ""),
        ("Ann @ Bee", "Ann @ Bee"),
        ("word " * LONGEST_NAME, ("word " * 40).strip()),
        ("a" * 10_000_000, ""),  # nothing is read that takes the square of its length
        ("Ann " + "b" * LONGEST_NAME + "@c.example", "Ann"),
    ],
)
def test_a_name_is_shown_without_a_mail_address(name: str, shown: str) -> None:
    assert display_name(Author(name=name)) == shown


def test_topics_show_no_address_that_stands_in_a_name() -> None:
    people = (Author(name="Ann <ann@b.example>"), Author(name=" Bob "))
    (ann, bob) = safe_entry(Entry(key="a", id="a", authors=people)).authors
    assert (ann.name, bob.name) == ("Ann", " Bob ")


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({"owner": {"name": "O", "email": "o@a.example"}}, {"owner": {"name": "O"}}),
        ({"webMaster": "w@a.example (Ann)"}, {"webMaster": "Ann"}),
        ({"play": {"email": "o@a.example"}, "x": {}}, {"x": {}}),
        ({"mbox": ["mailto:w@a.example", "x", ""]}, {"mbox": ["x", ""]}),
        ({"at": "https://a.example/@b.c", "none": ""}, None),
        ({"account": "@ann@a.example", "n": 1, "text": "1 @ 2"}, None),
        ({"text": "o@a.example " + "x" * 200}, None),
    ],
)
def test_extensions_are_published_without_mail_addresses(
    said: dict[str, Any], kept: dict[str, Any] | None
) -> None:
    assert without_addresses(said) == (said if kept is None else kept)


BAD = "JavaScript:alert(1)"
GOOD = "https://example.org/"


@pytest.mark.parametrize(
    "url", [GOOD, "HTTP://EXAMPLE.ORG", "mailto:a@b.c", "magnet:?xt=urn:x", "tel:+41"]
)
def test_what_starts_no_program_is_safe(url: str) -> None:
    assert is_safe_url(url)


@pytest.mark.parametrize(
    "url",
    [
        BAD,
        "vbscript:x",
        "data:text/html,x",
        "file:///etc/passwd",
        "/relative",
        "",
        "urn:isbn:1",
        "https://a.example/\nx",
        " https://a.example/",
        "java\tscript:x",
    ],
)
def test_all_else_is_not(url: str) -> None:
    assert not is_safe_url(url)


def test_pages_are_fetched_and_so_on_the_web() -> None:
    assert is_safe_page(GOOD)
    assert not is_safe_page("mailto:a@b.c")
    assert not is_safe_page("https://a.example/a b")


def test_an_entry_keeps_its_safe_links_and_no_mail_address() -> None:
    links = (Link(href=GOOD), Link(href=BAD))
    person = Author(name="A", uri=BAD, email="a@b.c", links=links)
    made = ActivityObject(links=links, authors=(person,))
    source = Feed(links=links, icon=BAD, logo=GOOD)
    entry = Entry(
        key="k",
        id="k",
        links=links,
        authors=(person,),
        contributors=(person,),
        objects=(made,),
        source=source,
    )
    safe = safe_entry(entry)
    assert safe.links == safe.objects[0].links == (Link(href=GOOD),)
    assert safe.authors == safe.contributors == safe.objects[0].authors
    assert safe.authors == (Author(name="A", links=(Link(href=GOOD),)),)
    assert safe.source == Feed(links=(Link(href=GOOD),), logo=GOOD)


def test_so_does_the_head_of_a_feed() -> None:
    person = Author(name="A", email="a@b.c")
    safe = safe_feed(Feed(authors=(person,), contributors=(person,)))
    assert safe.authors == safe.contributors == (Author(name="A"),)


def test_nor_have_their_extensions_mail_addresses() -> None:
    said = {"itunes": {"author": "a@b.c", "episode": "1"}}
    kept = {"itunes": {"episode": "1"}}
    assert safe_entry(Entry(key="k", id="k", extensions=said)).extensions == kept
    assert safe_feed(Feed(extensions=said)).extensions == kept
