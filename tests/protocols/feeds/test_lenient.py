from __future__ import annotations

from collections.abc import Callable

import feedparser
import pytest

from protocols.feeds import lenient
from protocols.feeds.document import DocumentKind, OpenedDocument
from protocols.feeds.feedparsing import read_with_feedparser
from protocols.feeds.lenient import parse_leniently
from protocols.model import FeedFormat, ParsedFeed, Text
from protocols.protocol_errors import LimitExceeded, MalformedDocument, NotAFeed
from tests.support.documents import CONTEXT, atom, rss

ONE, TWO = "<item><guid>1</guid></item>", "<item><guid>2</guid></item>"


def test_a_sound_document_is_read_strictly() -> None:
    assert parse_leniently(rss(ONE), CONTEXT).path == "strict"


def test_recovery_counts_if_it_loses_no_entry() -> None:
    parsed = parse_leniently(rss("<b>x</i>" + ONE + TWO), CONTEXT)
    assert parsed.path == "recovered"
    assert [entry.id for entry in parsed.entries] == ["1", "2"]
    assert parsed.problems[0].startswith("line 1: ")


@pytest.mark.parametrize(
    "items",
    [
        "<ttl>60<ttl>" + ONE + TWO,
        "<image><url>x</image>" + ONE + TWO,
        "<item><guid>1</guid><title>A</title>" + TWO,
        "<item><guid>1</guid><description><p>A</description>" + TWO,
        ONE + "<item><guid>2</guid><description>",
    ],
    ids=["a field", "a group", "an entry", "markup", "the last entry"],
)
def test_what_is_never_closed_swallows_no_entry(items: str) -> None:
    closed = rss(items + "<item><guid>3</guid></item>")
    parsed = parse_leniently(closed, CONTEXT)
    assert parsed.path.endswith("recovered")
    assert [entry.id for entry in parsed.entries] == ["1", "2", "3"]


def test_recovery_keeps_what_is_escaped_behind_the_first_error() -> None:
    entry = (
        "<item><title>Q &amp; A</title><link>https://a.example/?a=1&amp;b=2</link>"
        "<description>&lt;p title=&quot;&apos;&quot;&gt;x&lt;/p&gt;"
        "<!-- &lt; --></description>"
        "<category><![CDATA[R&amp;amp;D &lt;]]></category></item>"
    )
    parsed = parse_leniently(rss("<b>x</i>" + entry), CONTEXT)
    assert parsed.path == "recovered"
    [read] = parsed.entries
    assert (read.title, read.id) == ("Q & A", "https://a.example/?a=1&b=2")
    assert read.summary == Text(value='<p title="\'">x</p>', type="html")
    sound = parse_leniently(rss(entry), CONTEXT)
    assert (sound.path, sound.entries) == ("strict", parsed.entries)


def test_only_entries_of_the_same_kind_are_put_back() -> None:
    foreign = "<ttl>60<ttl>" + ONE + "<x:item xmlns:x='urn:x'/>" + TWO
    parsed = parse_leniently(rss(foreign), CONTEXT)
    assert [entry.id for entry in parsed.entries] == ["1", "2"]


def test_a_recovered_entry_document_is_one_entry() -> None:
    body = atom("").replace(b"feed", b"entry")
    body = body.replace(b"></", b"><id>1</id><title>A & </i></title></")
    parsed = parse_leniently(body, CONTEXT)
    assert (parsed.path, len(parsed.entries)) == ("entities+recovered", 1)


def test_unknown_references_are_dropped_in_recovery() -> None:
    body = rss("<![CDATA[]]><b>x</i>" + ONE + "<x y='<&foo;'/>&bar;" + TWO)
    parsed = parse_leniently(body.replace(b"&amp;", b"&"), CONTEXT)
    assert [entry.id for entry in parsed.entries] == ["1", "2"]


def test_a_recovered_name_that_is_none_leads_to_feedparser() -> None:
    body = b"<rss xmlns='http://own.example/'><channel><title>T</title><a:>x</a:>"
    parsed = parse_leniently(body + ONE.encode() + b"</channel></rss>", CONTEXT)
    assert parsed.path.endswith("feedparser")
    assert [entry.id for entry in parsed.entries] == ["1"]


def test_entries_in_comments_and_cdata_do_not_count() -> None:
    decoys = "<!-- <item> --><description><![CDATA[<item><item>]]></description>"
    assert parse_leniently(rss(decoys + ONE + "</b>"), CONTEXT).path == "recovered"


def test_feedparser_reads_what_recovery_loses_entries_of() -> None:
    parsed = parse_leniently(rss(ONE + "<x y='<item>'/>" + TWO), CONTEXT)
    assert parsed.path == "feedparser"
    assert [entry.id for entry in parsed.entries] == ["1", "2"]


DATED = "<pubDate>Sat, 11 Jan 2020 10:00:00 GMT</pubDate>"


