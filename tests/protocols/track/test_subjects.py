"""What of an entry track queries see."""

from __future__ import annotations

import pytest

from protocols.model import Category, Entry, Feed, Link, Text
from protocols.track import Subject, parse_query, subject_of
from protocols.track.subject import MOST_LINKS, MOST_TEXT
from protocols.track.words import (
    MOST_CHARACTERS,
    MOST_MARKUP,
    spoken_text,
    words_of,
)

FEED = Feed(links=(Link(href="https://www.blog.example/"),), language="en-GB")


def subject(
    entry: Entry, feed: Feed = FEED, *, popularity: float = 0.0, **ranks: float
) -> Subject:
    return subject_of(
        entry,
        feed,
        feed_url="https://feeds.host.example/blog.xml",
        popularity=popularity,
        **ranks,
    )


def entry(title: str = "", content: str = "", *links: Link, **more: object) -> Entry:
    text = Text(value=content) if content else None
    return Entry(key="k", id="k", title=title, content=text, links=links, **more)  # type: ignore[arg-type]


def matches(query: str, what: Subject) -> bool:
    return parse_query(query).matches(what)


@pytest.mark.parametrize(
    ("query", "is_match"),
    [
        ("apple", True),
        ("APPLE", True),
        ('"Apple"', True),
        ('"apple"', False),
        ('"Apple pie"', True),
        ("apple-pie", True),
        ('"pie Apple"', False),
        ("pie apple", True),
        ("app", False),
        ("bread", True),
        ("bold", True),
        ("caf\u00e9", True),
        ("cafe\u0301", True),
        ("straße", True),
        ("STRASSE", True),
        ("news", True),
        ("summary", True),
        ('"pie Summary"', False),  # no phrase reaches from the title into the text
        ("hidden", False),
        ("styled", False),
        ("remark", False),
        ("href", False),
        ("京都", True),
        ("京東", False),
    ],
)
def test_words_are_looked_for_in_title_summary_content_and_categories(
    query: str, is_match: bool
) -> None:
    what = entry(
        "Apple pie",
        "<p>bread</p><p>b<b>ol</b>d Café Straße 東京都</p><!-- remark -->"
        "<script>hidden()</script><style>.styled{}</style>東京都 京都",
        categories=(Category(term="t1", label="News"),),
        summary=Text(value="Summary", type="text"),
    )
    assert matches(query, subject(what)) is is_match


@pytest.mark.parametrize(
    ("site", "is_match"),
    [
        ("blog.example", True),
        ("example", True),
        ("www.blog.example", True),
        ("og.example", False),
        ("host.example", True),  # where the feed itself is
        ("author.example", True),  # where the entry is
        ("origin.example", True),  # and where it came from
        ("other.example", False),
    ],
)
def test_a_site_is_the_publishers_host_or_one_above_it(
    site: str, is_match: bool
) -> None:
    what = entry(
        "bread",
        '<a href="https://other.example/">x</a>',
        Link(href="https://author.example/1"),
        source=Feed(links=(Link(href="https://origin.example/"),)),
    )
    assert matches(f"site:{site}", subject(what)) is is_match
    assert matches(f"-site:{site} bread", subject(what)) is not is_match


@pytest.mark.parametrize(
    ("link", "is_match"),
    [
        ("there.example", True),
        ("example", True),
        ("there.example/page", True),
        ("http://www.there.example/page/?other=1", True),
        ("there.example/", False),
        ("there.example/pag", False),
        ("root.example/", True),
        ("https://root.example", True),
        ("file.example/a.mp3", True),
        ("linked.example", True),
        ("single.example/q", True),
        ("bare.example/b", True),
        ("own.blog.example", False),  # its own page
    ],
)
def test_links_are_found_to_pages_and_hosts(link: str, is_match: bool) -> None:
    what = entry(
        "",
        '<a class=x href="https://www.there.example/page?utm_source=a#b">x</a>'
        "<a href='http://single.example:8080/q'>q</a><a href=//x>r</a>"
        "<a href=https://bare.example/b>b</a><a href='https://root.example'>r</a>",
        Link(href="https://blog.example/own"),
        Link(href="https://linked.example/story"),  # a link blog's
        Link(href="https://user@file.example/a.mp3", rel="enclosure"),
        Link(href="mailto:a@mail.example", rel="related"),
    )
    assert matches(f"link:{link}", subject(what)) is is_match


@pytest.mark.parametrize(
    ("language", "query", "is_match"),
    [
        ("de", "language:de", True),
        ("de-AT", "language:de", True),
        ("de_AT", "x -language:en", True),
        ("de", "x -language:de", False),
        ("", "language:en", True),  # the feed's
        ("deu", "language:de", False),
    ],
)
def test_the_language_is_the_entrys_or_else_the_feeds(
    language: str, query: str, is_match: bool
) -> None:
    assert matches(query, subject(entry("x", language=language))) is is_match


