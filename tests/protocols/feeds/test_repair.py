"""What is begun and never ended, and other faults, cost no more than themselves."""

from __future__ import annotations

import re

import pytest

from protocols.feeds import parse
from protocols.feeds.document import DocumentKind, OpenedDocument
from protocols.feeds.lenient import parse_leniently
from protocols.feeds.repair import close_texts, end_opaque, repair
from protocols.model import Entry
from protocols.protocol_errors import MalformedDocument, NotAFeed
from tests.support.documents import CONTEXT, atom, rss

DATE = "<pubDate>Sat, 11 Jan 2020 10:00:00 GMT</pubDate>"
ONE = (
    "<item><guid isPermaLink='false'>1</guid><title>A</title><link>/1</link>"
    f"<description>Text</description>{DATE}</item>"
)
TWO = ONE.replace("1</guid>", "2</guid>").replace("/1", "/2").replace("A<", "B<")


def facts(entry: Entry) -> tuple[object, ...]:
    """All by which an entry is known."""
    links = [link.href for link in entry.links]
    return entry.key, entry.title, links, entry.published, entry.summary


WHOLE = [facts(entry) for entry in parse(rss(ONE + TWO), CONTEXT).entries]


@pytest.mark.parametrize("name", ["guid", "title", "link", "description", "pubDate"])
@pytest.mark.parametrize("instead", ["", "\n", "<{0}>", "</x>"])
def test_a_field_without_its_end_tag_loses_nothing(name: str, instead: str) -> None:
    broken = ONE.replace(f"</{name}>", instead.format(name))
    parsed = parse(rss(broken + TWO), CONTEXT)
    assert parsed.path == "tags"
    assert [facts(entry) for entry in parsed.entries] == WHOLE


def test_atom_is_mended_as_well() -> None:
    entries = (
        '<entry><id>1<title>A<link href="/1"><updated>2020-01-11</updated></entry>'
        '<entry><id>2</id><title>B<link href="/2"/><updated>2020-01-11</entry>'
    )
    parsed = parse(atom(entries), CONTEXT)
    assert [(each.id, each.title) for each in parsed.entries] == [
        ("1", "A"),
        ("2", "B"),
    ]
    assert all(each.updated and each.links for each in parsed.entries)


@pytest.mark.parametrize(
    "text",
    [
        "<item><title>The <link> tag</title><link/><guid></guid></item>",
        "<item><title><![CDATA[a <link> b]]></title><!-- <title> --></item>",
        "<item><description><p>a<title>b</description></item>",
        "<item><title>cut o",
        "<enclosure url='x'/><item/>",
    ],
)
def test_what_has_an_end_tag_is_left_alone(text: str) -> None:
    assert close_texts(text) == text


def test_an_end_tag_of_markup_inside_is_not_taken_for_the_missing_one() -> None:
    broken = "<item><description><p>a</p><guid>1</guid></item>"
    assert "<p>a</p></description><guid>" in close_texts(broken)


@pytest.mark.parametrize("section", ["<![CDATA[A", "<![CDATA[A]", "<![CDATA[A]]"])
def test_a_section_without_an_end_ends_with_its_element(section: str) -> None:
    broken = ONE.replace("<title>A", f"<title>{section}")
    parsed = parse(rss(broken + TWO), CONTEXT)
    assert parsed.path == "sections"
    assert [facts(entry) for entry in parsed.entries] == WHOLE


@pytest.mark.parametrize("comment", ["<!-- c >", "<!-- c -- >", "<!--\n"])
def test_a_comment_without_an_end_hides_nothing(comment: str) -> None:
    parsed = parse_leniently(rss(comment + ONE + TWO), CONTEXT)
    assert parsed.path.startswith("sections")
    assert [facts(entry) for entry in parsed.entries] == WHOLE


@pytest.mark.parametrize(
    "text",
    [
        "<item><title><![CDATA[cut o",
        "text <![CDATA[cut </title>",
        "<item/><!-- the rest",
        "<!-- whole --><![CDATA[ whole ]]>",
    ],
)
def test_what_cannot_be_ended_is_left_alone(text: str) -> None:
    assert end_opaque(text) == text


def test_a_hundred_thousand_things_without_an_end_are_bounded_work() -> None:
    comments = "<!-- <item>" * 100_000
    assert len(comments) - 200 < len(end_opaque(comments)) < len(comments)
    texts = "<title><description><guid>" * 100_000
    assert close_texts(texts).count("</title>") == 100_000


def test_a_declaration_in_an_entry_is_dropped() -> None:
    inside = ONE.replace("Text", "<?xml version='1.0'?>Text<![CDATA[<?xml ?>]]>")
    parsed = parse(rss(inside + TWO), CONTEXT)
    summary = parsed.entries[0].summary
    assert (parsed.path, len(parsed.entries)) == ("declaration", 2)
    assert summary is not None
    assert summary.value == "Text<?xml ?>"


