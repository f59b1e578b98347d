from __future__ import annotations

import pytest

from protocols.model import Status
from storage.records import (
    EntryId,
    EntryRef,
    FeedId,
    Format,
    Position,
    Record,
    RecordKind,
    Updates,
)
from storage.subscription_filter import (
    keeps_document,
    superseded,
    wanted_entries,
    wants,
)
from tests.support.storage_scene import START

JSON, AS_IS = Format.JSON, Format.AS_IS
NONE, FRESH, ALL = Updates.NONE, Updates.FRESH, Updates.ALL


@pytest.mark.parametrize(
    ("format", "of_topic", "expected"),
    [
        (Format.AS_IS, "rss", True),
        (Format.JSON, "", False),
        (Format.BY_TOPIC, "", True),
        (Format.BY_TOPIC, "part", True),
        (Format.BY_TOPIC, "rss", False),
    ],
)
def test_a_document_is_kept_for_those_who_are_sent_it(
    format: Format, of_topic: str, expected: bool
) -> None:
    assert keeps_document(format, of_topic) is expected


@pytest.mark.parametrize(
    ("kind", "any_fresh", "wanting"),
    [
        (RecordKind.BASELINE, True, set()),
        (
            RecordKind.ENTRIES,
            False,
            {(each, updates) for each in (JSON, AS_IS) for updates in Updates},
        ),
        (
            RecordKind.CONTENT,
            False,
            {(each, updates) for each in (JSON, AS_IS) for updates in Updates},
        ),
        (RecordKind.ERROR, False, {(JSON, updates) for updates in Updates}),
        (RecordKind.RECOVERED, False, {(JSON, updates) for updates in Updates}),
        (
            RecordKind.UPDATED,
            False,
            {(JSON, ALL), (AS_IS, NONE), (AS_IS, FRESH), (AS_IS, ALL)},
        ),
        (
            RecordKind.UPDATED,
            True,
            {(JSON, FRESH), (JSON, ALL), (AS_IS, NONE), (AS_IS, FRESH), (AS_IS, ALL)},
        ),
        (RecordKind.DELETED, True, {(JSON, ALL)}),
    ],
)
def test_who_wants_a_record(
    kind: RecordKind, any_fresh: bool, wanting: set[tuple[Format, Updates]]
) -> None:
    found = {
        (format, updates)
        for format in (JSON, AS_IS)
        for updates in Updates
        if wants(format, updates, kind, any_fresh)
    }

    assert found == wanting


@pytest.mark.parametrize("kind", RecordKind)
def test_as_is_does_not_want_what_a_later_record_of_the_fetch_brings(
    kind: RecordKind,
) -> None:
    assert not wants(AS_IS, ALL, kind, True, is_superseded=True)
    assert wants(JSON, ALL, kind, True, is_superseded=True) is wants(
        JSON, ALL, kind, True
    )


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([], []),
        (["entries"], [False]),
        (["updated"], [False]),
        (["recovered", "updated"], [False, False]),
        (["recovered", "deleted", "updated", "entries"], [False, False, True, False]),
        (["recovered", "content"], [False, False]),
        (["updated", "error"], [False, False]),
    ],
)
def test_the_last_record_with_news_of_the_document_brings_it(
    kinds: list[str], expected: list[bool]
) -> None:
    assert superseded([RecordKind(kind) for kind in kinds]) == expected


def record(kind: RecordKind) -> Record:
    fresh, old = EntryRef(EntryId(1), 2), EntryRef(EntryId(2), 2, fresh=False)
    return Record(
        position=Position(1),
        at=START,
        feed_id=FeedId(1),
        kind=kind,
        status=Status(),
        entries=(fresh, old),
    )


@pytest.mark.parametrize(
    ("kind", "updates", "ids"),
    [
        (RecordKind.UPDATED, FRESH, [1]),
        (RecordKind.UPDATED, ALL, [1, 2]),
        (RecordKind.ENTRIES, FRESH, [1, 2]),
    ],
)
def test_only_fresh_updates_are_sent_unless_all_are_asked_for(
    kind: RecordKind, updates: Updates, ids: list[int]
) -> None:
    sent = wanted_entries(record(kind), updates)

    assert [ref.entry_id for ref in sent] == ids