@pytest.mark.parametrize(
    "item",
    [
        f"<guid isPermaLink=false>1</guid><title>A</title><link>/1</link>{DATED}",
        f"<guid>1</guid><title>A</title></b><link>/1</link>{DATED}",
        f"<guid x=”y”>1</guid><title>A</title><link>/1</link>{DATED}",
    ],
    ids=["an attribute without quotes", "a stray end tag", "typographic quotes"],
)
def test_feedparser_reads_what_recovery_loses_parts_of(item: str) -> None:
    parsed = parse_leniently(rss(f"<item>{item}</item>" + TWO), CONTEXT)
    first, second = parsed.entries
    assert parsed.path.endswith("feedparser")
    assert (first.id, first.title, second.id) == ("1", "A", "2")
    assert first.links[0].href == "https://site.example/1"
    assert first.published is not None


CROSSED = "<item><guid>1</guid></b><title>A</title></item>" + TWO


def _feedparser_finds_nothing(*_: object) -> None:
    return None


def _feedparser_fails(*_: object) -> None:
    raise MalformedDocument("feedparser failed: RecursionError")


@pytest.mark.parametrize("read", [_feedparser_finds_nothing, _feedparser_fails])
def test_recovery_counts_if_feedparser_is_no_better(
    read: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lenient, "read_with_feedparser", read)
    parsed = parse_leniently(rss(CROSSED), CONTEXT)
    assert parsed.path == "recovered"
    assert [entry.id for entry in parsed.entries] == ["1", "2"]


@pytest.mark.parametrize("text", ["x" * 2_000_000, "&lt;<b/>" * 50_000])
def test_feedparser_reads_no_large_document_for_a_part_of_an_entry(text: str) -> None:
    large = f"<item><guid>3</guid><description>{text}</description></item>"
    assert parse_leniently(rss(CROSSED + large), CONTEXT).path == "recovered"


def test_parts_of_an_entry_that_was_cut_off_are_not_missed() -> None:
    whole = rss(ONE + "<item><guid>2</guid><link").partition(b"</channel>")[0]
    parsed = parse_leniently(whole, CONTEXT)
    assert parsed.path == "recovered"
    assert [entry.id for entry in parsed.entries] == ["1"]


def test_the_strict_parser_says_why_if_feedparser_fails_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lenient, "read_with_feedparser", _feedparser_fails)
    with pytest.raises(MalformedDocument, match=r"^line 1: .*'<' not allowed"):
        parse_leniently(rss(ONE + "<x y='<item>'/>" + TWO), CONTEXT)


@pytest.mark.parametrize("cut", ["<item><guid>2</gu", "<item><guid>2</guid>", "<item"])
def test_an_entry_that_was_cut_off_is_left_out(cut: str) -> None:
    whole = rss(ONE + cut).partition(b"</channel>")[0]
    parsed = parse_leniently(whole, CONTEXT)
    assert [entry.id for entry in parsed.entries] == ["1"]


def test_a_document_cut_off_in_its_first_entry_is_malformed() -> None:
    with pytest.raises(MalformedDocument, match="Premature end"):
        parse_leniently(b"<rss><channel><item><guid>1</guid>", CONTEXT)


def test_recovery_does_not_make_a_feed_of_other_xml() -> None:
    with pytest.raises(NotAFeed):
        parse_leniently(b"<other><b></other>", CONTEXT)


def _read(body: bytes) -> ParsedFeed | None:
    return read_with_feedparser(
        OpenedDocument(kind=DocumentKind.XML, body=body), CONTEXT
    )


def test_feedparser_fills_the_same_model() -> None:
    body = rss(
        "<item><guid isPermaLink='false'>1</guid><title>A &amp; B</title>"
        "<link>/1</link><pubDate>Sat, 11 Jan 2020 10:00:00 GMT</pubDate>"
        "<author>jo@a.com (Jo)</author><category domain='d'>c</category>"
        "<description>Summary</description>"
        "<content:encoded>Content</content:encoded>"
        "<enclosure url='/1.mp3' length='3' type='audio/mpeg'/></item>",
        head="<title>T</title><link>/</link><language>en</language><x>"
        "<description>S</description><copyright>C</copyright>",
    )
    parsed = _read(body)
    strict = parse_leniently(body.replace(b"<x>", b""), CONTEXT)
    assert parsed is not None
    for name in ("title", "subtitle", "language", "rights"):
        assert getattr(parsed.feed, name) == getattr(strict.feed, name)
    [entry] = parsed.entries
    [expected] = strict.entries
    for name in ("key", "id", "title", "summary", "content", "published", "links"):
        assert getattr(entry, name) == getattr(expected, name), name
    assert entry.categories == expected.categories
    assert entry.authors == expected.authors


