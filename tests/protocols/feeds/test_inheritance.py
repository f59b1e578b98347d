"""What elements inherit, and take back: bases, languages, and the like."""

from __future__ import annotations

import orjson
import pytest

from protocols.feeds import parse
from protocols.feeds.document import DocumentKind, OpenedDocument
from protocols.feeds.feedparsing import read_with_feedparser
from protocols.feeds.lenient import parse_leniently
from protocols.model import Entry, Geo, Notification, Status, Text
from protocols.protocol_errors import MalformedDocument
from protocols.superfeedr.json_notifications import render_json
from tests.support.documents import CONTEXT, atom, rss

XHTML = 'xmlns="http://www.w3.org/1999/xhtml"'
GML = 'xmlns:gml="http://www.opengis.net/gml"'
GEORSS = 'xmlns:georss="http://www.georss.org/georss"'


def entry_of(inner: str) -> Entry:
    [entry] = parse(atom(f"<entry><id>1</id>{inner}</entry>"), CONTEXT).entries
    return entry


def content_of(inner: str) -> str:
    entry = entry_of(f'<content type="xhtml"><div {XHTML}>{inner}</div></content>')
    assert entry.content is not None
    return entry.content.value


@pytest.mark.parametrize(
    ("markup", "address"),
    [
        ('<p xml:base="/a/"><a href="b?c&amp;d">x</a></p>', "/a/b?c&amp;d"),
        ('<p><i xml:base="/a/" /><a xml:base="/c/" href="d">x</a></p>', "/c/d"),
        ('<p xml:base="/a/"><i xml:base="b/"><a href="c">x</a></i></p>', "/a/b/c"),
        ('<p xml:base="/a?b&amp;c"><a href="#d">x</a></p>', "/a?b&amp;c#d"),
        ('<p xml:lang="de"><a href="b">x</a></p>', "/b"),
    ],
)
def test_a_base_inside_of_content_counts(markup: str, address: str) -> None:
    assert f'href="https://site.example{address}"' in content_of(markup)


@pytest.mark.parametrize("type", ["xhtml", "html"])
def test_a_base_of_the_content_itself_counts(type: str) -> None:
    link = f'<div {XHTML}><a href="b">x</a></div>'
    markup = link if type == "xhtml" else f"<![CDATA[{link}]]>"
    entry = entry_of(f'<content type="{type}" xml:base="/a/">{markup}</content>')
    assert entry.content is not None
    assert 'href="https://site.example/a/b"' in entry.content.value


def test_only_addresses_are_made_absolute() -> None:
    markup = '<p xml:base="/a/" class="b"><img src="c" srcset="d 2x" alt="e"/></p>'
    assert content_of(markup) == (
        '<p xml:base="/a/" class="b"><img src="https://site.example/a/c"'
        ' srcset="https://site.example/a/d 2x" alt="e"/></p>'
    )


@pytest.mark.parametrize(
    ("root", "entry", "language"),
    [
        ('xml:lang="en"', "", "en"),
        ('xml:lang="en"', 'xml:lang=""', ""),
        ('xml:lang="en"', 'xml:lang="de"', "de"),
        ('xml:lang=""', "", ""),
        ('xml:lang="en"', 'xml:base="/a/"', "en"),
        ('xml:lang="en"', 'xml:base="/a/" xml:lang=""', ""),
    ],
)
def test_an_empty_language_takes_the_inherited_one_back(
    root: str, entry: str, language: str
) -> None:
    entries = f"<entry {entry}><id>1</id><content>a</content></entry>"
    body = atom(entries).replace(b"<feed ", f"<feed {root} ".encode())
    assert [each.language for each in parse(body, CONTEXT).entries] == [language]


def test_an_empty_language_takes_nothing_back_that_no_attribute_gave() -> None:
    body = rss(
        '<item xml:lang=""><guid>1</guid></item>', head="<language>en</language>"
    )
    assert [each.language for each in parse(body, CONTEXT).entries] == ["en"]


def test_content_without_a_language_leaves_the_entry_without() -> None:
    body = atom('<entry><id>1</id><content xml:lang="">a</content></entry>')
    body = body.replace(b"<feed ", b'<feed xml:lang="en" ')
    assert [each.language for each in parse(body, CONTEXT).entries] == ["en"]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (
            '<content type="text/plain">a</content>'
            '<content type="text/html" mode="escaped">&lt;b>a&lt;/b></content>',
            Text(value="<b>a</b>", type="html"),
        ),
        (
            f'<content type="application/xhtml+xml" mode="xml"><div {XHTML}>a</div>'
            '</content><content type="text/plain">a</content>',
            Text(value="a", type="xhtml"),
        ),
        ('<content type="text/plain">a</content>', Text(value="a", type="text")),
        ("", None),
    ],
)
def test_of_alternatives_the_richest_is_the_content(
    parts: str, expected: Text | None
) -> None:
    body = (
        '<feed version="0.3" xmlns="http://purl.org/atom/ns#"><entry><id>1</id>'
        f'<content type="multipart/alternative">{parts}</content></entry></feed>'
    )
    [entry] = parse(body.encode(), CONTEXT).entries
    assert entry.content == expected


