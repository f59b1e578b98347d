"""Content made safe to show, and freed of what changes by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.html import disarm, sanitize, without_noise
from protocols.model import ActivityObject, Entry, Text


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


def cleaned(markup: str, type: str = "html") -> str:
    entry = Entry(key="1", id="1", content=Text(value=markup, type=type))
    content = sanitize(entry).content
    if content is None:
        return ""
    assert content.type == "html"
    return content.value


@pytest.mark.parametrize(
    "markup",
    [
        "<script>alert(1)</script>",
        "<SCRIPT SRC=//evil.example/x></SCRIPT>",
        "<style>*{display:none}</style>",
        '<iframe src="https://evil.example/">inside</iframe>',
        '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
        "<!-- comment -->",
        "<template><b>hidden</b></template>",
        "<svg/>",
        "<meta http-equiv=refresh content=0>",
        "<base href='https://evil.example/'>",
        "<link rel=stylesheet href=https://evil.example/x.css>",
    ],
)
def test_what_acts_by_itself_is_gone_with_what_is_in_it(markup: str) -> None:
    assert cleaned(markup) == ""


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ('<p onclick="x()" style="position:fixed" class="c" id="i">a</p>', "<p>a</p>"),
        (
            '<img src="https://i.example/1.png" onerror="x()">',
            '<img src="https://i.example/1.png">',
        ),
        ('<img src="data:image/png;base64,AA==" alt="a">', '<img alt="a">'),
        ('<a href="javascript:x()">a</a>', '<a rel="noopener noreferrer">a</a>'),
        ('<a href="&#106;ava\nscript:x()">a</a>', '<a rel="noopener noreferrer">a</a>'),
        (
            '<video src="javascript:x()" autoplay></video>',
            '<video controls=""></video>',
        ),
        ("<form action='https://x.example/'><input name=q>text</form>", "text"),
        ("<svg><a xlink:href='javascript:x()'>a</a></svg>", ""),
        ("<math><mtext><script>x()</script></mtext></math>", ""),
        ("<p>not <b>closed", "<p>not <b>closed</b></p>"),
    ],
)
def test_what_could_do_harm_is_taken_from_what_could_not(
    markup: str, expected: str
) -> None:
    assert cleaned(markup) == expected


@pytest.mark.parametrize(
    "markup",
    [
        "<h2>a</h2><ul><li>b</li></ul><blockquote>c</blockquote><pre><code>d</code></pre>",
        '<figure><img src="https://i.example/1.png" srcset="https://i.example/2.png 2x"'
        ' alt="a" width="1" height="2"><figcaption>b</figcaption></figure>',
        '<picture><source srcset="https://i.example/1.webp" type="image/webp">'
        "</picture>",
        '<audio src="https://a.example/1.mp3" controls=""></audio>',
        '<video poster="https://v.example/1.png" controls="">'
        '<source src="https://v.example/1.mp4" type="video/mp4"></video>',
        '<table><tbody><tr><td colspan="2">a</td></tr></tbody></table>',
        "<details><summary>a</summary>b</details><ruby>a<rt>b</rt></ruby>",
        '<p lang="nl" dir="ltr" title="t">a &lt; b &amp; c</p>',
        '<time datetime="2026-04-10">a</time>',
    ],
)
def test_what_feeds_need_stays_as_it_is(markup: str) -> None:
    assert cleaned(markup).replace(' rel="noopener noreferrer"', "") == markup


@pytest.mark.parametrize(
    "scheme", ["http://x", "https://x", "mailto:x", "tel:1", "geo:1,2"]
)
def test_links_of_the_usual_kinds_stay(scheme: str) -> None:
    assert f'href="{scheme}"' in cleaned(f'<a href="{scheme}">a</a>')


def test_xhtml_becomes_html() -> None:
    assert cleaned("<p>a<br/>b</p>", "xhtml") == "<p>a<br>b</p>"


@pytest.mark.parametrize("type", ["text", "application/xml", "text/markdown"])
def test_text_becomes_html_that_shows_it(type: str) -> None:
    assert cleaned("a <b> & c\nd", type) == "a &lt;b&gt; &amp; c<br>\nd"


def test_markup_that_grows_beyond_measure_shows_its_source() -> None:
    """Unclosed links are opened again in each paragraph, as browsers do."""
    markup = f'<p><a href="https://x.example/{"y" * 500}">' + "<p>x</p>" * 100
    assert cleaned(markup).startswith("&lt;p&gt;&lt;a href=")


def test_all_texts_of_an_entry_are_cleaned_and_nothing_else() -> None:
    bad = Text(value="<b onclick=x>a</b>")
    entry = Entry(
        key="1",
        id="1",
        title="<b> is bold",
        summary=bad,
        objects=(ActivityObject(id="2", content=bad), ActivityObject(id="3")),
        extensions={"media": {"description": "<b onclick=x>a</b>"}},
    )
    clean = sanitize(entry)
    assert clean.summary == Text(value="<b>a</b>")
    assert [each.content for each in clean.objects] == [Text(value="<b>a</b>"), None]
    assert (clean.content, clean.title) == (None, entry.title)
    assert clean.extensions == entry.extensions


def test_a_disarmed_entry_shows_the_source_of_its_markup() -> None:
    entry = Entry(key="1", id="1", summary=Text(value="<b>a</b>\n&amp;"))
    assert disarm(entry).summary == Text(value="&lt;b&gt;a&lt;/b&gt;<br>\n&amp;amp;")
