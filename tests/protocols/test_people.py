from __future__ import annotations

from typing import Any

import pytest

from protocols.model import Author, Entry
from protocols.safe_urls import (
    LONGEST_NAME,
    display_name,
    safe_entry,
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
