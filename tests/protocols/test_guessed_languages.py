from __future__ import annotations

import pytest

from protocols.languages import (
    FEWEST_LETTERS,
    MOST_CHARACTERS,
    believed,
    telling_text,
)
from protocols.model import Entry, Text


def a_written_entry(title: str, content: str = "") -> Entry:
    return Entry(key="k", id="k", title=title, content=Text(value=content, type="html"))


def test_a_short_text_tells_nothing() -> None:
    assert telling_text(a_written_entry("a" * (FEWEST_LETTERS - 1))) == ""
    assert telling_text(a_written_entry("a" * FEWEST_LETTERS)) != ""


def test_digits_and_markup_are_no_letters() -> None:
    assert telling_text(a_written_entry("12 " * 200)) == ""
    assert telling_text(a_written_entry("", '<a class="a long class name">' * 50)) == ""


def test_title_and_content_tell_together_and_only_as_much_as_is_needed() -> None:
    text = telling_text(a_written_entry("one", f"<p>{'zwei ' * MOST_CHARACTERS}</p>"))

    assert text.split()[:2] == ["one", "zwei"]
    assert len(text) == MOST_CHARACTERS


@pytest.mark.parametrize(
    ("code", "confidence", "language"),
    [
        ("de", 1.0, "de"),
        ("de", 0.9, "de"),
        ("de", 0.89, ""),
        ("zh-cn", 1.0, "zh"),
        ("und", 1.0, ""),
        ("zxx", 1.0, ""),
    ],
)
def test_only_sure_guesses_of_a_language_are_believed(
    code: str, confidence: float, language: str
) -> None:
    assert believed(code, confidence) == language
