"""A creator's feed.json of which only new items are read says the same as whole."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

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