@pytest.mark.parametrize("query", ["x language:en", "x -language:en"])
def test_where_the_language_is_not_known_neither_it_nor_its_negation_matches(
    query: str,
) -> None:
    assert not matches(query, subject(entry("x"), Feed()))


@pytest.mark.parametrize(
    ("query", "is_match"),
    [
        ("x popularity:>2", True),
        ("x popularity:>=3", True),
        ("x popularity:>3", False),
        ("x popularity:<3", False),
        ("x popularity:<=3", True),
    ],
)
def test_popularity_is_compared(query: str, is_match: bool) -> None:
    assert matches(query, subject(entry("x"), popularity=3.0)) is is_match


@pytest.mark.parametrize(
    ("ranks", "query", "is_match"),
    [
        ({"porn_rank": 0.2}, "x", True),
        ({"porn_rank": 0.21}, "x", False),
        ({"porn_rank": 0.9}, "x porn:ok", True),
        ({"bozo_rank": 0.3}, "x", True),
        ({"bozo_rank": 0.31}, "x", False),
        ({"bozo_rank": 0.9}, "x bozo:ok", True),
        ({"bozo_rank": 0.9, "porn_rank": 0.9}, "x bozo:ok", False),
    ],
)
def test_feeds_of_ill_repute_are_left_out_unless_the_query_takes_them(
    ranks: dict[str, float], query: str, is_match: bool
) -> None:
    assert matches(query, subject(entry("x"), **ranks)) is is_match


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("plain &amp; simple", ["plain", "simple"]),
        ("<p>one</p><p>two</p>", ["one", "two"]),
        ("<em>o</em>ne", ["one"]),
        ("a<br>b", ["a", "b"]),
        ("a <!-- b", ["a"]),
        ("a <SCRIPT>b</script >c", ["a", "c"]),
        ("1 < 2", ["1", "2"]),
    ],
)
def test_what_is_read_aloud_is_searched(markup: str, words: list[str]) -> None:
    assert words_of(spoken_text(markup)) == words


# --- entries of any length ---

NINE_MILLION = 9_000_000


@pytest.mark.parametrize(
    "content",
    [
        "<p>romeo loves juliet.</p>\n" * 340_000,
        "wherefore art thou " * 470_000,
        "x" * NINE_MILLION,
        "\u4e2d" * (NINE_MILLION // 3),
        "\ufdfa" * (NINE_MILLION // 3),
        "&amp;" * (NINE_MILLION // 5),
        "<" * NINE_MILLION,
    ],
)
def test_of_an_entry_64_KiB_of_folded_text_are_searched(content: str) -> None:
    found = subject(entry("A title", content))
    for text in (found.text, " ".join(sorted(found.words))):
        assert len(" ".join(text.split()).encode()) <= MOST_TEXT
    assert matches("title", found)


def test_a_plain_text_is_cut_as_markup_is() -> None:
    text = Text(value="word " * 100_000 + "last", type="text")
    found = subject(Entry(key="k", id="k", summary=text))
    assert matches("word", found)
    assert not matches("last", found)


def test_titles_and_categories_come_before_a_content_that_takes_all_room() -> None:
    long = entry("A title", "word " * 100_000, categories=(Category(term="opera"),))
    assert matches("opera title word", subject(long))


def test_text_is_found_behind_a_picture_of_millions_of_bytes() -> None:
    picture = f'<img src="data:image/png;base64,{"A" * 3_000_000}">'
    script = f"<script>{'var a; ' * 500_000}</script>"
    found = spoken_text(f"<p>before</p>{picture}{script}<p>behind</p>")
    assert found.split() == ["before", "behind"]


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ("<!--" + "x" * 200_000 + "--> seen", ["seen"]),
        ("<!--" + "x" * 200_000, []),
        ("seen <style>" + "x" * 200_000, ["seen"]),
        ("<i " + "x" * 200_000, []),
        ("< " * 70_000 + "seen", ["<"] * 65_536),
        ("<b>" * (MOST_MARKUP // 3 + 40_000) + "<p>unseen</p>", []),
    ],
)
def test_markup_is_read_piece_by_piece(markup: str, words: list[str]) -> None:
    found = spoken_text(markup).split()
    assert found[: len(words)] == words[: len(found)]
    assert "unseen" not in found
    assert ("seen" in found) is ("seen" in words)


def test_what_is_short_is_read_whole_however_it_is_cut() -> None:
    words = [f"word{number}" for number in range(MOST_CHARACTERS // 12)]
    markup = "".join(f"<p><b>{word[0]}</b>{word[1:]}</p>" for word in words)
    assert len(markup) > 64 * 1024
    assert spoken_text(markup).split() == words


def test_a_thousand_links_of_a_text_are_looked_at() -> None:
    links = "".join(
        f'<a href="https://host{number}.example/">.</a>' for number in range(2_000)
    )
    found = subject(entry("", links))
    assert "host999.example" in found.links
    assert f"host{MOST_LINKS}.example" not in found.links
