"""``/api/outputs``: what the hub publishes, and who reads it."""

from __future__ import annotations

from typing import Self

from starlette.requests import Request
from starlette.responses import Response

from hub.publishing.collection_builder import BuildOutcome
from hub.publishing.output_readers import Output, ReaderCount
from hub.services.output_reports import (
    CollectionReport,
    OutputReport,
    OutputReportService,
)
from hub.web.api.operator_routes import CollectionJson
from hub.web.json_output import JsonObject, Time, json_response
from hub.web.operation import ApiOperation, Routes
from storage.records import TokenScope

MOST_LISTED = 1_000
"""The most collections in one answer."""


class CollectionBuildOutcomeJson(JsonObject):
    """A build that has ended: when it began, and how many ``seconds`` it took.

    It made so many ``files`` with so many ``pages``, or an ``error`` ended it.
    """

    begun: Time
    seconds: float
    files: int
    pages: int
    error: str

    @classmethod
    def of_outcome(cls, outcome: BuildOutcome) -> Self:
        return cls.of(outcome, seconds=round(outcome.seconds, 3))


class CollectionReportJson(JsonObject):
    """Collections for crawlers.

    ``listed``: the first thousand of the ``total`` in the sitemap, snapshots first;
    ``size``: bytes of all of them; ``kept``: how many others are served. ``made``: when
    the present generation was published. ``pages_written``: by the build under way,
    null if there is none; ``wanted``: a build was asked for.
    """

    listed: list[CollectionJson]
    total: int
    size: int
    kept: int
    sitemap_size: int
    made: Time | None
    next_delta: Time | None
    next_snapshot: Time | None
    last_build: CollectionBuildOutcomeJson | None
    wanted: bool
    pages_written: int | None

    @classmethod
    def of_report(cls, report: CollectionReport) -> Self:
        last = report.last_build
        return cls.of(
            report,
            listed=[CollectionJson.of(each) for each in report.listed[:MOST_LISTED]],
            total=len(report.listed),
            last_build=last and CollectionBuildOutcomeJson.of_outcome(last),
            wanted=report.is_wanted,
        )


class OutputReaderJson(JsonObject):
    """Answered requests of a reader for an output.

    ``hour``: in the present hour and the one before; ``day``: in a day. ``reader`` "":
    all readers who are not known.
    """

    output: Output
    reader: str
    hour: int
    day: int

    @classmethod
    def of_all(cls, counts: list[ReaderCount]) -> list[OutputReaderJson]:
        return [cls.of(each) for each in counts]


class OutputsJson(JsonObject):
    """What is published, and who reads it.

    ``topics``: public feeds, which the OPML lists too. ``opml_size``: bytes of the OPML
    as it was last made; null if it is long, and nobody has asked for it since the hub
    started. ``pages``: those of OpenFeeder; ``pages_changed_at``: when one last
    changed. ``collections``: null if there are none. Readers are counted in memory,
    since ``counted_since``.
    """

    topics: int
    opml_size: int | None
    pages: int
    pages_changed_at: Time | None
    openfeeder: bool
    openfeeder_key: bool
    collections: CollectionReportJson | None
    readers: list[OutputReaderJson]
    counted_since: Time

    @classmethod
    def of_report(cls, report: OutputReport) -> Self:
        pages, collections = report.pages, report.collections
        return cls(
            topics=report.topics,
            opml_size=report.opml_size,
            pages=pages.count,
            pages_changed_at=pages.changed_at if pages.change else None,
            openfeeder=report.has_openfeeder,
            openfeeder_key=report.is_openfeeder_keyed,
            collections=CollectionReportJson.of_report(collections)
            if collections
            else None,
            readers=OutputReaderJson.of_all(list(report.readers)),
            counted_since=report.counted_since,
        )


class OutputRoutes(Routes):
    tag = "operator"

    def __init__(self, outputs: OutputReportService) -> None:
        self._outputs = outputs

    @ApiOperation(
        method="GET",
        path="/outputs",
        id="get_outputs",
        scope=TokenScope.ADMIN,
        summary="What the hub publishes: how much, who reads it, how builds went",
        description="The answer has `topics`, `opml_size` (bytes of their list in OPML"
        " as last made; null of more than 250 feeds of which nobody has asked for it),"
        " `pages` of OpenFeeder, `collections` (`listed` files with their sizes,"
        " `made`, `next_delta`, `next_snapshot`, `last_build` or its `error`,"
        " `pages_written` of the build under way), and `readers`: answered requests by"
        " output and program, `hour` and `day`.",
        answers={200: OutputsJson},
        problems=(503,),
    )
    async def show(self, request: Request) -> Response:
        return json_response(OutputsJson.of_report(await self._outputs.get()))
