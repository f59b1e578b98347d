from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.text import (
    LONGEST_PIECE,
    collapse,
    pieces_of_markup,
    single_spaced,
    text_of_html,
    text_of_title,
    whole_number,
)


def test_white_space_is_collapsed_and_no_break_spaces_stay() -> None:
    assert collapse(" a \n\t b\u00a0! ") == "a b\u00a0!"


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("plain", "plain"),
        ("<p>A &amp; B<br>C</p>", "A & BC"),
        ("a &lt;b&gt;", "a <b>"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("<a <a <a", "<a <a <a"),
    ],
)
def test_html_is_reduced_to_its_text(markup: str, text: str) -> None:
    assert text_of_html(markup) == text


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Tom &amp; Jerry", "Tom & Jerry"),
        ("<b>New</b> things", "New things"),
        ("The <b> tag", "The <b> tag"),
        ("vector<T> and </T>", "vector<T> and </T>"),
        ("one<br/>two", "onetwo"),
        ("<i>&lt;b&gt;</i>", "<b>"),
        ("AT&T", "AT&T"),
    ],
)
def test_a_title_keeps_what_only_looks_like_markup(title: str, text: str) -> None:
    assert text_of_title(title) == text


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        (" 12 ", 12),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("1" * 5000, None),
        ("-1", None),
        ("1.5", None),
        ("²", None),
        ("", None),
        (None, None),
    ],
)
def test_whole_numbers_are_read_within_bounds(
    text: str | None, number: int | None
) -> None:
    assert whole_number(text) == number


@given(st.text(alphabet="<>&;abc/ \n"))
def test_any_text_makes_a_title_on_one_line(text: str) -> None:
    assert "\n" not in text_of_title(text)
    assert "\n" not in text_of_html(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  a \n b ",
        "x" * (LONGEST_PIECE + 5),
        "x" * LONGEST_PIECE + " y",
        "x" * (LONGEST_PIECE - 1) + " y",
        " " * (2 * LONGEST_PIECE) + "a",
        "a" + "\n" * (2 * LONGEST_PIECE) + "b",
        "word " * LONGEST_PIECE,
    ],
)
def test_the_words_of_a_long_text_are_those_of_the_whole(text: str) -> None:
    assert single_spaced(text) == " ".join(text.split())


@pytest.mark.parametrize(
    ("markup", "pieces"),
    [
        ("", [""]),
        ("<p>a</p>", ["<p>a</p>"]),
        ("<p>a</p><p>b</p>", ["<p>a</p>", "<p>b</p>"]),
        ("text without a tag", ["text with", "out a tag"]),
        ("<img src=x>", ["<img src=", "x>"]),
    ],
)
def test_long_markup_is_cut_where_a_tag_begins(markup: str, pieces: list[str]) -> None:
    assert [*pieces_of_markup(markup, 9)] == pieces
