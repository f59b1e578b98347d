"""Reading what is new in a JSON Feed, and deciding on it, as if it were read whole.

`TwoReaders` holds for every document here that both ways commit the same.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from hub.core.news.known_slices import READER_BYTES
from protocols.feeds.limits import MAX_ENTRIES
from tests.support.changing_json import HUGE, VERSION, json_histories, nested
from tests.support.two_readers import Reader, TwoReaders, last, titles_read

ONE = {"id": "1", "title": "one"}
TWO = {"id": "2", "title": "two"}
THREE = {"id": "3", "title": "three"}
BY_LINK = {"url": "https://e.example/a", "title": "a"}
HOME = "https://e.example/"


def a_json_feed(*items: Any, indent: int | None = None, **head: Any) -> bytes:
    document = {"version": VERSION, "title": "Feed", **head, "items": items}
    return json.dumps(document, indent=indent).encode()


@given(json_histories())
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
        pytest.param(a_json_feed(ONE, TWO, title="New"), [], id="the head"),
        pytest.param(a_json_feed(ONE, TWO, indent=2), [], id="the white space"),
        pytest.param(a_json_feed(THREE, ONE, TWO), ["three"], id="an item at the top"),
        pytest.param(a_json_feed(ONE, TWO, THREE), ["three"], id="one at the end"),
        pytest.param(
            a_json_feed(ONE, TWO | {"title": "2nd"}), ["2nd"], id="an edited item"
        ),
        pytest.param(a_json_feed(TWO, ONE), [], id="the order"),
        pytest.param(a_json_feed(TWO), [], id="one less"),
        pytest.param(a_json_feed(ONE, 5, TWO), [], id="what is no item"),
        pytest.param(b" " + a_json_feed(ONE, TWO), [], id="space before it"),
        pytest.param(b"[" + a_json_feed(ONE, TWO) + b"]", [], id="brackets around it"),
        pytest.param(a_json_feed(ONE, TWO)[:-1] + b",}", [], id="a comma to be mended"),
    ],
)
def test_what_did_not_change_is_not_read_again(
    document: bytes, read: list[str]
) -> None:
    parsed = last(a_json_feed(ONE, TWO), document)

    assert parsed.is_partial
    assert titles_read(parsed) == read


def test_items_are_known_by_their_links_where_they_have_no_ids() -> None:
    parsed = last(a_json_feed(BY_LINK, ONE), a_json_feed(TWO, BY_LINK, ONE))

    assert titles_read(parsed) == ["two"]


def test_two_versions_that_take_turns_are_both_remembered() -> None:
    documents = [a_json_feed(ONE, TWO), a_json_feed(ONE, TWO | {"image": "/i.png"})] * 2

    assert titles_read(last(*documents)) == []


def test_a_change_of_the_head_alone_stores_no_slices() -> None:
    reader = Reader(is_incremental=True)
    reader.fetch(a_json_feed(ONE, TWO))

    understood, commit = reader.fetch(a_json_feed(ONE, TWO, title="New"))

    assert understood.feed is not None
    assert understood.feed.entries == ()
    assert commit.slices is None


def test_numbers_that_are_ids_are_told_apart_beyond_64_bits() -> None:
    first, second = ({"id": number, "title": "n"} for number in (HUGE, HUGE + 1))

    parsed = last(a_json_feed(first), a_json_feed(first, second))

    assert [entry.id for entry in parsed.entries] == [str(HUGE + 1)]


# --- what items depend on ------------------------------------------------------------


@pytest.mark.parametrize(
    "head", [{"language": "de"}, {"home_page_url": HOME + "other"}], ids=str
)
def test_items_in_another_setting_are_read_again(head: dict[str, str]) -> None:
    parsed = last(a_json_feed(ONE, TWO), a_json_feed(ONE, TWO, **head))

    assert titles_read(parsed) == ["one", "two"]


def test_items_are_read_again_where_the_document_comes_from_another_address() -> None:
    readers = TwoReaders()
    readers.fetch(a_json_feed(ONE, TWO))

    parsed = readers.fetch(a_json_feed(ONE, TWO), "https://other.example/feed")

    assert parsed is not None
    assert titles_read(parsed) == ["one", "two"]


def test_items_are_read_again_by_another_version_of_the_program() -> None:
    readers = TwoReaders()
    readers.fetch(a_json_feed(ONE, TWO))
    for reader in (readers.whole, readers.new_only):
        reader.reader = b"x" * READER_BYTES

    parsed = readers.fetch(a_json_feed(ONE, TWO, title="New"))

    assert parsed is not None
    assert titles_read(parsed) == ["one", "two"]


# --- where there is a doubt, all are read --------------------------------------------


@pytest.mark.parametrize(
    "items",
    [
        pytest.param((ONE, TWO, ONE), id="an item is there twice"),
        pytest.param((ONE, TWO, ONE | {"title": "x"}), id="two share an id"),
        pytest.param((ONE, BY_LINK, BY_LINK | {"title": "b"}), id="two share a link"),
        pytest.param(
            (
                *(ONE, TWO),
                *({"id": "same", "url": f"{HOME}{each}"} for each in range(4)),
            ),
            id="an id is that of many",
        ),
    ],
)
def test_a_document_that_leaves_a_doubt_is_read_whole(items: Any) -> None:
    parsed = last(a_json_feed(ONE, TWO, BY_LINK), a_json_feed(*items))

    assert not parsed.is_partial


def test_items_that_bear_on_each_other_are_read_whole_each_time() -> None:
    parsed = last(a_json_feed(ONE, ONE), a_json_feed(ONE, ONE, title="New"))

    assert parsed.outline is None
    assert len(parsed.problems) == 1


def test_a_document_with_too_many_items_is_read_whole() -> None:
    items = [{"id": str(number)} for number in range(MAX_ENTRIES + 1)]

    parsed = last(a_json_feed(*items), a_json_feed(*items, title="New"))

    assert parsed.outline is None
    assert parsed.dropped == 1


def test_an_item_that_is_nested_too_deep_to_be_written_is_read_each_time() -> None:
    deep, deeper = (
        {"id": id, "title": id, "_deep": nested(depth)}
        for id, depth in (("deep", 300), ("deeper", 400))
    )

    parsed = last(a_json_feed(ONE, deep), a_json_feed(ONE, deeper, deep))

    assert titles_read(parsed) == ["deeper", "deep"]


def test_an_empty_document_forgets_nothing() -> None:
    parsed = last(a_json_feed(ONE, TWO), a_json_feed(), a_json_feed(ONE, TWO))

    assert titles_read(parsed) == []


def test_an_item_known_by_what_it_says_is_always_read() -> None:
    nameless = {"content_text": "no id, no link"}

    parsed = last(a_json_feed(nameless, ONE), a_json_feed(nameless, ONE, title="New"))

    assert [entry.content is not None for entry in parsed.entries] == [True]
