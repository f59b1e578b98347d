"""Whatever a publisher does to its documents, in whatever order: nothing twice, nothing
lost."""

from __future__ import annotations

from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.model_publisher import ModelPublisher, Step
from tests.support.newsreader import reader_of

WHOLE = frozenset(Step) - {Step.EMPTY, Step.TRUNCATE, Step.ERROR_PAGE}
"""Steps whose document shows all that there is to see."""

steps = st.lists(st.sampled_from(Step), min_size=1, max_size=15)


@settings(max_examples=60, deadline=None)
@given(steps, st.integers(0, 2**32), st.booleans())
@example([Step.VANISH, Step.CHANGE_IDS, Step.RETURN], 1, True)
@example([Step.VANISH, Step.CHANGE_FORMAT, Step.RETURN], 1, True)
def test_no_entry_is_told_twice_and_no_new_one_is_lost(
    steps: list[Step], seed: int, has_ids: bool
) -> None:
    publisher = ModelPublisher(Random(seed), has_ids=has_ids)
    reader = reader_of(publisher.document())
    old, told, due = publisher.names(), list[str](), set[str]()
    for step in [*steps, Step.RETURN]:
        new = reader.read(publisher.publish(step)).new
        told += new
        if step in WHOLE:
            due |= publisher.names() - old
            assert due <= set(told), step
        assert not old & set(new), step

    assert len(told) == len(set(told))
