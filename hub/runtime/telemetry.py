"""Traces by OpenTelemetry: a fetch, its commit and its deliveries are one trace.

Nothing here is imported unless `hub.settings.Settings.traces` turns traces on, because
OpenTelemetry is an extra. Spans wait in a queue with a bound, and a thread sends them
in batches; when the queue is full, spans are lost, and the hub waits for nothing. They
tell neither of content nor of secrets: no URLs, whose paths and queries may be
capabilities, but hosts, numbers of feeds and subscriptions, and positions.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SpanExporter,
)
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

import hub
from hub.core.delivery.delivery_outcome import CallbackResponse, Verdict
from hub.core.fetch_traces import FetchTrace, trace_of_fetch, trace_of_record
from hub.core.fetched import Fetched
from hub.runtime.caching import BoundedDict
from hub.runtime.clock import Clock
from protocols.http import TraceParent, format_traceparent, read_traceparent
from protocols.urls import host_name
from storage.records import (
    FeedId,
    FetchCommit,
    PollReason,
    Position,
    Record,
    Subscription,
)

SERVICE: Final = "fanfare"
"""The name of the service, unless ``OTEL_SERVICE_NAME`` gives another one."""
END_SECONDS: Final = 1.0
"""Seconds that the end of the hub waits for the last spans to be sent."""
MOST_FEEDS: Final = 10_000
"""Feeds of which it is remembered whose request asks for their next fetch."""
MOST_CAUSES: Final = 8
"""Requests that one fetch is linked to."""
_MICROSECOND = timedelta(microseconds=1)
_START = datetime.fromisoformat("1970-01-01T00:00:00+00:00")

Attributes = Mapping[str, str | int | bool | Sequence[int]]

_of_request: ContextVar[TraceParent | None] = ContextVar("traceparent", default=None)


class TracesUnusable(Exception):
    """The environment asks for what the exporter cannot do; the message says what."""


class _PlannedIds(RandomIdGenerator):
    """Gives the next trace or span the id that was planned for it, if any.

    Spans are begun by one thread, in which nothing comes between plan and use.
    """

    def __init__(self) -> None:
        self.trace: int | None = None
        self.span: int | None = None

    def generate_trace_id(self) -> int:
        return super().generate_trace_id() if self.trace is None else self.trace

    def generate_span_id(self) -> int:
        return super().generate_span_id() if self.span is None else self.span


def create_exporter(name: str, environ: Mapping[str, str]) -> SpanExporter:
    """The exporter ``otlp``, as OpenTelemetry's variables set it up, or ``console``.

    Raises `TracesUnusable`.
    """
    if name == "console":
        return ConsoleSpanExporter(formatter=_as_line)
    for variable in (
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
    ):
        if environ.get(variable, "http/protobuf") != "http/protobuf":
            raise TracesUnusable(
                f"{variable}: expected http/protobuf, not {environ[variable]!r}"
            )
    return OTLPSpanExporter()


def _as_line(span: ReadableSpan) -> str:
    return f"{span.to_json(indent=None)}\n"


class DeliverySpan:
    """The span of one attempt to deliver, until its callback has answered."""

    def __init__(self, span: Span, clock: Clock) -> None:
        self._span = span
        self._clock = clock

    @property
    def traceparent(self) -> str:
        """The header that makes the request part of the span."""
        context = self._span.get_span_context()
        return format_traceparent(
            TraceParent(context.trace_id, context.span_id, context.trace_flags.sampled)
        )

    def end(self, reply: CallbackResponse) -> None:
        """End the span with what the callback answered."""
        error = "" if reply.verdict is Verdict.DELIVERED else reply.error
        _note_answer(self._span, reply.status, error)
        _end(self._span, bool(error), self._clock.now())


class Traces:
    """Makes the spans of a hub. ``epoch`` is that of its log.

    Ids and the decision to sample are the same for all spans of a fetch, also after a
    restart.
    """

    def __init__(self, exporter: SpanExporter, clock: Clock, epoch: str) -> None:
        self._clock = clock
        self._epoch = epoch
        self._ids = _PlannedIds()
        self._causes: BoundedDict[FeedId, tuple[TraceParent, ...]] = BoundedDict(
            MOST_FEEDS
        )
        resource = Resource({"service.version": hub.__version__})
        named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in (
            os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        )
        if not named:
            resource = resource.merge(Resource({"service.name": SERVICE}))
        self._provider = TracerProvider(
            resource=Resource.create().merge(resource),
            id_generator=self._ids,
            span_limits=SpanLimits(),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(SERVICE, hub.__version__)

    async def close(self) -> None:
        """Send what waits, for at most `END_SECONDS`."""
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def end() -> None:
            self._provider.shutdown()
            loop.call_soon_threadsafe(ended.set)

        # A daemon, for a collector that hangs must not keep the process.
        threading.Thread(target=end, name="traces", daemon=True).start()
        try:
            async with asyncio.timeout(END_SECONDS):
                await ended.wait()
        except TimeoutError:
            return

    # --- what a request of a publisher brings about ---

    @contextmanager
    def of_request(self, traceparent: str) -> Iterator[None]:
        """While entered, fetches that are asked for come from the request with this
        header."""
        token = _of_request.set(read_traceparent(traceparent))
        try:
            yield
        finally:
            _of_request.reset(token)

    def note_cause(self, feed_id: FeedId) -> None:
        """Link the feed's next fetch to the current request, if that has a trace.

        The fetch has a trace of its own: several requests may ask for one fetch, and a
        stranger's request decides neither on ids nor on sampling.
        """
        cause = _of_request.get()
        if cause is not None:
            known = self._causes.get(feed_id, ())
            self._causes[feed_id] = (*known, cause)[-MOST_CAUSES:]

    def take_causes(self, feed_id: FeedId) -> tuple[TraceParent, ...]:
        """The requests that asked for the fetch that begins now."""
        return self._causes.pop(feed_id, ())

    # --- fetches and commits ---

    def tell_fetch(
        self,
        feed_id: FeedId,
        reason: PollReason,
        fetched: Fetched,
        causes: Sequence[TraceParent],
        *,
        is_lost: bool = False,
    ) -> None:
        """Tell of a visit that is over, and of the request that it made.

        ``is_lost``: it was not committed.
        """
        trace = trace_of_fetch(self._epoch, feed_id, fetched.at)
        span = self._begin(
            "fetch",
            Context(),
            fetched.started,
            {"fanfare.feed.id": feed_id, "fanfare.poll.reason": reason.value},
            span_id=trace.fetch,
            trace_id=trace.id,
            links=[Link(_context_of(cause)) for cause in causes],
        )
        if not (fetched.is_pushed or fetched.is_partial):
            self._tell_request(trace, feed_id, fetched)
        _end(span, is_lost or bool(fetched.error), self._clock.now())

    def _tell_request(
        self, trace: FetchTrace, feed_id: FeedId, fetched: Fetched
    ) -> None:
        attributes: dict[str, str | int] = {
            "fanfare.feed.id": feed_id,
            "http.request.method": "GET",
            "server.address": host_name(fetched.url),
            "fanfare.redirects": len(fetched.redirects),
        }
        parent = self._below(trace, trace.fetch)
        span = self._begin(
            "GET", parent, fetched.started, attributes, kind=SpanKind.CLIENT
        )
        _note_answer(span, fetched.status, fetched.error)
        _end(span, bool(fetched.error), fetched.at)

    @contextmanager
    def committing(self, commit: FetchCommit, fetched_at: datetime) -> Iterator[None]:
        """Tell of the commit that is made while this is entered.

        ``fetched_at``: when the document of the visit came. A site is read in several
        steps, each of which has a commit and a trace; the later ones are linked to the
        first.
        """
        feed_id = commit.feed_id
        trace = trace_of_fetch(self._epoch, feed_id, commit.at)
        visit = trace_of_fetch(self._epoch, feed_id, fetched_at)
        is_first = visit == trace
        begun, has_failed = self._clock.now(), True
        try:
            yield
            has_failed = False
        finally:
            span = self._begin(
                "commit",
                self._below(trace, trace.fetch) if is_first else Context(),
                begun,
                {
                    "fanfare.feed.id": feed_id,
                    "fanfare.entries": len(commit.entries),
                    "fanfare.records": len(commit.records),
                },
                span_id=trace.commit,
                trace_id=trace.id,
                links=[] if is_first else [Link(self._context(visit, visit.fetch))],
            )
            _end(span, has_failed, self._clock.now())

    # --- deliveries ---

    def of_records(self, records: Sequence[Record]) -> tuple[FetchTrace, ...]:
        """The traces of the fetches that records come from, each once, the latest
        last."""
        found = [trace_of_record(self._epoch, record) for record in records]
        return tuple(dict.fromkeys(found))

    def begin_delivery(
        self,
        fetches: Sequence[FetchTrace],
        subscription: Subscription,
        records: Sequence[Position],
        *,
        retries: int,
    ) -> DeliverySpan:
        """Begin the span of one attempt to deliver.

        It belongs to the trace of the last fetch that it tells of, and is linked to the
        others.
        """
        *others, last = fetches
        attributes: dict[str, str | int | Sequence[int]] = {
            "fanfare.feed.id": subscription.feed_id,
            "fanfare.subscription.id": subscription.id,
            "fanfare.records": tuple(records),
            "http.request.method": "POST",
            "http.request.resend_count": retries,
            "server.address": host_name(subscription.callback),
        }
        span = self._begin(
            "deliver",
            Context() if last.commit is None else self._below(last, last.commit),
            self._clock.now(),
            attributes,
            trace_id=last.id,
            kind=SpanKind.CLIENT,
            links=[
                Link(self._context(each, each.commit))
                for each in others
                if each.commit is not None
            ],
        )
        return DeliverySpan(span, self._clock)

    # --- spans ---

    def _begin(
        self,
        name: str,
        parent: Context,
        at: datetime,
        attributes: Attributes,
        *,
        trace_id: int | None = None,
        span_id: int | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        links: Sequence[Link] = (),
    ) -> Span:
        self._ids.trace, self._ids.span = trace_id, span_id
        try:
            return self._tracer.start_span(
                name, parent, kind, attributes, links, _nanoseconds(at)
            )
        finally:
            self._ids.trace = self._ids.span = None

    def _below(self, trace: FetchTrace, span_id: int) -> Context:
        """The context of a child of a span that may have been told of by an earlier
        process."""
        return set_span_in_context(
            NonRecordingSpan(self._context(trace, span_id)), Context()
        )

    def _context(self, trace: FetchTrace, span_id: int) -> SpanContext:
        sampled = self._provider.sampler.should_sample(None, trace.id, "fetch")
        is_sampled = sampled.decision is not Decision.DROP
        return _context_of(TraceParent(trace.id, span_id, is_sampled))


def _context_of(parent: TraceParent) -> SpanContext:
    flags = TraceFlags.SAMPLED if parent.is_sampled else TraceFlags.DEFAULT
    return SpanContext(
        parent.trace_id, parent.span_id, is_remote=True, trace_flags=TraceFlags(flags)
    )


def _note_answer(span: Span, status: int, error: str) -> None:
    if status:
        span.set_attribute("http.response.status_code", status)
    if error:
        span.set_attribute("error.type", str(status) if status >= 300 else "_OTHER")


def _end(span: Span, has_failed: bool, at: datetime) -> None:
    """The status has no text: reasons quote URLs and what publishers wrote."""
    if has_failed:
        span.set_status(Status(StatusCode.ERROR))
    span.end(_nanoseconds(at))


def _nanoseconds(at: datetime) -> int:
    return (at - _START) // _MICROSECOND * 1_000
