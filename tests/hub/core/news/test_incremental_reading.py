"""Reading what is new in a document, and deciding on it, as if it were read whole.

`TwoReaders` holds for every document here that both ways commit the same.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from hub.core.news.known_slices import READER_BYTES, known_slices
from protocols.feeds.incremental import PATH
from protocols.feeds.limits import MAX_ENTRIES
from tests.support.changing_feeds import histories
from tests.support.documents import atom, rss
from tests.support.two_readers import URL, Reader, TwoReaders, last, titles_read

ONE = "<item><guid>1</guid><title>one</title></item>"
TWO = "<item><guid>2</guid><title>two</title></item>"
THREE = "<item><guid>3</guid><title>three</title></item>"
BY_LINK = "<item><link>https://e.example/a</link><title>a</title></item>"
TOMBSTONE = (
    '<at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" ref="urn:2"/>'
)


def rdf(*items: str, before: str = "", inside: str = "", after: str = "") -> bytes:
    return (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
        f' xmlns="http://purl.org/rss/1.0/">{before}<channel><title>T</title><items/>{inside}'
        f"</channel>{''.join(items)}{after}</rdf:RDF>"
    ).encode()


def an_item(id: str, title: str = "entry") -> str:
    return f"<entry><id>urn:{id}</id><title>{title}</title></entry>"


@given(histories())
@settings(max_examples=80)
def test_what_is_committed_is_the_same_however_a_document_was_read(
    documents: list[bytes],
) -> None:
    readers = TwoReaders()

    for document in documents:
        readers.fetch(document)


# --- only what is new is read --------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "read"),
    [
        pytest.param(rss(ONE, TWO, head="<title>New</title>"), [], id="the head"),
        pytest.param(rss(ONE, TWO, tail="<ttl>5</ttl>"), [], id="the tail"),
        pytest.param(rss(THREE, ONE, TWO), ["three"], id="an entry at the top"),
        pytest.param(rss(ONE, THREE, TWO), ["three"], id="one in the middle"),
        pytest.param(rss(ONE, TWO, THREE), ["three"], id="one at the end"),
        pytest.param(rss(ONE, TWO.replace("two", "2nd")), ["2nd"], id="an edit"),
        pytest.param(rss(TWO, ONE), [], id="the order"),
        pytest.param(rss(TWO), [], id="one less"),
        pytest.param(rss(ONE, "<!-- x -->", TWO), [], id="a comment between"),
        pytest.param(rss(ONE, "<ttl>5</ttl>", TWO), [], id="an element between"),
        pytest.param(rss(ONE, "<![CDATA[x]]>", TWO), [], id="text between"),
        pytest.param(rss(ONE + TWO), [], id="the space between"),
        pytest.param(b"  " + rss(ONE, TWO), [], id="space before the document"),
        pytest.param(rss(ONE, TWO).decode().encode("utf-16"), [], id="the encoding"),
    ],
)
def test_what_did_not_change_is_not_read_again(
    document: bytes, read: list[str]
) -> None:
    parsed = last(rss(ONE, TWO), document)

    assert PATH in parsed.path
    assert titles_read(parsed) == read


@pytest.mark.parametrize("between", ["<ttl>5</ttl>", "<!-- x -->", "<title>2</title>"])
def test_what_stands_between_the_entries_counts_each_time(between: str) -> None:
    documents = [
        rss(ONE, between, TWO, head=f"<title>{number}</title>") for number in range(3)
    ]

    assert last(*documents).path == PATH


def test_items_beside_the_channel_are_known_too() -> None:
    parsed = last(rdf(ONE, TWO), rdf(THREE, ONE, TWO))

    assert (parsed.path, titles_read(parsed)) == (PATH, ["three"])


def test_atom_entries_are_known_too() -> None:
    first, second = an_item("1"), an_item("2")

    parsed = last(atom(first, second), atom(an_item("3", "new"), first, second))

    assert (parsed.path, titles_read(parsed)) == (PATH, ["new"])


def test_entries_are_known_by_their_links_where_they_have_no_ids() -> None:
    parsed = last(rss(BY_LINK, ONE), rss(TWO, BY_LINK, ONE))

    assert (parsed.path, titles_read(parsed)) == (PATH, ["two"])


def test_an_id_that_only_the_new_entries_share_is_judged_by_the_whole_document() -> (
    None
):
    shared = [
        f"<item><guid>x</guid><link>https://e.example/{each}</link></item>"
        for each in "klm"
    ]
    parsed = last(rss(ONE, TWO, THREE, BY_LINK), rss(*shared, ONE, TWO, THREE, BY_LINK))

    assert (parsed.path, parsed.dropped) == ("strict", 2)


def test_two_versions_that_take_turns_are_both_remembered() -> None:
    here, there = rss(ONE, TWO), rss(TWO, THREE)

    parsed = last(here, there, here, there)

    assert (parsed.path, titles_read(parsed)) == (PATH, [])


def test_entries_that_change_to_and_fro_are_updates_each_time() -> None:
    changed = ONE.replace("one", "other")

    parsed = last(rss(ONE, TWO), rss(changed, TWO), rss(ONE, TWO))

    assert (parsed.path, titles_read(parsed)) == (PATH, ["one"])


def test_an_empty_document_forgets_nothing() -> None:
    parsed = last(rss(ONE, TWO), rss(), rss(THREE, ONE, TWO))

    assert (parsed.path, titles_read(parsed)) == (PATH, ["three"])


def test_a_change_of_the_head_alone_stores_neither_entries_nor_slices() -> None:
    reader = Reader(is_incremental=True)
    reader.read(rss(ONE, TWO))

    _, commit = reader.fetch(rss(ONE, TWO, head="<title>New</title>"))

    assert (commit.title, commit.entries) == ("New", ())
    assert commit.slices is None


def test_no_more_is_remembered_than_two_documents_hold() -> None:
    reader = Reader(is_incremental=True)
    sizes = set()
    for number in range(9):
        reader.read(rss(ONE.replace("1", f"a{number}"), TWO.replace("2", f"b{number}")))
        sizes.add(len(reader.target.slices))

    assert len(sizes) == 2  # the first, and all others


# --- whatever else an entry depends on ------------------------------------------------


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(rss(ONE, TWO, root=' xmlns:x="urn:x"'), id="a namespace"),
        pytest.param(rss(ONE, TWO, root=' xml:lang="de"'), id="the root's language"),
        pytest.param(rss(ONE, TWO, channel=' xml:base="/b/"'), id="the channel's base"),
        pytest.param(
            rss(ONE, TWO, head="<language>de</language>"), id="the head's language"
        ),
        pytest.param(
            rss(ONE, TWO, head="<link>https://e.example/</link>"), id="the site's link"
        ),
        pytest.param(
            rss(ONE, TWO, head="<copyright>mine</copyright>"), id="the head's rights"
        ),
        pytest.param(
            rss(ONE, TWO, head="<managingEditor>a@e.example</managingEditor>"),
            id="the head's author",
        ),
        pytest.param(
            rss(ONE, TWO, prolog='<?xml version="1.0" encoding="utf-8"?>'),
            id="the declaration",
        ),
        pytest.param(rdf(ONE, TWO), id="the format"),
    ],
)
def test_entries_in_another_setting_are_read_again(document: bytes) -> None:
    parsed = last(rss(ONE, TWO), document, rss(ONE, TWO), document)

    assert titles_read(parsed) == ["one", "two"]


def test_entries_are_read_again_where_the_document_comes_from_another_address() -> None:
    readers = TwoReaders()
    readers.fetch(rss(ONE, TWO))

    parsed = readers.fetch(rss(ONE, TWO, tail=" "), url=f"{URL}/moved")

    assert parsed is not None
    assert titles_read(parsed) == ["one", "two"]


def test_entries_are_read_again_by_another_version_of_the_program() -> None:
    reader = Reader(is_incremental=True)
    reader.read(rss(ONE, TWO))
    reader.reader = b"x" * READER_BYTES

    again, then = reader.read(rss(TWO, ONE)), reader.read(rss(ONE, TWO))

    assert (titles_read(again), titles_read(then)) == (["two", "one"], [])


# --- documents that are read whole ----------------------------------------------------


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(rss(THREE, ONE, TWO, ONE), id="an entry twice"),
        pytest.param(rss(ONE.replace("one", "1st"), ONE, TWO), id="an id twice"),
        pytest.param(
            rss(ONE, TWO, THREE.replace("three", "<![CDATA[<item>]]>")),
            id="a beginning in a text",
        ),
        pytest.param(rss(f"<!-- {ONE} -->", TWO), id="an entry in a comment"),
        pytest.param(rss(f"<![CDATA[{ONE}]]>", TWO), id="an entry in CDATA"),
        pytest.param(rss(f"<?x {ONE}?>", TWO), id="an entry in an instruction"),
        pytest.param(rss(f"<image>{ONE}</image>", TWO), id="an entry in an element"),
        pytest.param(
            rss(f"<item><guid>4</guid><d><![CDATA[</item>{ONE}<item>]]></d></item>"),
            id="an entry in another one's text",
        ),
        pytest.param(rss(ONE, f"<item>{TWO}</item>"), id="an entry in an entry"),
        pytest.param(rss(ONE, "<item/>", TWO), id="an empty entry"),
        pytest.param(rss(ONE, TWO, "<item>"), id="an entry without end"),
        pytest.param(
            rss(ONE, "<item><d><![CDATA[</item>]]></d></item>"), id="an end in a text"
        ),
        pytest.param(
            rss(ONE, f"{THREE}<!-- </item> -->", TWO), id="an end in a comment"
        ),
        pytest.param(
            rss(ONE, TWO, '<x:item xmlns:x="http://purl.org/rss/1.0/"/>'),
            id="an entry with a prefix",
        ),
        pytest.param(rss(ONE, "\f", TWO), id="no character of XML"),
        pytest.param(rss(ONE, "&nbsp;", TWO), id="a repair"),
        pytest.param(rss(ONE, TWO)[:-9], id="a document cut off"),
        pytest.param(
            rss(*(ONE.replace("1", f"n{n}") for n in range(MAX_ENTRIES)), TWO),
            id="too many entries",
        ),
        pytest.param(
            rss(ONE, TWO).replace(b"</channel>", b"</channel><channel/>"),
            id="two channels",
        ),
        pytest.param(
            rss(ONE, TWO).replace(b"<channel>", b"").replace(b"</channel>", b""),
            id="no channel",
        ),
    ],
)
def test_a_document_that_leaves_a_doubt_is_read_whole(document: bytes) -> None:
    assert PATH not in last(rss(ONE, TWO), document).path


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(rdf(TWO, inside=ONE), id="inside and beside the channel"),
        pytest.param(rdf(TWO, before=ONE), id="before and after the channel"),
    ],
)
def test_entries_in_two_places_are_read_whole(document: bytes) -> None:
    parsed = last(rdf(ONE, TWO), document, document.replace(b"T<", b"T2<"))

    assert (parsed.path, parsed.entry_count) == ("strict", 2)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(b'{"version": "https://jsonfeed.org/version/1.1"}', id="JSON"),
        pytest.param(b"<channel><item><guid>1</guid></item></channel>", id="no root"),
        pytest.param(
            an_item("1")
            .replace("<entry", '<entry xmlns="http://www.w3.org/2005/Atom"')
            .encode(),
            id="a lone entry",
        ),
        pytest.param(rss(), id="no entries"),
        pytest.param(rss("<item><title>a</title></item>" * 2), id="entries alike"),
    ],
)
def test_a_document_without_outline_is_read_whole_each_time(document: bytes) -> None:
    parsed = last(document, document + b"\n", document)

    assert (parsed.path, parsed.outline) == ("strict", None)


def test_a_document_too_large_for_the_parser_is_shown_to_it_whole() -> None:
    large = THREE.replace("three", "x" * 10_000_001)
    readers = TwoReaders()
    readers.fetch(rss(ONE, TWO))

    readers.fetch(rss(ONE, TWO, large))

    assert "10000000" in readers.new_only.target.feed.polling.error


def test_a_link_that_entries_without_ids_share_is_no_longer_an_identity() -> None:
    same = BY_LINK.replace(">a<", ">b<")

    parsed = last(rss(BY_LINK, ONE), rss(same, BY_LINK, ONE))

    assert (parsed.path, titles_read(parsed)) == ("strict", ["b", "a", "one"])


def test_a_link_shared_with_an_entry_known_otherwise_is_no_identity() -> None:
    """The new ones share it already among themselves."""
    new = [BY_LINK.replace(">a<", f">{title}<") for title in ("b", "c")]

    parsed = last(rss(BY_LINK, ONE), rss(*new, BY_LINK, ONE))

    assert (parsed.path, len(parsed.entries)) == ("strict", 4)


def test_an_entry_known_by_what_it_says_is_always_read() -> None:
    without = "<item><title>nameless</title></item>"

    parsed = last(rss(without, ONE), rss(without, ONE, tail=" "))

    assert (parsed.path, titles_read(parsed)) == (PATH, ["nameless"])


@pytest.mark.parametrize("head", ["&#150;", "\x96", "\u00e2\u20ac\u201c"])
@pytest.mark.parametrize("title", ["two", "\u2013", "\u00e2\u20ac\u201c"])
def test_what_is_to_mend_around_known_entries_is_mended(head: str, title: str) -> None:
    entries = ONE, TWO.replace("two", title)
    readers = TwoReaders()

    for name in ("\u00fc", head, "plain", head):
        readers.fetch(rss(*entries, head=f"<title>{name}</title>"))


# --- what is remembered --------------------------------------------------------------


def test_an_entry_that_the_feed_withdrew_is_read_when_it_comes_back() -> None:
    first, second = an_item("1"), an_item("2", "back")
    withdrawal = last(atom(first, second), atom(first, TOMBSTONE))

    parsed = last(atom(first, second), atom(first, TOMBSTONE), atom(first, second))

    assert (withdrawal.path, len(withdrawal.deletions)) == ("strict", 1)
    assert (parsed.path, titles_read(parsed)) == (PATH, ["back"])


@pytest.mark.parametrize("slices", [b"", b"short", bytes(READER_BYTES)])
def test_what_is_not_remembered_is_not_known(slices: bytes) -> None:
    assert known_slices(slices, b"", bytes(READER_BYTES)) == b""


def test_an_entry_that_the_seen_set_has_lost_is_read() -> None:
    reader = Reader(is_incremental=True)
    reader.read(rss(ONE, TWO))
    reader.target = replace(reader.target, seen=b"")

    assert titles_read(reader.read(rss(TWO, ONE))) == ["two", "one"]
