"""``/admin/outputs``: what the hub publishes, who reads it, and a build of it now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from hub.publishing.output_readers import Output, ReaderCount
from hub.runtime.clock import Clock
from hub.services.output_reports import OutputReport, OutputReportService
from hub.services.served_collections import CollectionService
from hub.web.admin.page_access import OperatorPages, PageAccess, redirect, viewer_of
from hub.web.audited_requests import note_detail
from hub.web.operation import HTML, Operation
from hub.web.page_rendering import render_page

SHOWN_COLLECTIONS: Final = 100
REFRESH_SECONDS: Final = 2
PAGE: Final = "/admin/outputs"
ADDRESSES: Final[Mapping[Output, str]] = {
    Output.OPML: "/myPublicFeeds.opml",
    Output.TOPICS: "/topics",
    Output.SITEMAP: "/sitemap.xml",
    Output.COLLECTIONS: "/sitemap.xml",
    Output.OPENFEEDER: "/openfeeder",
}
NAMES: Final[Mapping[Output, str]] = {
    Output.OPML: "List of public feeds (OPML)",
    Output.TOPICS: "Topics: public feeds as this hub has them",
    Output.SITEMAP: "Sitemap of collections",
    Output.COLLECTIONS: "Collections for crawlers (SCP)",
    Output.OPENFEEDER: "Pages for language models (OpenFeeder)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRow:
    """An output. ``size`` is in bytes, None if the output is made on request.
    ``readers`` are the known ones, the busiest first, with "" for all others."""

    name: str
    address: str
    content: str
    size: int | None
    hour: int
    day: int
    readers: tuple[ReaderCount, ...]


class OutputPages(OperatorPages):
    def __init__(
        self,
        access: PageAccess,
        outputs: OutputReportService,
        collections: CollectionService,
        clock: Clock,
    ) -> None:
        super().__init__(access)
        self._outputs = outputs
        self._collections = collections
        self._clock = clock

    @Operation(
        method="GET",
        path=PAGE,
        id="get_outputs_page",
        summary="What the hub publishes: how much, who reads it, how builds went",
        answers={200: {HTML: str}, 303: None},
        problems=(403, 429, 503),
    )
    async def page(self, request: Request) -> Response:
        report = await self._outputs.get()
        collections = report.collections
        is_building = collections is not None and (
            collections.is_wanted or collections.pages_written is not None
        )
        return render_page(
            "outputs.html",
            headers={"Refresh": f"{REFRESH_SECONDS}"} if is_building else {},
            section="Outputs",
            viewer=viewer_of(request),
            now=self._clock.now(),
            report=report,
            rows=list(_rows(report)),
            collections=collections,
            listed=collections.listed[:SHOWN_COLLECTIONS] if collections else (),
            is_building=is_building,
        )

    @Operation(
        method="POST",
        path=f"{PAGE}/build",
        id="build_collections_of_page",
        summary="Build collections now, in the background",
        answers={303: None},
        problems=(403, 409, 429, 503),
    )
    async def build(self, request: Request) -> Response:
        snapshots = "snapshots" in viewer_of(request).form
        self._collections.ask(snapshots=snapshots)
        note_detail(request, "all snapshots" if snapshots else "what is due")
        return redirect(f"{PAGE}#collections")


def _rows(report: OutputReport) -> Iterator[OutputRow]:
    for output, content, size in _contents(report):
        readers = tuple(each for each in report.readers if each.output is output)
        yield OutputRow(
            name=NAMES[output],
            address=ADDRESSES[output],
            content=content,
            size=size,
            hour=sum(each.hour for each in readers),
            day=sum(each.day for each in readers),
            readers=readers,
        )


def _contents(report: OutputReport) -> Iterator[tuple[Output, str, int | None]]:
    feeds = _counted(report.topics, "feed")
    entries = _counted(report.pages.count, "entry", "entries")
    yield Output.OPML, feeds, report.opml_size
    yield Output.TOPICS, f"{feeds}, {entries}", None
    if (found := report.collections) is not None:
        listed = len(found.listed)
        yield Output.SITEMAP, _counted(listed, "collection"), found.sitemap_size
        files = _counted(listed, "file")
        kept = f", {found.kept:,} kept besides" if found.kept else ""
        yield Output.COLLECTIONS, files + kept, found.size
    if report.has_openfeeder:
        key = ", for those who have the key" if report.is_openfeeder_keyed else ""
        yield Output.OPENFEEDER, _counted(report.pages.count, "page") + key, None


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
