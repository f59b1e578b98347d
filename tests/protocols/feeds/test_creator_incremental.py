"""A creator's feed.json of which only new items are read says the same as whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.feeds.limits import MAX_ENTRIES
from protocols.model import ParsedFeed
from tests.support.changing_json import nested
from tests.support.creator import a_creator_feed, an_item
from tests.support.two_readers import TwoReaders

SLUGS = st.sampled_from(["a", "b", "c", ""])
CHANGES = st.sampled_from(
    [{}, {"title": "Other"}, {"url": "no"}, {"tags": [5]}, {"discoverable": False}]
)


@given(st.lists(st.lists(st.tuples(SLUGS, CHANGES), max_size=4), max_size=5))
def test_either_way_commits_the_same(
    history: list[list[tuple[str, dict[str, Any]]]],
) -> None:
    readers = TwoReaders()
    for items in history:
        made = [an_item(slug, **changes) for slug, changes in items]
        readers.fetch(json.dumps(a_creator_feed(*made)).encode())


def a_document(*items: Any, **changes: Any) -> bytes:
    return json.dumps(a_creator_feed(*items, **changes)).encode()


def last(*documents: bytes) -> ParsedFeed:
    """What is read of the last of a feed's documents."""
    readers = TwoReaders()
    for document in documents:
        parsed = readers.fetch(document)
    assert parsed is not None
    return parsed


def test_where_only_the_head_has_changed_no_item_is_read_and_all_are_there() -> None:
    parsed = last(a_document("a", "b"), a_document("a", "b", generatedAt="x"))

    assert parsed.entries == ()
    assert parsed.entry_count == 2
    assert parsed.is_complete


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(5, id="no object"),
        pytest.param(an_item(""), id="no slug"),
        pytest.param(an_item("b", title="Other"), id="the slug of another"),
        pytest.param(an_item("c", url="no"), id="wrong"),
        pytest.param(an_item("c", tags=[5]), id="to be noted"),
    ],
)
def test_what_is_wrong_with_an_item_is_said_each_time(odd: Any) -> None:
    items = an_item("a"), an_item("b"), odd

    parsed = last(a_document(*items), a_document(*items, generatedAt="x"))

    assert len(parsed.problems) == 1
    assert {entry.title for entry in parsed.entries} <= {"On c"}


@pytest.mark.bulk
def test_a_list_that_is_cut_off_is_never_taken_for_a_complete_one() -> None:
    slugs = [str(number) for number in range(MAX_ENTRIES + 1)]

    parsed = last(a_document(*slugs), a_document(*slugs, generatedAt="x"))

    assert parsed.entries == ()
    assert not parsed.is_complete
    assert parsed.dropped == 1


def test_items_that_cannot_be_known_again_are_not_taken_for_one_another() -> None:
    noted = an_item("a", tags=[5])
    deep = an_item("b", deep=nested(300))

    parsed = last(a_document(noted), a_document(deep, noted))

    assert [entry.title for entry in parsed.entries] == ["On b", "On a"]
