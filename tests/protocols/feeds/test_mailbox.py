"""Persons as RSS writes them."""

from __future__ import annotations

import pytest

from protocols.feeds.constructs import read_mailbox
from protocols.model import Author


@pytest.mark.parametrize(
    ("written", "author"),
    [
        ("jo@example.com (Jo Vale)", Author(name="Jo Vale", email="jo@example.com")),
        ("Jo Vale <jo@example.com>", Author(name="Jo Vale", email="jo@example.com")),
        ("mailto:jo@example.com", Author(email="jo@example.com")),
        ("Jo &amp; Al", Author(name="Jo & Al")),
        ("", Author()),
    ],
)
def test_a_name_and_an_address_are_told_apart(written: str, author: Author) -> None:
    assert read_mailbox(written) == author
    assert read_mailbox(written) is read_mailbox(written)


def test_what_is_too_long_for_a_name_is_not_remembered() -> None:
    long = "x" * 1_000
    assert read_mailbox(long) == Author(name=long)
    assert read_mailbox(long) is not read_mailbox(long)