@pytest.mark.parametrize(
    "place",
    [
        "<gml:Point><gml:pos>47.5 -122.25</gml:pos></gml:Point>",
        "<gml:Point><gml:coordinates>-122.25,47.5</gml:coordinates></gml:Point>",
        "<gml:pos>47.5 -122.25</gml:pos>",
    ],
)
@pytest.mark.parametrize("around", ["{}", "<georss:where>{}</georss:where>"])
def test_a_point_is_read_in_the_forms_of_gml(place: str, around: str) -> None:
    item = f"<item {GML} {GEORSS}><guid>1</guid>{around.format(place)}</item>"
    [entry] = parse(rss(item), CONTEXT).entries
    assert entry.geo == Geo(latitude=47.5, longitude=-122.25)
    assert entry.extensions == {}


# --- authors ---

KIM = "<author><name>Kim</name><email>kim@a.example</email></author>"
OTHER = "<source><id>urn:s</id><author><name>Source</name></author></source>"


@pytest.mark.parametrize(
    ("head", "entry", "authors"),
    [
        (KIM, "", ["Kim"]),
        (KIM, "<author><name>Jo</name></author>", ["Jo"]),
        (KIM, OTHER, ["Source"]),
        (KIM, "<source><id>urn:s</id></source>", ["Kim"]),
        (KIM, f"<author><name>Jo</name></author>{OTHER}", ["Jo"]),
        (KIM + KIM.replace("Kim", "Ann"), "", ["Kim", "Ann"]),
        ("", "", []),
        (KIM, '<creator xmlns="http://purl.org/dc/elements/1.1/">Jo</creator>', ["Jo"]),
    ],
)
@pytest.mark.parametrize("is_broken", [False, True])
def test_an_atom_entry_without_an_author_has_those_of_its_source_or_its_feed(
    head: str, entry: str, authors: list[str], *, is_broken: bool
) -> None:
    body = atom(f"{head}<entry><id>1</id><title>T</title>{entry}</entry>")
    if is_broken:
        parsed = read_with_feedparser(
            OpenedDocument(kind=DocumentKind.XML, body=body), CONTEXT
        )
    else:
        parsed = parse(body, CONTEXT)
    assert parsed is not None
    [read] = parsed.entries
    assert [author.name for author in read.authors] == authors


def test_an_entry_has_its_feeds_author_in_notifications_too() -> None:
    body = atom(f"{KIM}<entry><id>1</id><title>T</title></entry>")
    parsed = parse(body, CONTEXT)
    told = Notification(
        topic="", hub="", status=Status(), feed=parsed.feed, entries=parsed.entries
    )
    [item] = orjson.loads(render_json(told))["items"]
    assert item["actor"]["displayName"] == "Kim"


def test_an_item_of_json_feed_has_the_feeds_authors() -> None:
    body = orjson.dumps(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "title": "F",
            "authors": [{"name": "Kim"}],
            "items": [{"id": "1"}, {"id": "2", "authors": [{"name": "Jo"}]}],
        }
    )
    parsed = parse(body, CONTEXT)
    names = [[author.name for author in entry.authors] for entry in parsed.entries]
    assert names == [["Kim"], ["Jo"]]


def test_nobody_wrote_the_items_of_rss_for_being_its_editor() -> None:
    body = rss(
        "<item><guid>1</guid></item>", head="<managingEditor>Kim</managingEditor>"
    )
    assert parse(body, CONTEXT).entries[0].authors == ()


# --- the lines that problems name ---


@pytest.mark.parametrize("before", ["\n\n", "\n \n", "Warning: x\nin y\n"])
def test_problems_name_the_lines_of_what_was_fetched(before: str) -> None:
    body = before.encode() + rss("\n&", prolog="<?xml version='1.0'?>")
    assert parse(body, CONTEXT).problems[-1].startswith("line 4: entities")


def test_bytes_are_on_the_line_of_what_was_fetched() -> None:
    body = b"\n\n" + rss(head="<title>caf\xe9</title>").replace("é".encode(), b"\xe9")
    assert parse(body, CONTEXT).problems[-1].startswith("line 3: ")


@pytest.mark.parametrize("read", [parse, parse_leniently])
@pytest.mark.parametrize("document", ["<rss><channel></rss>", '{"a": 1'])
def test_errors_name_the_lines_of_what_was_fetched(read: object, document: str) -> None:
    assert callable(read)
    with pytest.raises(MalformedDocument, match="line 3: "):
        read(f"\n\n{document}".encode(), CONTEXT)
