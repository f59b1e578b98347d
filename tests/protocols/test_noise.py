"""What changes by itself in a content, and what its publisher changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.html import without_noise


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (
            'A<img src="https://pixel.wp.com/b.gif?rand=1" width="1" height="1">',
            'A<img src="https://pixel.wp.com/b.gif?rand=2" width="1" height="1">',
        ),
        (
            "<p>A</p><img width=1 height=1 src=//stats.example/1>",
            "<p>A</p><img width=1 height=1 src=//stats.example/2>",
        ),
        (
            '<p>A</p><IMG style="width:1px;height:0px" src="/1">',
            '<p>A</p><IMG style="width:1px;height:0px" src="/2">',
        ),
        (
            '<p>A</p><a href="http://feedads.g.doubleclick.net/~a/1/0/da">'
            '<img src="http://feedads.g.doubleclick.net/~a/1/0/di"></a>',
            '<p>A</p><a href="http://feedads.g.doubleclick.net/~a/9/1/da">'
            '<img src="http://feedads.g.doubleclick.net/~a/9/1/di"></a>',
        ),
        ('A<script nonce="x">ad(1)</script>', 'A<script nonce="y">ad(2)</script>'),
        ('A<ins class="ad">1</ins>', 'A<ins class="ad">2</ins>'),
        ("A<!-- served by one in 0.1 s -->", "A<!-- served by two in 0.2 s -->"),
        (
            '<form>A<input type="hidden" name="n" value="1"></form>',
            '<form>A<input type="hidden" name="n" value="2"></form>',
        ),
        (
            '<a href="/like?id=1&_wpnonce=a1">A</a>',
            '<a href="/like?id=1&_wpnonce=b2">A</a>',
        ),
        (
            '<img src="https://cdn.example/1.png?Expires=1&Signature=a">',
            '<img src="https://cdn.example/1.png?Expires=2&Signature=b">',
        ),
        ('<a href="/1" data-id="1">A</a>', '<a href="/1" data-id="2">A</a>'),
        ("<p>A</p><p>No comments</p>", "<p>A</p><p>1 comment</p>"),
        ("<p>A</p><p>12 comments</p>", "<p>A</p><p>1,013 comments</p>"),
        ("Points: 4, # Comments: 7", "Points: 90, # Comments: 21"),
        ("Comments (1)", "Comments (2)"),
    ],
)
def test_what_changes_by_itself_makes_no_difference(one: str, two: str) -> None:
    assert without_noise(one) == without_noise(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("<p>A</p>", "<p>B</p>"),
        ('<img src="/1.png">', '<img src="/2.png">'),
        ('<img src="/1.png" width="100">', '<img src="/2.png" width="100">'),
        ('<a href="/1?id=1">A</a>', '<a href="/1?id=2">A</a>'),
        (
            '<iframe src="https://video.example/embed/1">',
            '<iframe src="https://video.example/embed/2">',
        ),
        ("won by 5 points", "won by 7 points"),
        ("1 < 2", "1 < 3"),
    ],
)
def test_what_the_publisher_changes_does(one: str, two: str) -> None:
    assert without_noise(one) != without_noise(two)


@given(st.text(alphabet="<>!-aimgscript ='\"?1,0width:commen/", max_size=200))
def test_any_text_can_be_compared(text: str) -> None:
    assert without_noise(text) == without_noise(text)


@pytest.mark.bulk
@pytest.mark.parametrize(
    "piece",
    [
        *("<script ", "<!--", "<a ", "<img width=", "1,", "<a ?sid=", "<img src="),
        *("src='", 'src="?', "?sid=", "data-a=", "//a.", "width=1 ", "nonce='"),
    ],
)
def test_a_text_made_to_be_slow_comes_to_its_end(piece: str) -> None:
    """Work that grew with the square of the length would not, in a test's time."""
    assert without_noise(piece * 100_000) is not None
    assert without_noise(f"<img {piece * 100_000}>") is not None
