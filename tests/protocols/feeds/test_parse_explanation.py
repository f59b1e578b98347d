"""What ``fanfare parse --explain`` says, found out from a document and its reading."""

from __future__ import annotations

import pytest

from protocols.feeds.lenient import parse_leniently
from protocols.feeds.parse_explanation import (
    MOST_DROPPED,
    EntryRule,
    ParseExplanation,
    explain,
    explain_encoding,
)
from tests.support.documents import atom, context, rss

SITE = "<title>F</title><link>https://site.example/</link>"


def explained(body: bytes, content_type: str = "") -> ParseExplanation:
    parsed = parse_leniently(body, context(content_type=content_type))
    return explain(body, content_type, parsed)


def rules(items: str) -> list[EntryRule]:
    return [*explained(rss(items, head=SITE)).entries]


# --- the encoding --------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type", "name", "source"),
    [
        (b"<rss/>", "", "utf-8", "its bytes"),
        (b"\xef\xbb\xbf<rss>\xc3\xa9</rss>", "", "utf-8", "byte order mark"),
        ("<rss>\u00e9</rss>".encode("utf-16"), "", "utf-16-le", "byte order mark"),
        ("<rss>\u00e9</rss>".encode("utf-16-be"), "", "utf-16-be", "its bytes"),
        (
            b"<rss>\xe9</rss>",
            "text/xml; charset=iso-8859-1",
            "cp1252",
            "HTTP header",
        ),
        (
            b'<?xml version="1.0" encoding="koi8-r"?><rss>\xc1</rss>',
            "",
            "koi8-r",
            "declaration",
        ),
        (
            b'<?xml version="1.0" encoding="iso-8859-1"?><rss>\xc3\xa9</rss>',
            "",
            "utf-8",
            "its bytes, contrary to the declarations",
        ),
        (
            b'<?xml version="1.0" encoding="no-such"?><rss>\xc3\xa9</rss>',
            "",
            "utf-8",
            "its bytes, contrary to the declarations",
        ),
    ],
)
def test_the_encoding_is_named_with_what_decided_it(
    body: bytes, content_type: str, name: str, source: str
) -> None:
    encoding = explain_encoding(body, content_type)
    assert (encoding.name, encoding.source) == (name, source)


def test_all_that_is_said_of_the_encoding_is_repeated() -> None:
    body = b'<?xml version="1.0" encoding="utf-8"?><rss>\xc3\xa9</rss>'
    encoding = explain_encoding(body, "text/xml; charset=windows-1251")
    assert encoding.claims == ("HTTP header: windows-1251", "declaration: utf-8")
    assert (encoding.name, encoding.source) == ("utf-8", "declaration")


def test_bytes_that_do_not_fit_are_named_as_trouble() -> None:
    body = b'<?xml version="1.0" encoding="shift_jis"?><rss>\x81\xff</rss>'
    encoding = explain_encoding(body, "")
    assert encoding.name == "cp932"
    assert "were replaced" in encoding.problem


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<rss>caf\xe9</rss>", "bytes that are not UTF-8 were read as cp1252"),
        (b"<rss>caf\xc3\xa9</rss>", ""),
        (b"\x7f\x00\xff\xfe\x00\x80", "it is not text in any encoding"),
    ],
)
def test_bytes_that_are_in_no_encoding_named_are_trouble(
    body: bytes, problem: str
) -> None:
    assert explain_encoding(body, "").problem == problem


# --- what an entry is known by -------------------------------------------------