@pytest.mark.parametrize("root", ["rss", "RSS"])
def test_a_declaration_in_a_text_is_no_beginning(root: str) -> None:
    inside = ONE.replace("Text", "<![CDATA[<?xml version='1.0'?>]]>")
    body = rss(inside + TWO).replace(b"rss", root.encode())
    assert parse(body, CONTEXT).path == "strict"


CAPITALS = re.compile(rb"(?<=[</])[a-zA-Z]+(?=[\s>])|isPermaLink|url(?==)")


@pytest.mark.parametrize("change", [bytes.upper, bytes.title, bytes.lower])
def test_names_in_capitals_are_read_as_the_usual_ones(change: object) -> None:
    assert callable(change)
    usual = rss(ONE + TWO + "<item><enclosure url='/3'/></item>")
    written = CAPITALS.sub(lambda match: change(match[0]), usual)
    parsed, expected = parse(written, CONTEXT), parse(usual, CONTEXT)
    assert list(map(facts, parsed.entries)) == list(map(facts, expected.entries))
    assert parsed.feed == expected.feed
    is_small = change is bytes.lower
    assert parsed.path == ("strict" if is_small else "names")
    assert bool(parsed.problems) is not is_small


def test_a_field_in_capitals_is_no_extension() -> None:
    item = ONE.replace("title>", "Title>").replace("pubDate>", "PubDate>")
    media = '<m:Thumbnail xmlns:m="http://search.yahoo.com/mrss/" url="/t.png"/>'
    parsed = parse(rss(item.replace("</item>", f"{media}</item>") + TWO), CONTEXT)
    entry = parsed.entries[0]
    assert (entry.title, entry.published) == (WHOLE[0][1], WHOLE[0][3])
    assert [link.rel for link in entry.links] == ["alternate", "thumbnail"]
    assert parsed.path == "strict"


def test_atom_in_capitals_is_read() -> None:
    parsed = parse(atom("<TITLE>T</TITLE><ENTRY><ID>1</ID></ENTRY>"), CONTEXT)
    assert (parsed.feed.title, parsed.entries[0].id) == ("T", "1")


def test_capitals_in_a_document_that_was_repaired_are_named_last() -> None:
    body = rss(ONE).upper().replace(b"TEXT", b"R & B")
    assert parse(body, CONTEXT).path == "entities+names"


@pytest.mark.parametrize(
    ("body", "path", "title"),
    [
        (b"\n <?xml version='1.0'?>" + rss(), "trimmed", "Feed"),
        (b"Notice: x in y.php\n<?xml version='1.0'?>" + rss(), "trimmed", "Feed"),
        (b"<!-- c --><?xml version='1.0'?>" + rss(), "trimmed", "Feed"),
        (b"<br />\n<b>Warning</b>: x<br />\n" + rss(), "trimmed", "Feed"),
        (b"Warning" + rss(), "trimmed", "Feed"),
        (b"\n" + rss(), "strict", "Feed"),
        (rss(head="<title>a\x0bb</title>"), "characters", "ab"),
        (rss(head="<title>R & B</title>"), "entities", "R & B"),
        (
            rss(head="<title>&eacute;&hellip;&amp;&#65;&#x42;</title>"),
            "entities",
            "é…&AB",
        ),
        (rss(head="<title>&NotEqualTilde;</title>"), "entities", "≂̸"),
        (rss(head="<title>&unknown;</title>"), "entities", "&unknown;"),
        (rss(head="<title>a&#0;&#xFFFF;&#x110000;b&#9;c</title>"), "entities", "ab c"),
        (rss(head="<title>a&#xE000;&#x1F600;&</title>"), "entities", "a\ue000😀&"),
        (rss(head="<title><![CDATA[a & b]]> & c</title>"), "entities", "a & b & c"),
        (rss(head="<title>cafe</title>").replace(b"fe<", b"f\xe9<"), "bytes", "café"),
        (rss(head="<title>&#X41;&#X20AC;</title>"), "entities", "A€"),
        (rss() + b"<script/>", "trailer", "Feed"),
        (rss(head="<title>Feed</title><a:b c:d='1'/>"), "prefixes", "Feed"),
    ],
)
def test_what_is_cheaply_mended_is_mended_and_noted(
    body: bytes, path: str, title: str
) -> None:
    parsed = parse(body, CONTEXT)
    assert (parsed.path, parsed.feed.title) == (path, title)
    assert len(parsed.problems) == (path != "strict")


