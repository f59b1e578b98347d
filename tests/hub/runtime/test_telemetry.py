"""Spans of deliveries, where the way of a whole trace (tests/e2e) shows too little."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from hub.core.delivery.delivery_outcome import CallbackResponse
from hub.runtime.telemetry import Traces
from protocols.http import read_traceparent
from storage.records import Position, Record, RecordKind
from tests.support.clock import ManualClock
from tests.support.subscriptions import a_record, a_subscription

DELIVERED = CallbackResponse(status=204, milliseconds=3)
EARLIER = a_record(1)
LATER = replace(a_record(2), at=EARLIER.at + timedelta(minutes=5))


def deliver(traces: Traces, *records: Record) -> str:
    """Trace a delivery that arrives; returns its header."""
    fetches = traces.of_records(records)
    told = [each.position for each in records]
    span = traces.begin_delivery(fetches, a_subscription(), told, retries=0)
    span.end(DELIVERED)
    return span.traceparent


async def test_a_delivery_of_several_records_is_linked_to_the_earlier_fetches() -> None:
    exporter = InMemorySpanExporter()
    traces = Traces(exporter, ManualClock(), "epoch")
    earlier, later = traces.of_records([EARLIER, LATER])

    deliver(traces, EARLIER, LATER)
    await traces.close()

    (span,) = exporter.get_finished_spans()
    assert span.context.trace_id == later.id
    assert span.parent is not None
    assert span.parent.span_id == later.commit
    assert [each.context.trace_id for each in span.links] == [earlier.id]
    assert span.attributes is not None
    assert span.attributes["fanfare.records"] == (1, 2)


async def test_records_of_one_fetch_have_no_links() -> None:
    traces = Traces(InMemorySpanExporter(), ManualClock(), "epoch")

    found = traces.of_records([EARLIER, replace(EARLIER, position=Position(2))])
    await traces.close()

    assert len(found) == 1


async def test_an_event_of_the_hub_begins_its_own_trace() -> None:
    exporter = InMemorySpanExporter()
    traces = Traces(exporter, ManualClock(), "epoch")

    deliver(traces, replace(EARLIER, kind=RecordKind.EVENT))
    await traces.close()

    (span,) = exporter.get_finished_spans()
    assert span.parent is None


async def test_a_failure_is_told_without_the_words_of_its_reason() -> None:
    exporter = InMemorySpanExporter()
    traces = Traces(exporter, ManualClock(), "epoch")
    fetches = traces.of_records([EARLIER])
    span = traces.begin_delivery(fetches, a_subscription(), [], retries=0)

    span.end(replace(DELIVERED, status=502, error="502 of https://you.example/?secret"))
    await traces.close()

    (told,) = exporter.get_finished_spans()
    assert told.status.status_code is StatusCode.ERROR
    assert told.attributes is not None
    assert told.attributes["error.type"] == "502"
    assert "secret" not in told.to_json()


async def test_what_is_not_sampled_is_not_sent_and_tells_callbacks_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0")
    exporter = InMemorySpanExporter()
    traces = Traces(exporter, ManualClock(), "epoch")

    parent = read_traceparent(deliver(traces, EARLIER))
    await traces.close()

    assert not exporter.get_finished_spans()
    assert parent is not None
    assert not parent.is_sampled
