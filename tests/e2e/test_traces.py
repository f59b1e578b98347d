"""Traces, as a collector and the callbacks get them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from protocols.http import TraceParent, read_traceparent
from tests.support.command import ROOT
from tests.support.http_server import Origin, ServerAnswer, ServerRequest
from tests.support.hub_process import LOOPBACK, HubDied, HubProcess
from tests.support.stage import open_stage
from tests.support.subscribers import Subscriber
from tests.support.waiting import eventually

PUBLISHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Collector(Origin):
    """Takes spans by OTLP over HTTP."""

    def __init__(self) -> None:
        super().__init__()
        self.serve("/v1/traces", ServerAnswer())

    @property
    def settings(self) -> dict[str, str]:
        return {
            **LOOPBACK,
            "FANFARE_TRACES": "otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url("").rstrip("/"),
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in _read(request).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def named(self, name: str) -> list[Span]:
        return [each for each in self.spans if each.name == name]

    def attributes(self, span: Span) -> dict[str, object]:
        return {
            each.key: each.value.int_value or each.value.string_value
            for each in span.attributes
        }


def _read(request: ServerRequest) -> ExportTraceServiceRequest:
    read = ExportTraceServiceRequest()
    read.ParseFromString(request.body)
    return read


def parents_sent(subscribers: Sequence[Subscriber]) -> list[TraceParent | None]:
    return [
        read_traceparent(delivery.headers["traceparent"])
        for each in subscribers
        for delivery in each.deliveries
    ]


async def test_a_fetch_its_commit_and_all_attempts_of_its_deliveries_are_one_trace(
    tmp_path: Path,
) -> None:
    async with (
        Collector() as collector,
        open_stage(tmp_path, collector.settings) as stage,
    ):
        feed_id, feed = await stage.add_feed()
        ready = await stage.subscribe("ready", feed)
        await stage.subscribe("failing?token=secret", feed)
        failing = stage.subscribers["failing"]
        failing.answer(ServerAnswer(status=500), ServerAnswer())
        stage.publisher.publish(feed)
        await stage.api.ask(
            "POST",
            "/",
            data={"hub.mode": "publish", "hub.url": stage.publisher.url(feed)},
            headers={"traceparent": PUBLISHER},
        )
        await eventually(lambda: bool(ready.receipts and failing.receipts))
        ids = await stage.api.subscriptions()
        await stage.hub.terminate()
        await stage.hub.start()
        await stage.hub.wait_ready()
        await stage.api.retry(ids[f"{failing.url}?token=secret"])
        await eventually(lambda: len(failing.receipts) == 2)
        await eventually(lambda: len(collector.named("deliver")) == 3)

        delivered = collector.named("deliver")
        trace = delivered[0].trace_id
        of_trace = [each for each in collector.spans if each.trace_id == trace]
        (fetch,) = [each for each in of_trace if each.name == "fetch"]
        (get,) = [each for each in of_trace if each.name == "GET"]
        (commit,) = [each for each in of_trace if each.name == "commit"]
        names = sorted(each.name for each in of_trace)
        assert names == ["GET", "commit", *3 * ["deliver"], "fetch"]
        assert not fetch.parent_span_id
        assert get.parent_span_id == commit.parent_span_id == fetch.span_id
        assert {each.parent_span_id for each in delivered} == {commit.span_id}
        assert fetch.start_time_unix_nano <= commit.start_time_unix_nano
        assert commit.end_time_unix_nano <= fetch.end_time_unix_nano
        assert {
            (int.from_bytes(each.trace_id), int.from_bytes(each.span_id))
            for each in delivered
        } == {
            (each.trace_id, each.span_id)
            for each in parents_sent([ready, failing])
            if each and each.is_sampled
        }
        (link,) = fetch.links
        assert link.trace_id.hex() == PUBLISHER.split("-")[1]
        answered = [collector.attributes(each) for each in delivered]
        statuses = [each["http.response.status_code"] for each in answered]
        assert Counter(statuses) == {200: 2, 500: 1}
        assert {each["server.address"] for each in answered} == {"127.0.0.1"}
        assert {each["fanfare.feed.id"] for each in answered} == {feed_id}
        assert not any(b"secret" in each.body for each in collector.requests)


async def test_without_traces_callbacks_get_no_header(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        subscriber = await stage.subscribe("reader", feed)
        await stage.publish(feed_id, feed)
        await eventually(lambda: bool(subscriber.receipts))

        assert "traceparent" not in subscriber.deliveries[0].headers


async def test_a_protocol_of_the_collector_that_is_not_spoken_is_refused(
    tmp_path: Path,
) -> None:
    settings = {"FANFARE_TRACES": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    hub = HubProcess(tmp_path, settings)
    await hub.start()

    with pytest.raises(HubDied, match="expected http/protobuf, not 'grpc'"):
        await hub.wait_ready()


@pytest.mark.once("it ends before it opens its database")
def test_without_the_extra_it_is_told_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from hub.__main__ import main; main()"
    )
    variables = {
        "FANFARE_DATABASE": f"sqlite:{tmp_path}/fanfare.db",
        "FANFARE_PORT": "0",
        "FANFARE_TRACES": "otlp",
    }
    ended = subprocess.run(
        [sys.executable, "-c", program, "serve"],
        capture_output=True,
        text=True,
        check=False,
        env=variables,
        cwd=ROOT,
    )

    assert ended.returncode != 0
    assert "install fanfare-hub[opentelemetry]" in ended.stderr
    assert "Traceback" not in ended.stderr