@pytest.mark.parametrize(
    "declaration",
    [
        "<?xml version='1.0' encoding='437'?>",
        "<?xml version='1.0' encoding=''?>",
        "<?xml version='1.0' encoding='utf-8;'?>",
        "<?xml version='1.0' encoding='utf-8'standalone='yes'?>",
        "<?xml version='1.0' encoding='utf-8'>",
        "<?xml encoding='utf-8' version='1.0'?>",
        "<?xml version='2.0'?>",
        "<?xml version=1.0?>",
        "<?xml version=“1.0”?>",
        r"<?xml version=\"1.0\"?>",
        "<?xml?>",
        "<?XML version='1.0'?>",
        "<? xml version='1.0'?>",
        "<?xml version='1.0'?>\n<?xml version='1.0' encoding='utf-8'?>",
    ],
)
def test_a_declaration_that_is_none_is_dropped(declaration: str) -> None:
    parsed = parse(rss(head="<title>é</title>", prolog=declaration), CONTEXT)
    assert (parsed.path, parsed.feed.title) == ("declaration", "é")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a<br>b<br >c<hr/>", "a<br/>b<br/>c<hr/>"),
        (
            "<img src='//a.example/x' alt='y'>",
            '<img src="https://a.example/x" alt="y"/>',
        ),
        ("<img alt='x'></img><br></br><br>", '<img alt="x"/><br/><br/>'),
        ("a < b<br>", "a &lt; b<br/>"),
        ("1 <2 <", "1 <2 <"),
        ("<img>x</img> <", "<img>x</img> &lt;"),
    ],
)
def test_html_that_was_not_escaped_is_closed(written: str, read: str) -> None:
    item = f"<item><guid>1</guid><description>{written}</description></item>"
    parsed = parse(rss(item), CONTEXT)
    summary = parsed.entries[0].summary
    assert parsed.path == "html"
    assert summary is not None
    assert summary.value == read


def test_white_space_in_the_name_of_a_namespace_is_dropped() -> None:
    link = '<a:link xmlns:a="http://www\n.w3.org/2005/Atom " rel="self" href="/self"/>'
    parsed = parse(rss(head=link), CONTEXT)
    assert parsed.path == "namespaces"
    assert [each.href for each in parsed.feed.links] == ["https://site.example/self"]


def test_a_declaration_a_hundred_thousand_times_is_dropped_at_once() -> None:
    many = "<?xml version='1.0'?>\n" * 100_000
    assert parse(rss(prolog=many), CONTEXT).path == "declaration"


@pytest.mark.parametrize(
    "declaration",
    [
        "<?xml version='1.0'?>",
        '<?xml version = "1.1" encoding="utf-8" standalone="no" ?>',
        "<?xml-stylesheet href='x'?>",
    ],
)
def test_a_sound_declaration_is_not_blamed_for_what_follows(declaration: str) -> None:
    parsed = parse(rss(head="<title>&</title>", prolog=declaration), CONTEXT)
    assert parsed.path == "entities"


def test_a_feed_under_the_document_type_of_html_is_a_feed() -> None:
    assert parse(rss(prolog="<!DOCTYPE html>"), CONTEXT).feed.title == "Feed"


def test_a_nul_in_a_feed_makes_it_no_binary_data() -> None:
    parsed = parse(rss("<item><guid>1</guid><title>a\x00b</title></item>"), CONTEXT)
    assert (parsed.entries[0].title, parsed.path) == ("ab", "characters")


def test_undeclared_prefixes_mean_what_they_usually_mean() -> None:
    parsed = parse(rss("<item><dc:creator>Jo</dc:creator></item>"), CONTEXT)
    assert parsed.entries[0].authors[0].name == "Jo"


def test_a_document_that_nothing_helps_is_left_as_it_is() -> None:
    document = OpenedDocument(kind=DocumentKind.XML, body=b"<rss><channel></rss>")
    assert repair(document) is document
    nameless = OpenedDocument(kind=DocumentKind.XML, body=b" a:b='1'")
    assert repair(nameless) is nameless


def test_comments_and_cdata_are_never_touched() -> None:
    body = b"<a><!-- & --><![CDATA[&nbsp; & ]]>&#65; & <![CDATA[ & unclosed"
    repaired = repair(OpenedDocument(kind=DocumentKind.XML, body=body))
    assert repaired.body == body.replace(b"&#65; & ", b"&#65; &amp; ")


def test_a_repaired_document_may_still_be_malformed() -> None:
    with pytest.raises(MalformedDocument, match="line 1: "):
        parse(b"<rss><channel>& </rss>", CONTEXT)


def test_a_page_with_a_feed_in_it_is_a_page() -> None:
    with pytest.raises(NotAFeed, match="HTML"):
        parse(b"<html><pre>" + rss() + b"</pre></html>", CONTEXT)
