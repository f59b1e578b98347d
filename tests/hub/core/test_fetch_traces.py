"""Ids of traces, derived from what records tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from hub.core.fetch_traces import trace_of_fetch, trace_of_record
from protocols.model import Status
from storage.records import FeedId, Position, Record, RecordKind

AT = datetime(2026, 11, 28, 3, 0, 0, 123_456, tzinfo=UTC)
RECORD = Record(
    position=Position(7),
    at=AT - timedelta(microseconds=456),  # as it is stored
    feed_id=FeedId(3),
    kind=RecordKind.ENTRIES,
    status=Status(code=200, http="", next_fetch=AT),
)


def test_records_of_a_fetch_know_its_trace() -> None:
    trace = trace_of_fetch("epoch", FeedId(3), AT)
    found_by_query = replace(RECORD, feed_id=FeedId(9), source=FeedId(3))

    assert trace_of_record("epoch", RECORD) == trace
    assert trace_of_record("epoch", found_by_query) == trace
    assert len({trace.fetch, trace.commit}) == 2


def test_other_fetches_feeds_and_hubs_have_other_traces() -> None:
    later = AT + timedelta(milliseconds=1)

    ids = {
        trace_of_fetch("epoch", FeedId(3), AT).id,
        trace_of_fetch("epoch", FeedId(3), later).id,
        trace_of_fetch("epoch", FeedId(4), AT).id,
        trace_of_fetch("other", FeedId(3), AT).id,
    }

    assert len(ids) == 4


def test_an_event_of_the_hub_has_no_commit_of_a_fetch() -> None:
    event = replace(RECORD, kind=RecordKind.EVENT)

    assert trace_of_record("epoch", event).commit is None
