from __future__ import annotations

from collections.abc import Sequence

import pytest

from protocols.operational_events import (
    DATA_OF_TYPE,
    MEANINGS,
    TEST_TYPE,
    EventType,
    event_topic,
    read_event_types,
    takes,
    types_of_topic,
)
from protocols.protocol_errors import InvalidValue


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["*"], "*"),
        (["feed.gone", "*"], "*"),
        (["hub.*", "feed.*"], "feed.*,hub.*"),
        (["feed.gone", "feed.*", "hub.disk"], "feed.*,hub.disk"),
        ([" feed.gone ", "feed.failing", "feed.gone"], "feed.failing,feed.gone"),
    ],
)
def test_types_have_one_spelling(given: Sequence[str], expected: str) -> None:
    assert ",".join(read_event_types(given, "types")) == expected
    assert list(read_event_types(expected.split(","), "types")) == expected.split(",")


@pytest.mark.parametrize("given", [[], [""], ["feed"], ["feed.*", "hub.test"], ["**"]])
def test_unknown_types_are_refused_by_what_there_are(given: Sequence[str]) -> None:
    with pytest.raises(InvalidValue, match=r"types: expected .*subscription\.given_up"):
        read_event_types(given, "types")


def test_a_topic_names_its_types() -> None:
    topic = event_topic(["feed.*", "hub.disk"])
    assert topic == "events:feed.*,hub.disk"
    assert types_of_topic(topic) == ("feed.*", "hub.disk")
    assert types_of_topic("https://example.org/feed.*") == ()


@pytest.mark.parametrize(
    ("topic", "type", "expected"),
    [
        ("events:*", EventType.HUB_DISK, True),
        ("events:hub.*", EventType.HUB_DISK, True),
        ("events:feed.gone,hub.disk", EventType.HUB_DISK, True),
        ("events:feed.*", EventType.HUB_DISK, False),
        ("events:hub.backlog", EventType.HUB_DISK, False),
        ("https://example.org/*", EventType.HUB_DISK, False),
    ],
)
def test_a_topic_takes_its_types(topic: str, type: EventType, expected: bool) -> None:
    assert takes(topic, type) is expected


def test_every_type_has_a_meaning_and_data() -> None:
    assert MEANINGS.keys() == set(EventType)
    assert DATA_OF_TYPE.keys() == {*EventType, TEST_TYPE}
