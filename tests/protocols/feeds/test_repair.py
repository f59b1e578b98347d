from __future__ import annotations

import pytest

from protocols.feeds import parse
from protocols.feeds.document import DocumentKind, OpenedDocument
from protocols.feeds.repair import repair
from protocols.protocol_errors import MalformedDocument, NotAFeed
from tests.support.documents import CONTEXT, rss


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