@pytest.mark.parametrize(
    ("item", "rule", "why"),
    [
        ("<guid>1</guid>", "its id", ""),
        (f"<guid>{'1' * 1025}</guid>", "its id", "over 1024 characters"),
        (
            "<link>https://site.example/1</link>",
            "its link",
            "it has no id of its own",
        ),
        (
            "<enclosure url='https://site.example/1.mp3'/>",
            "its enclosure",
            "it has neither an id nor a link",
        ),
        (
            "<title>A</title>",
            "a hash of title, date and content",
            "it has neither an id nor a link",
        ),
        (
            "<title>A</title><link>http://site.example/</link>",
            "a hash of title, date and content",
            "it has no id, and its link is the site's own",
        ),
    ],
)
def test_an_entry_is_explained_by_the_rule_that_found_its_identity(
    item: str, rule: str, why: str
) -> None:
    [entry] = rules(f"<item>{item}</item>")
    assert (entry.rule, entry.why) == (rule, why)


def test_a_link_that_others_share_is_said_to_be_shared() -> None:
    link = "<link>https://site.example/1</link>"
    shared = rules(
        f"<item><title>A</title>{link}</item><item><title>B</title>{link}</item>"
    )
    assert [each.title for each in shared] == ["A", "B"]
    assert {each.why for each in shared} == {
        "it has no id, and shares its link with others"
    }


# --- repairs, and what was dropped ---------------------------------------------


def test_repairs_are_named_with_line_and_cause() -> None:
    body = rss(
        "\n<item><title>a &nbsp; b</title></item>\n<item><title>\x01</title></item>"
    )
    found = explained(body)
    assert found.path == "characters+entities"
    assert found.problems == (
        "line 3: control characters were dropped",
        "line 2: entities unknown to XML were replaced",
    )


def test_bad_bytes_are_named_with_their_line() -> None:
    found = explained(
        rss("\n<item><title>caf\u00e9 X</title></item>").replace(b"X", b"\xe9")
    )
    assert found.problems[0].startswith("line 2: invalid continuation byte at byte ")


def test_entries_that_were_left_out_are_counted_and_named() -> None:
    found = explained(rss("<item><guid>1</guid></item>" * 3))
    assert found.left_out == 2
    assert found.problems == ("a second entry with the id 1 was left out",) * 2


@pytest.mark.parametrize(
    "body",
    [
        rss("\n<item><pubDate>soon</pubDate></item>"),
        rss("\n<item><pubDate> <![CDATA[soon]]></pubDate></item>"),
        atom("\n<entry><id>1</id><updated>soon</updated></entry>"),
        b'{"version": "https://jsonfeed.org/version/1.1",\n'
        b'"items": [{"id": "1", "date_published": "soon"}]}',
    ],
    ids=["rss", "cdata", "atom", "json"],
)
def test_a_date_that_is_none_is_named_with_its_line(body: bytes) -> None:
    assert explained(body).dropped == ("line 2: an invalid date: soon",)


def test_a_readable_date_and_an_empty_one_are_not() -> None:
    items = (
        "<item><pubDate>2026-01-01</pubDate></item><item><pubDate> </pubDate></item>"
    )
    assert explained(rss(items)).dropped == ()


def test_what_is_too_long_is_named_with_its_line_and_its_beginning() -> None:
    url = "https://site.example/" + "x" * 9_000
    body = rss(
        f"<item><link>{url}</link></item>\n"
        f"<item><enclosure url='{url}'/><pubDate>{'1 ' * 50}</pubDate></item>"
    )
    first, second, third = explained(body).dropped
    assert first.startswith("line 1: a URL of more than 8192 characters: https://site")
    assert second.startswith("line 2: a URL of more than 8192 characters: https://site")
    assert third.startswith("line 2: an overlong date: 1 1 1")


def test_so_much_is_named_and_no_more() -> None:
    items = "<item><pubDate>soon</pubDate></item>" * (MOST_DROPPED + 1)
    assert len(explained(rss(items)).dropped) == MOST_DROPPED


def test_a_date_in_bytes_that_were_mended_is_not_dropped() -> None:
    date = "<pubDate>11 янв 2020 10:00:00 +0300</pubDate>"
    body = rss(
        f"<item><title>Новости</title>{date}</item>", head="<language>ru</language>"
    )
    found = explained(body.decode().encode("cp1251"))
    assert (found.path, found.dropped) == ("bytes", ())
