"""Elements that stand where no specification has them, and are meant all the same."""

from __future__ import annotations

import pytest

from protocols.dates import parse_date
from protocols.feeds import parse
from protocols.feeds.names import ATOM, ATOM_03
from protocols.model import Author, Text
from tests.support.feeds import CONTEXT, rss


@pytest.mark.parametrize("namespace", [ATOM[1:-1], ATOM_03[1:-1]])
@pytest.mark.parametrize(
    ("published", "updated", "rights", "subtitle"),
    [
        ("published", "updated", "rights", "subtitle"),
        ("issued", "modified", "copyright", "tagline"),
        ("created", "modified", "copyright", "tagline"),
    ],
)
def test_either_version_of_atom_has_the_elements_of_the_other(
    namespace: str, published: str, updated: str, rights: str, subtitle: str
) -> None:
    body = f"""<feed xmlns="{namespace}"><{subtitle}>S</{subtitle}><entry>
        <{published}>2020-01-11</{published}><{updated}>2020-01-12</{updated}>
        <{rights}>R</{rights}></entry></feed>"""
    parsed = parse(body.encode(), CONTEXT)
    [entry] = parsed.entries
    assert parsed.feed.subtitle == "S"
    assert (entry.published, entry.updated, entry.rights) == (
        parse_date("2020-01-11"),
        parse_date("2020-01-12"),
        "R",
    )


@pytest.mark.parametrize(
    ("written", "author"),
    [
        ("Jo", Author(name="Jo")),
        ("jo@a.example (Jo)", Author(name="Jo", email="jo@a.example")),
        ("Jo (Reuters)", Author(name="Jo (Reuters)")),
    ],
)
def test_a_creator_may_be_written_as_an_author_of_rss(
    written: str, author: Author
) -> None:
    creator = f"<dc:creator>{written}</dc:creator><dc:creator> </dc:creator>"
    parsed = parse(rss(f"<item>{creator}</item>"), CONTEXT)
    assert parsed.entries[0].authors == (author,)


@pytest.mark.parametrize(
    ("written", "published", "updated"),
    [
        ("<created>2020-01-11</created><updated>2020-01-12</updated>", 11, 12),
        ("<published>2020-01-11</published><modified>2020-01-12</modified>", 11, 12),
        ("<date>2020-01-11</date>", 11, None),
        ("<issued>2020-01-11</issued>", 11, None),
        ("<pubDate>2020-01-11</pubDate><created>2020-01-09</created>", 11, None),
    ],
)
def test_an_item_may_have_dates_that_rss_does_not_know(
    written: str, published: int, updated: int | None
) -> None:
    [entry] = parse(rss(f"<item><guid>1</guid>{written}</item>"), CONTEXT).entries
    assert entry.published is not None
    assert entry.published.day == published
    assert (entry.updated and entry.updated.day) == updated


@pytest.mark.parametrize(
    ("written", "id"),
    [("<id>a</id><link>/1</link>", "a"), ("<id>a</id><guid>b</guid>", "b")],
)
def test_an_id_that_rss_does_not_know_stands_in_for_a_missing_one(
    written: str, id: str
) -> None:
    [entry] = parse(rss(f"<item>{written}</item>"), CONTEXT).entries
    assert entry.id == id


@pytest.mark.parametrize(
    "written", ["/?a=1&amp;b=2", "/?a=1&amp;amp;b=2", "<![CDATA[/?a=1&amp;b=2]]>"]
)
def test_a_link_that_was_escaped_twice_is_the_link_that_was_meant(written: str) -> None:
    [entry] = parse(rss(f"<item><link>{written}</link></item>"), CONTEXT).entries
    assert [link.href for link in entry.links] == ["https://site.example/?a=1&b=2"]


def test_an_attribute_in_small_letters_says_that_an_id_is_no_address() -> None:
    guid = '<guid ispermalink="false">https://site.example/1</guid>'
    [entry] = parse(rss(f"<item>{guid}</item>"), CONTEXT).entries
    assert entry.links == ()


def test_a_person_of_whom_nothing_is_said_is_no_author_of_an_item() -> None:
    parsed = parse(rss("<item><author><name/></author></item>"), CONTEXT)
    assert parsed.entries[0].authors == ()


def test_addresses_and_times_of_cdf_are_attributes() -> None:
    body = b"""<CHANNEL HREF="https://s.example/" LASTMOD="2020-01-12"><TITLE>T</TITLE>
        <ITEM HREF="/1" LASTMOD="2020-01-11T10:00"><TITLE>A</TITLE>
        <ABSTRACT>S</ABSTRACT></ITEM><ITEM><TITLE>B</TITLE></ITEM></CHANNEL>"""
    parsed = parse(body, CONTEXT)
    first, second = parsed.entries
    assert [link.href for link in parsed.feed.links] == ["https://s.example/"]
    assert parsed.feed.updated == parse_date("2020-01-12")
    assert (first.title, first.summary) == ("A", Text(value="S"))
    assert [link.href for link in first.links] == ["https://site.example/1"]
    assert first.updated == parse_date("2020-01-11T10:00")
    assert (second.links, second.updated) == ((), None)
