"""Whatever arrives: a feed, or an error of ours that says what is wrong and where."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocols.feeds import parse
from protocols.feeds.document import DocumentKind, OpenedDocument
from protocols.feeds.feedparsing import read_with_feedparser
from protocols.feeds.lenient import parse_leniently
from protocols.feeds.limits import (
    MAX_ATTRIBUTES,
    MAX_BODY_BYTES,
    MAX_DEPTH,
    MAX_ENTRIES,
    MAX_EXTENSION_DEPTH,
    MAX_JSON_DEPTH,
    MAX_MARKUP,
    MAX_TEXT_BYTES,
    check_xml,
)
from protocols.protocol_errors import (
    EmptyDocument,
    FeedError,
    FeedLink,
    LimitExceeded,
    MalformedDocument,
    NotAFeed,
)
from tests.support.creator import a_creator_feed, an_item
from tests.support.documents import CONTEXT, atom, context, rss
from tests.support.golden import DATA, golden_documents


@pytest.mark.parametrize(
    "body", [b"", b" \r\n\t", b"\xef\xbb\xbf", b"\xff\xfe", b"\n\xef\xbb\xbf\n"]
)
def test_nothing_is_an_empty_document(body: bytes) -> None:
    with pytest.raises(EmptyDocument):
        parse(body, CONTEXT)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"\x1f\x8b\x08", "gzip data"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\x01\x02\x00\x03", "binary data"),
        (b"hello", "plain text"),
        (b"12", "plain text"),
        (
            b'<?xml version="1.0"?><opml version="2.0"/>',
            "an OPML list (its root is <opml>)",
        ),
        (
            b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>',
            "a sitemap (its root is <urlset>)",
        ),
        (
            b'<svg xmlns="http://www.w3.org/2000/svg"/>',
            "an SVG image (its root is <svg>)",
        ),
        (b"<other/>", "an XML document (its root is <other>)"),
        (b"<entry/>", "an XML document (its root is <entry>)"),
        (b'{"items": []}', "a JSON document"),
        (b'{"version": 2}', "a JSON document"),
        (b"[1]", "a JSON document"),
    ],
)
def test_something_else_is_named(body: bytes, found: str) -> None:
    with pytest.raises(NotAFeed) as caught:
        parse(body, CONTEXT)
    assert caught.value.found == found


@pytest.mark.parametrize(
    "page",
    [
        "<!DOCTYPE html><title>A page</title>{}",
        "<html><head>{}</head><body>",
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head>{}</head></html>',
        "<!-- old --><HTML>{}",
    ],
)
def test_a_page_names_its_feeds(page: str) -> None:
    link = '<link rel="alternate" type="application/rss+xml" title="All" href="/all"/>'
    with pytest.raises(NotAFeed) as caught:
        parse(page.format(link).encode(), CONTEXT)
    assert caught.value.found == "an HTML page"
    assert caught.value.feeds == (
        FeedLink(
            href="https://site.example/all", title="All", type="application/rss+xml"
        ),
    )


@pytest.mark.parametrize("read", [parse, parse_leniently])
@pytest.mark.parametrize(
    ("body", "line", "cause"),
    [
        (b"<rss>\n<channel>\n</rss>", 3, "channel line 2 and rss"),
        (b"<rss>\n<channel>", 2, "Premature end"),
        (b"<rss", 1, "Couldn't find end of Start Tag rss"),
        (b"<", 1, "invalid element name"),
        (b"<?xml", 1, ""),
        (b"<!DOCTYPE rss [ <!ENTITY", 1, ""),
        (b"<!DOCTYPE rss", 1, ""),
        (
            b'{"version": "https://jsonfeed.org/version/1",\n"items": [',
            2,
            "unexpected end",
        ),
        (b"{", 1, "end"),
    ],
)
def test_a_broken_document_is_refused_with_line_and_cause(
    read: object, body: bytes, line: int, cause: str
) -> None:
    assert callable(read)
    with pytest.raises(MalformedDocument) as caught:
        read(body, CONTEXT)
    assert caught.value.line == line
    assert cause in caught.value.cause


@pytest.mark.parametrize("size", [MAX_MARKUP + 1, 2 * MAX_MARKUP + 1])
def test_a_large_document_of_few_tags_is_read(size: int) -> None:
    text = "x" * size
    json = f'{{"version":"https://jsonfeed.org/version/1.1","title":"{text}"}}'
    assert parse(rss(head=f"<title>{text}</title>"), CONTEXT).feed.title == text
    assert parse(json.encode(), CONTEXT).feed.title == text


@pytest.mark.parametrize("read", [parse, parse_leniently])
@pytest.mark.parametrize(
    ("body", "limit"),
    [
        (b"<rss>" + b"<a>" * 100_000, MAX_DEPTH),
        (b"<a>" * 100_000 + b"</a>" * 100_000, MAX_DEPTH),
        (b"[" * 100_000, MAX_JSON_DEPTH),
        (b'{"a":' * 100_000, MAX_JSON_DEPTH),
        (b"<rss>" + b" " * MAX_BODY_BYTES, MAX_BODY_BYTES),
        (b"<rss>" + b"<a/>" * MAX_MARKUP, MAX_MARKUP),
        (b"<rss " + b'a="" ' * 2_100_000 + b"/>", 2 * MAX_MARKUP),
        (b"<rss>" + b"&" * 2_100_000, 2 * MAX_MARKUP),
        (b"[" + b"1," * 2_100_000 + b"1]", 2 * MAX_MARKUP),
        (rss(f"<item><title>{'x' * 10_100_000}</title></item>"), MAX_TEXT_BYTES),
    ],
    ids=[
        "levels, none closed",
        "levels",
        "levels of JSON lists",
        "levels of JSON objects",
        "bytes",
        "tags",
        "attributes",
        "references",
        "JSON values",
        "bytes of a text",
    ],
)
def test_a_document_beyond_a_limit_is_refused_at_once(
    read: object, body: bytes, limit: int
) -> None:
    assert callable(read)
    began = time.process_time()
    with pytest.raises(LimitExceeded) as caught:
        read(body, CONTEXT)
    assert caught.value.limit == limit
    assert time.process_time() - began < 2


@pytest.mark.parametrize("blanks", [1, 1_000, MAX_MARKUP // 4, MAX_MARKUP])
def test_tags_are_counted_to_the_last_wherever_they_stand(blanks: int) -> None:
    tags, between = b"<" * MAX_MARKUP, b" " * blanks
    for body in (tags + between, between + tags):
        check_xml(body)
        with pytest.raises(LimitExceeded):
            check_xml(body + b"<")


@pytest.mark.parametrize("read", [parse, parse_leniently])
@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"\n\n<rss>\n" + b"<a/>\n" * (MAX_MARKUP + 5), MAX_MARKUP + 3),
        (b"<rss " + b'a=""\n' * (2 * MAX_MARKUP + 5) + b"/>", 2 * MAX_MARKUP + 1),
        (b"<rss>\n" + b"&\n" * (2 * MAX_MARKUP + 5), 2 * MAX_MARKUP + 2),
        (b"\n\n<rss>" + b"\n<a>" * 300, 3 + MAX_DEPTH),
        (rss(f"\n<item>\n<title>{'x' * 10_100_000}</title></item>"), 3),
    ],
    ids=["tags", "attributes", "references", "levels", "bytes of a text"],
)
def test_a_limit_names_the_line_on_which_it_is_exceeded(
    read: object, body: bytes, line: int
) -> None:
    assert callable(read)
    with pytest.raises(LimitExceeded, match=rf"^line {line}: the .* exceeds the limit"):
        read(body, CONTEXT)


@pytest.mark.parametrize("read", [parse, parse_leniently])
def test_an_entity_bomb_is_refused_by_the_name_of_its_entity(read: object) -> None:
    assert callable(read)
    bomb = '<?xml version="1.0"?>\n<!DOCTYPE rss [\n<!ENTITY lol "lol">\n' + "".join(
        f'<!ENTITY lol{n} "{f"&lol{n - 1 or str()};" * 10}">\n' for n in range(1, 10)
    )
    with pytest.raises(MalformedDocument) as caught:
        read(rss(head="<title>&lol9;</title>", prolog=bomb + "]>"), CONTEXT)
    assert str(caught.value) == (
        "line 3: the document type declares an entity of its own: lol"
    )


def test_no_file_is_read_for_an_external_entity(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    prolog = f'<!DOCTYPE rss [<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
    with pytest.raises(MalformedDocument):
        parse_leniently(rss(head="<title>&x;</title>", prolog=prolog), CONTEXT)


def test_no_file_is_read_for_a_document_that_is_its_path(tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(rss("<item><guid>secret</guid></item>"))
    with pytest.raises(NotAFeed):
        parse_leniently(str(path).encode(), CONTEXT)


def test_a_second_document_type_is_refused() -> None:
    prolog = '<!DOCTYPE rss>\n<!DOCTYPE rss [<!ENTITY lol "x">]>'
    with pytest.raises(MalformedDocument, match="line 1: a second document type"):
        parse(rss(prolog=prolog), CONTEXT)


@pytest.mark.parametrize(
    "prolog",
    [
        '<!DOCTYPE rss PUBLIC "-//N//DTD RSS 0.91//EN" "http://n.example/rss.dtd">',
        "<!DOCTYPE rss>",
        '<!DOCTYPE rss [<!ELEMENT rss ANY>\n<!ENTITY nbsp "&#160;">]>',
        '<!DOCTYPE rss [<!ENTITY % latin SYSTEM "http://n.example/x.ent">%latin;]>',
    ],
)
def test_a_harmless_document_type_is_passed_over(prolog: str) -> None:
    body = rss(head="<title>a&nbsp;b</title>", prolog=prolog)
    assert parse(body, CONTEXT).feed.title == "a\u00a0b"


@pytest.mark.parametrize("id", ["a", "1", "a:b", ""])
def test_an_id_of_xml_may_be_there_twice_and_be_no_name(id: str) -> None:
    """Neither makes a document ill-formed (xml:id 1.0, section 5)."""
    content = (
        f'<x:body xmlns:x="http://www.w3.org/1999/xhtml" xml:id="{id}">{{}}</x:body>'
    )
    body = rss(
        "".join(f"<item><guid>{n}</guid>{content.format(n)}</item>" for n in "12")
    )
    parsed = parse(body, CONTEXT)
    assert (parsed.path, len(parsed.entries)) == ("strict", 2)


def test_only_so_many_attributes_of_an_element_are_kept() -> None:
    many = " ".join(f'a{number}="{number}"' for number in range(MAX_ATTRIBUTES + 1))
    parsed = parse(rss(f"<item><guid>1</guid><x {many}/></item>"), CONTEXT)
    [kept] = parsed.entries[0].extensions["rss"].values()
    assert len(kept) == MAX_ATTRIBUTES
    assert parsed.path == "strict"


def _many(format: str) -> bytes:
    """The oldest entry first, and one without a date, of which two are too many."""
    numbers = range(MAX_ENTRIES + 1)
    dates = {
        n: datetime(2020, 1, 1, tzinfo=UTC) + n * timedelta(hours=1) for n in numbers
    }
    if format == "json":
        items = [
            {"id": f"n{n}", "date_published": f"{dates[n]:%Y-%m-%dT%H:%M:%SZ}"}
            for n in numbers
        ]
        feed = {"version": "https://jsonfeed.org/version/1", "items": items}
        return orjson.dumps(feed | {"items": [{"id": "undated"}, *items]})
    if format == "creator":
        posts = [an_item(f"n{n}", publishedAt=dates[n].isoformat()) for n in numbers]
        return orjson.dumps(a_creator_feed(an_item("undated", publishedAt=""), *posts))
    name, date, id, template = {
        "rss": ("item", "pubDate", "guid", rss),
        "atom": ("entry", "updated", "id", atom),
        "rdf": ("item", "dc:date", "guid", _rdf),
    }[format.removesuffix("+feedparser")]
    written = (
        f"<{name}><{id}>n{n}</{id}><{date}>{dates[n].isoformat()}</{date}></{name}>"
        for n in numbers
    )
    return template(f"<{name}><{id}>undated</{id}></{name}>{''.join(written)}")


def _rdf(items: str) -> bytes:
    rdf = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    dc = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
    return f"<rdf:RDF {rdf} {dc}><channel/>{items}</rdf:RDF>".encode()


@pytest.mark.parametrize(
    "format", ["rss", "atom", "rdf", "json", "creator", "rss+feedparser"]
)
def test_of_too_many_entries_the_newest_are_kept_in_their_order(format: str) -> None:
    body = _many(format)
    if format.endswith("feedparser"):
        parsed = read_with_feedparser(
            OpenedDocument(kind=DocumentKind.XML, body=body), CONTEXT
        )
        assert parsed is not None
    else:
        parsed = parse(body, CONTEXT)
    ids = [entry.key.rpartition("/")[2] for entry in parsed.entries]
    assert ids == [f"n{n}" for n in range(1, MAX_ENTRIES + 1)]
    assert parsed.dropped == 2
    assert "only the newest 5000 are kept" in parsed.problems[0]


def test_of_too_many_entries_without_dates_the_first_are_kept() -> None:
    items = "".join(f"<item><guid>{n}</guid></item>" for n in range(MAX_ENTRIES + 1))
    parsed = parse(rss(items), CONTEXT)
    assert [parsed.entries[0].id, parsed.entries[-1].id] == ["0", "4999"]


def test_deep_extensions_are_kept_to_a_depth() -> None:
    deep = "<x>" * 200 + "</x>" * 200
    parsed = parse(rss(f"<item><y a='1'>{deep}</y></item>"), CONTEXT)
    assert str(parsed.entries[0].extensions).count("{") <= MAX_EXTENSION_DEPTH + 2
    json = '{"version":"https://jsonfeed.org/version/1","items":[],"_x":%s}'
    parsed = parse((json % ("[" * 200 + "]" * 200)).encode(), CONTEXT)
    assert str(parsed.feed.extensions).count("[") == MAX_EXTENSION_DEPTH


def _is_understood(body: bytes) -> bool:
    """Anything but a `FeedError` ends the test."""
    for read in (parse, parse_leniently):
        try:
            parsed = read(body, CONTEXT)
        except FeedError as error:
            problem = str(error)
        else:
            problem = f"{parsed.format}: {parsed.problems}"
        assert problem
    return True


@given(st.binary(max_size=300))
def test_any_bytes_are_a_feed_or_an_error_of_ours(body: bytes) -> None:
    assert _is_understood(body)


@pytest.mark.parametrize(
    "document", golden_documents(), ids=lambda path: str(path.relative_to(DATA))
)
def test_a_document_cut_off_anywhere_has_no_entry_but_its_own(document: Path) -> None:
    body = document.read_bytes()
    titles = {entry.title for entry in parse_leniently(body, CONTEXT).entries}
    for end in range(0, len(body), max(1, len(body) // 24)):
        assert titles.issuperset(_titles(body[:end]))


def _titles(body: bytes) -> list[str]:
    try:
        parsed = parse_leniently(body, CONTEXT)
    except FeedError:
        return []
    return [entry.title for entry in parsed.entries]


@pytest.mark.parametrize("codec", ["utf-16", "utf-32", "cp1252", "koi8-r", "euc_jp"])
@pytest.mark.parametrize(
    "claimed", ["", "utf-8", "utf-16", "windows-1252", "shift_jis"]
)
def test_no_claim_about_the_encoding_is_more_than_a_claim(
    codec: str, claimed: str
) -> None:
    item = "<item><guid>1</guid><title>日本 мир déjà</title></item>"
    document = f"<?xml version='1.0' encoding='{claimed}'?>" + rss(item).decode()
    content_type = f"text/xml; charset={claimed}"
    for header in ("", content_type):
        body = document.encode(codec, "replace")
        parsed = parse_leniently(body, context(content_type=header))
        assert [entry.id for entry in parsed.entries] == ["1"]


_HUGE = {
    "declarations": b"<?xml version='1.0'?>\n" * 90_000,
    "markup declarations": b"<!DOCTYPE rss [" + b'<!ENTITY x "y">' * 130_000,
    "comments": b"<!---->" * 100_000,
    "sections": rss("<![CDATA[" * 100_000),
    "entries in entries": rss("<item>" * 330_000),
    "entries in an open element": rss("<ttl>" + "<item>1</item>" * 20_000),
    "names of namespaces": rss(
        "<a " + " ".join(f'xmlns:a{n}="u:{n}"' for n in range(100_000)) + "/>"
    ),
    "an attribute": rss(f'<item a="{"x" * 2_000_000}"/>'),
    "quotes": rss("<a b='\"" * 100_000),
    "bad bytes": rss("?" * 500_000).replace(b"?", b"\xff"),
    "text that is UTF-8 twice": rss("Ã©" * 500_000),
    "brackets in a person": rss(f"<item><author>{'a(' * 1_000_000}</author></item>"),
    "tags in a title": rss(f"<item><title>{'&lt;b ' * 400_000}</title></item>"),
}


@pytest.mark.bulk
@pytest.mark.parametrize("body", _HUGE.values(), ids=_HUGE.keys())
def test_megabytes_of_anything_are_within_bounds(body: bytes) -> None:
    """It ends at all: what takes squared time takes hours of these."""
    assert len(_titles(body)) <= MAX_ENTRIES


_SNIPPETS = st.sampled_from(
    (
        b"< > & ]]> <![CDATA[ <!-- --> <!DOCTYPE <?xml <item> </item> <entry> \x00 &#0;"
        b" &#xD800; &nbsp; xmlns:x='' \" { } [ ] , null 9e999 \\ud800"
    ).split(b" ")
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.sampled_from(golden_documents()), st.data())
def test_a_mutated_document_is_a_feed_or_an_error_of_ours(
    document: Path, data: st.DataObject
) -> None:
    body = document.read_bytes()
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(body)))
        end = min(len(body), start + data.draw(st.integers(0, 40)))
        insert = data.draw(_SNIPPETS | st.binary(max_size=4))
        body = body[:start] + insert + body[end:]
    assert _is_understood(body)
