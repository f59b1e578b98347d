"""Every operation outside of ``/api``, once: what it is given, and what it answers.

They take no token; where one opens more, ``is_opened`` says so. The OpenAPI document
is made from this table as from that of ``/api``.
"""

from __future__ import annotations

from hub.services.public import DEFAULT_PAGE, LONGEST_PAGE
from hub.web.door_operations import DOOR_OPERATIONS
from hub.web.open_operation import HTML, JSON, OPML, TEXT, OpenOperation
from hub.web.openfeeder_operations import OPENFEEDER_OPERATIONS
from hub.web.operation import Parameter
from hub.web.publishing.crawler_routes import XML
from hub.web.publishing.front_page_routes import ASSETS
from protocols.live.messages import BodyFormat, WantedUpdates
from protocols.live.sse import EVENT_STREAM
from protocols.scp.collection import MEDIA_TYPE
from protocols.topic_pages import TopicFormat

_STREAM_QUERY = (
    Parameter(
        name="topic",
        help="the URL of a feed the hub has",
        is_required=True,
        is_repeated=True,
    ),
    Parameter(name="cursor", help="send all that came after it"),
    Parameter(name="format", help="of the bodies", choices=tuple(BodyFormat)),
    Parameter(name="updates", help="of known entries", choices=tuple(WantedUpdates)),
)

_PAGE_QUERY = (
    Parameter(name="before", help="where a page begins, from the link to it"),
    Parameter(
        name="limit",
        help=f"entries; cut to 1 to {LONGEST_PAGE}",
        kind="integer",
        default=DEFAULT_PAGE,
        least=0,
    ),
)

OPEN_OPERATIONS: tuple[OpenOperation, ...] = (
    *OPENFEEDER_OPERATIONS,
    *DOOR_OPERATIONS,
    OpenOperation(
        method="GET",
        path="/stream",
        summary="New entries as server-sent events, or a websocket",
        description="Events are named notification and reset; their data are"
        " StreamNotification and StreamReset, their id is the cursor. As a websocket"
        " it exchanges JSON messages, which the reference describes.",
        query=_STREAM_QUERY,
        answers={200: {EVENT_STREAM: "string"}},
        problems=(401, 403, 404, 406, 422, 429, 503),
        is_opened=True,
    ),
    OpenOperation(
        method="GET",
        path="/metrics",
        summary="Numbers for Prometheus, text format 0.0.4",
        answers={200: {TEXT: "string"}},
        problems=(503,),
    ),
    OpenOperation(
        method="GET",
        path="/healthz",
        summary="Whether the process is alive",
        answers={200: {JSON: "Alive"}},
        problems=(),
    ),
    OpenOperation(
        method="GET",
        path="/readyz",
        summary="Whether the hub can work, and why not",
        answers={200: {JSON: "Readiness"}, 503: {JSON: "Readiness"}},
        problems=(),
    ),
    OpenOperation(
        method="GET",
        path="/",
        summary="A page for people",
        answers={200: {HTML: "string"}},
        problems=(429, 503),
    ),
    OpenOperation(
        method="GET",
        path="/about",
        summary="A page for publishers: who asks for their feeds",
        answers={200: {HTML: "string"}},
    ),
    OpenOperation(
        method="GET",
        path="/robots.txt",
        summary="What crawlers may read, and where the sitemap is",
        answers={200: {TEXT: "string"}},
    ),
    OpenOperation(
        method="GET",
        path="/sitemap.xml",
        summary="The collections there are (SCP 0.1)",
        answers={200: {XML: "string"}, 304: {}},
        problems=(404, 429),
    ),
    OpenOperation(
        method="GET",
        path="/scp/{name}",
        summary="A collection of pages, in JSON lines, compressed",
        description="Never changes under its name. 410 when it is not kept any more.",
        answers={200: {MEDIA_TYPE: "string"}, 304: {}},
        headers={200: {"ETag": "sha256: and the hash of the uncompressed bytes"}},
        problems=(404, 410, 429),
    ),
    OpenOperation(
        method="GET",
        path="/myPublicFeeds.opml",
        summary="The public feeds, as OPML 2.0",
        answers={200: {OPML: "string"}, 304: {}},
        problems=(429, 503),
    ),
    OpenOperation(
        method="GET",
        path="/topics/entries/{id}",
        summary="An entry of a public feed that has no address of its own",
        description="The page of its topic that has this entry alone.",
        answers={
            200: {TopicFormat.ATOM.media_type.partition(";")[0]: "string"},
            304: {},
        },
        problems=(404, 429, 503),
    ),
    *(
        OpenOperation(
            method="GET",
            path=f"/topics/{{id}}.{format}",
            summary=f"A public feed as this hub has it, newest first: {format}",
            description="In pages that are linked by rel=next; conditional requests"
            " are answered. It may be subscribed to.",
            query=_PAGE_QUERY,
            answers={200: {format.media_type.partition(";")[0]: shape}, 304: {}},
            headers={200: {"Link": "the hub, this page, and the next one"}},
            problems=(404, 422, 429, 503),
        )
        for format, shape in (
            (TopicFormat.ATOM, "string"),
            (TopicFormat.JSON_FEED, "object"),
            (TopicFormat.NORMALIZED, "object"),
        )
    ),
    *(
        OpenOperation(
            method="GET",
            path=f"/{name}",
            summary="A file of the page",
            answers={200: {kind.partition(";")[0]: "string"}, 304: {}},
        )
        for name, kind in ASSETS.items()
    ),
)