@pytest.mark.parametrize(
    ("body", "format"),
    [
        (rss(ONE), FeedFormat.RSS),
        (atom("<entry><id>1</id></entry>"), FeedFormat.ATOM),
        (
            b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
            b' xmlns="http://purl.org/rss/1.0/"><item rdf:about="1"/></rdf:RDF>',
            FeedFormat.RDF,
        ),
    ],
)
def test_feedparser_tells_the_format(body: bytes, format: FeedFormat) -> None:
    parsed = _read(body)
    assert parsed is not None
    assert parsed.format == format
    assert parsed.entries[0].id == "1"


def test_what_feedparser_takes_for_no_feed_is_none() -> None:
    assert _read(b"<other/>") is None


def test_atom_contents_keep_their_types() -> None:
    body = atom(
        "<entry><id>1</id><content/><content type='text'>t</content></entry>"
        "<entry><id>2</id><content type='html'>h</content><summary>h</summary>"
        "<author/><link/></entry>"
    )
    parsed = _read(body)
    assert parsed is not None
    contents = [entry.content for entry in parsed.entries]
    assert contents == [Text(value="t", type="text"), Text(value="h", type="html")]
    assert parsed.entries[1].summary is None


def test_a_failure_of_feedparser_is_a_malformed_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr(feedparser, "parse", fail)
    with pytest.raises(MalformedDocument, match="feedparser failed: RecursionError"):
        _read(b"<rss/>")


def test_json_in_another_encoding_is_read() -> None:
    json = '{"version": "https://jsonfeed.org/version/1.1",\n"title": "Köln"}'
    parsed = parse_leniently(json.encode("cp1252"), CONTEXT)
    assert (parsed.feed.title, parsed.path) == ("Köln", "bytes")
    assert parsed.problems[0].startswith("line 2: ")


def test_json_that_is_none_in_any_encoding_is_malformed() -> None:
    with pytest.raises(MalformedDocument, match="line 1: not JSON: unexpected end"):
        parse_leniently('{"title": "Köln"'.encode("cp1252"), CONTEXT)


def test_a_limit_holds_in_recovery_too() -> None:
    with pytest.raises(LimitExceeded):
        parse_leniently(b"<rss><b></i>" + b"<a>" * 1000, CONTEXT)


# --- where a document ends ---

RDF_HEAD = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    ' xmlns="http://purl.org/rss/1.0/"><channel rdf:about="https://a.example/">'
    "<title>F</title></channel>"
)
RDF_ITEMS = "".join(
    f'<item rdf:about="https://a.example/{n}"><title>{n}</title></item>' for n in (1, 2)
)
CUT_OFF = '<item rdf:about="https://a.example/3"><title>Thr'
QUOTING = "<description><![CDATA[ends with </channel></rss>]]></description>"
SAYING = "<description>ends with </channel></rss> and</description>"


@pytest.mark.parametrize(
    ("body", "titles"),
    [
        (RDF_HEAD + RDF_ITEMS + CUT_OFF, ["1", "2"]),
        (RDF_HEAD + RDF_ITEMS, ["1", "2"]),
        (
            (RDF_HEAD + RDF_ITEMS + CUT_OFF)
            .replace("rdf:", "r:")
            .replace(":rdf", ":r"),
            ["1", "2"],
        ),
        (
            (RDF_HEAD.replace(">F<", ">R & B<") + RDF_ITEMS + "</rdf:RDF><i>")
            .replace("rdf:", "r:")
            .replace(":rdf", ":r"),
            ["1", "2"],
        ),
        (
            "<rss><channel><title>F & G</title></channel><item><title>1</title></item>"
            "<item><title>2</title></item></rss>",
            ["1", "2"],
        ),
        (
            "<rss><channel><title>F</title></channel><item><title>1</title></item>"
            "<item><title>2</title></item><item><title>",
            ["1", "2"],
        ),
        (
            f"<rss><channel><item><title>1</title>{QUOTING}</item>"
            "<item><title>2</title></item><item><tit",
            ["1", "2"],
        ),
        (
            f"<rss><channel><item><title>1 & 1</title>{QUOTING}</item>"
            "<item><title>2</title></item></channel></rss><script>x</script>",
            ["1 & 1", "2"],
        ),
        (
            f"<rss><channel><item><title>1</title>{SAYING}</item>"
            "<item><title>2</title></item></channel></rss>",
            ["1", "2"],
        ),
        (
            '<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:entry><a:title>1 & 1'
            "</a:title></a:entry></a:feed><!-- 0.1 s --><script>x</script>",
            ["1 & 1"],
        ),
    ],
    ids=[
        *("cut off RDF", "RDF without an end", "another prefix", "a complete prefix"),
        *("items behind the channel", "cut off behind the channel"),
        *("a quoted end", "a quoted end and a trailer", "a written end", "Atom"),
    ],
)
def test_nothing_that_holds_entries_is_taken_for_what_follows_the_document(
    body: str, titles: list[str]
) -> None:
    parsed = parse_leniently(body.encode(), CONTEXT)
    assert [entry.title for entry in parsed.entries] == titles
