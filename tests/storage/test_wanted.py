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
from storage.wanted import wanted_entries, wants
from tests.support.storage_scene import START

JSON, AS_IS = Format.JSON, Format.AS_IS
NONE, FRESH, ALL = Updates.NONE, Updates.FRESH, Updates.ALL


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
