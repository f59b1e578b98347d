"""What of a page's content is told, in which pieces, and what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.model import Text
from protocols.openfeeder.write.page_chunks import (
    MOST_CHUNKS,
    chunks_of,
    chunks_of_words,
    is_boilerplate,
)


def texts(markup: str) -> list[str]:
    return [each.text for each in chunks_of(Text(value=markup))]


EXCLUDED = [
    "<nav>Home About</nav>",
    "<footer>Imprint</footer>",
    "<form><p>Your mail</p><input></form>",
    "<dialog>We use cookies</dialog>",
    "<menu><li>File</li></menu>",
    "<div class='ad'>Buy</div>",
    "<ins class='adsbygoogle'>Buy</ins>",
    "<div id='google-ads-1'>Buy</div>",
    "<section class='topAds'>Buy</section>",
    "<div class='sponsored-content'>Buy</div>",
    "<div class='cookie-consent'>OK?</div>",
    "<div id='CookieBanner'>OK?</div>",
    "<aside class='sidebar'>Archive</aside>",
    "<ul class='social-links'><li>Follow</li></ul>",
    "<div class='sharedaddy sd-sharing-enabled'><h3>Share this:</h3></div>",
    "<p class='share-buttons'>Mail it</p>",
    "<div class='feedflare'>Email it</div>",
    "<div id='comments'><p>First!</p></div>",
    "<div class='related-posts'>See as well</div>",
    "<div class='newsletter-signup'>Join</div>",
    "<div role='navigation'>Home</div>",
    "<div hidden>Not shown</div>",
    "<script>track()</script>",
    "<style>p {}</style>",
    "<iframe src='https://ads.example/'>frame</iframe>",
    "<noscript><img src='https://t.example/p.gif'></noscript>",
    "<img src='https://t.example/p.gif' width=1 height=1 alt='pixel'>",
    "<p>The post <a href='/x'>A title</a> appeared first on <a href='/'>B</a>.</p>",
    "<p>Share this</p>",
    "<p>Share this post on Facebook:</p>",
    "<p>Like Loading...</p>",
    "<p>Facebook | Twitter | LinkedIn</p>",
    "<p>Advertisement</p>",
    "<p>Subscribe to our newsletter for more</p>",
    "<ul><li>Tweet</li><li>Share</li></ul>",
]


@pytest.mark.parametrize("markup", EXCLUDED)
def test_what_is_no_content_is_left_out(markup: str) -> None:
    """OpenFeeder 4, "What to Exclude"."""
    assert texts(f"<p>Before</p>{markup}after") == ["Before", "after"]
    assert texts(f"first {markup}<p>Last</p>") == ["first", "Last"]
    assert texts(f"<div>{markup} tail</div>") == ["tail"]


@pytest.mark.parametrize(
    "markup",
    [
        "<p class='leadership shadow'>Kept</p>",
        "<div class='elementor-widget-text'>Kept</div>",
        "<p class='tracking-wide'>Kept</p>",
        "<div class='cookie recipe'>Kept</div>",
        "<span class='ad'>Kept</span>",
        "<aside>Kept</aside>",
        "<p>Kept: share this with those who like it, and tell us what they say</p>",
    ],
)
def test_what_only_looks_like_it_is_kept(markup: str) -> None:
    assert texts(markup)[0].startswith("Kept")


def test_code_is_kept_as_it_is() -> None:
    markup = "<pre><span class='hljs-comment'># share this</span>\nads = 1</pre>"
    assert texts(markup) == ["# share this\nads = 1"]


def test_the_source_of_a_quotation_belongs_to_it() -> None:
    assert texts("<blockquote>So.<footer>Ann</footer></blockquote>") == ["So.\n\nAnn"]
    cited = "<blockquote><p>So.</p><cite>Ann</cite></blockquote>"
    assert texts(cited) == ["So.\n\u2014 Ann"]


def test_kinds_of_chunks() -> None:
    markup = (
        "<h1>H</h1><p>P</p><ol><li>1</li><li>2</li></ol><pre>c</pre>"
        "<blockquote>q</blockquote><table><tr><td>a<td>b<tr><td>c<td>d</table>"
        "<a href='https://a.b/'>link</a><img src='https://a.b/i.png' alt='i'>"
    )
    found = [(each.type.value, each.text) for each in chunks_of(Text(value=markup))]
    assert found == [
        ("heading", "H"),
        ("paragraph", "P"),
        ("list", "- 1\n- 2"),
        ("code", "c"),
        ("quote", "q"),
        ("paragraph", "a | b\nc | d"),
        ("paragraph", "link"),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (Text(value="One\n\nTwo", type="text"), ["One", "Two"]),
        (Text(value="One", type="text/plain"), ["One"]),
        (Text(value="aGk=", type="application/pdf"), []),
        (None, []),
    ],
)
def test_texts_of_other_types(text: Text | None, found: list[str]) -> None:
    assert [each.text for each in chunks_of(text)] == found


def test_no_more_chunks_than_can_be_asked_for_and_nothing_is_lost() -> None:
    markup = "".join(f"<h2>H{n}</h2><p>P{n}</p>" for n in range(70))
    found = chunks_of(Text(value=markup))
    assert len(found) <= MOST_CHUNKS
    joined = "\n\n".join(each.text for each in found)
    assert joined.split("\n\n") == [f"{kind}{n}" for n in range(70) for kind in "HP"]
    assert {each.type.value for each in found} == {"paragraph"}
    items = "".join(f"<pre>{n}</pre>" for n in range(60))
    assert {each.type.value for each in chunks_of(Text(value=items))} == {"code"}


def test_ids_stay_while_others_come_and_go() -> None:
    before = chunks_of(Text(value="<p>a</p><p>b</p><p>a</p>"))
    after = chunks_of(Text(value="<p>new</p><p>a</p><p>b</p><p>a</p>"))
    assert len({each.id for each in before}) == 3
    assert after[1:] == before


def test_a_page_without_content_has_what_it_is_given() -> None:
    (only,) = chunks_of_words("A title")
    assert (only.type.value, only.text) == ("paragraph", "A title")
    assert chunks_of_words("") == ()


def test_long_lines_are_never_boilerplate() -> None:
    assert is_boilerplate("Share this!")
    assert not is_boilerplate("share this " * 60)


@given(st.text(st.sampled_from("<>/ &;adivnpshrec='\"#lu\0")))
def test_any_markup_gives_chunks_with_words(markup: str) -> None:
    found = chunks_of(Text(value=markup))
    assert all(each.text.strip() and each.id for each in found)
    assert len({each.id for each in found}) == len(found) <= MOST_CHUNKS
