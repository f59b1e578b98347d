"""Every operation outside of ``/api``, once: what it is given, and what it answers.

They take no token; where one opens more, ``is_opened`` says so. The OpenAPI document
is made from this table as from that of ``/api``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hub.services.public import DEFAULT_PAGE, LONGEST_PAGE
from hub.web.front import ASSETS
from hub.web.operation import Parameter
from hub.web.scp import XML
from hub.web.weblog_pings import MEDIA_TYPE as RPC_TYPE
from protocols.live.messages import BodyFormat, WantedUpdates
from protocols.live.sse import EVENT_STREAM
from protocols.openfeeder.serving.parameters import (
    DEFAULT_LIMIT,
    LARGEST_LIMIT,
    LONGEST_QUERY,
    LONGEST_URL,
)
from protocols.scp.collection import MEDIA_TYPE
from protocols.topic_pages import TopicFormat
from protocols.websub.requests import FORMATS
from protocols.websub.signatures import ALGORITHMS
from protocols.websub.subscriber import CONFIRMATION_TYPE

JSON = "application/json"
TEXT = "text/plain"
HTML = "text/html"
OPML = "text/x-opml"

Contents = Mapping[str, str]
"""The shape of an answer by its media type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOperation:
    """A method on a path. ``plain_problems`` are told as text, ``problems`` as JSON."""

    method: str
    path: str
    summary: str
    answers: Mapping[int, Contents]
    description: str = ""
    query: tuple[Parameter, ...] = ()
    form: tuple[Parameter, ...] = ()
    headers: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    problems: tuple[int, ...] = (429,)
    plain_problems: tuple[int, ...] = ()
    is_opened: bool = False


_HUB_FORM = (
    Parameter(
        name="hub.mode",
        help="what is asked",
        choices=("subscribe", "unsubscribe", "publish"),
        is_required=True,
    ),
    Parameter(name="hub.topic", help="the URL of the topic", longest=2_048),
    Parameter(name="hub.callback", help="the subscriber's URL", longest=2_048),
    Parameter(
        name="hub.lease_seconds",
        help="cut to 300 to 2592000",
        kind="integer",
        default=864_000,
        least=0,
    ),
    Parameter(name="hub.secret", help="signs notifications", longest=199),
    Parameter(
        name="hub.signature_algorithm", help="of the signature", choices=ALGORITHMS
    ),
    Parameter(name="hub.verify_token", help="comes back", longest=1_024),
    Parameter(name="format", help="none: the topic as it is", choices=FORMATS),
    Parameter(name="hub.url", help="what has news", is_repeated=True),
)
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

_OPENFEEDER_QUERY = (
    Parameter(name="url", help="the page to fetch", longest=LONGEST_URL),
    Parameter(name="q", help="words to rank by", longest=LONGEST_QUERY),
    Parameter(name="page", help="of the index", kind="integer", default=1, least=1),
    Parameter(
        name="limit",
        help=f"items or chunks; cut to 1 to {LARGEST_LIMIT}",
        kind="integer",
        default=DEFAULT_LIMIT,
    ),
    Parameter(name="min_score", help="the least relevance, 0 to 1; only with q"),
    Parameter(name="since", help="what has changed from then on: RFC 3339, or a token"),
    Parameter(name="until", help="and not after then: RFC 3339"),
)
_OPENFEEDER_PROBLEMS = {
    status: {JSON: "OpenFeederProblem"} for status in (404, 429, 500, 503)
}

OPEN_OPERATIONS: tuple[OpenOperation, ...] = (
    OpenOperation(
        method="GET",
        path="/.well-known/openfeeder.json",
        summary="What can be read by OpenFeeder 1.0, and where",
        answers={200: {JSON: "object"}, 304: {}, **_OPENFEEDER_PROBLEMS},
        problems=(),
    ),
    OpenOperation(
        method="OPTIONS",
        path="/.well-known/openfeeder.json",
        summary="What pages of other sites may ask of the same",
        answers={204: {}, **_OPENFEEDER_PROBLEMS},
        problems=(),
    ),
    OpenOperation(
        method="GET",
        path="/openfeeder",
        summary="By OpenFeeder: an index, a page in chunks, answers, what has changed",
        description="Takes the key of the site, if it has one.",
        query=_OPENFEEDER_QUERY,
        answers={
            200: {JSON: "object"},
            304: {},
            400: {JSON: "OpenFeederProblem"},
            401: {JSON: "OpenFeederProblem"},
            **_OPENFEEDER_PROBLEMS,
        },
        headers={200: {"X-OpenFeeder-Cache": "HIT or MISS"}},
        problems=(),
        is_opened=True,
    ),
    OpenOperation(
        method="OPTIONS",
        path="/openfeeder",
        summary="What pages of other sites may ask of the same",
        answers={204: {}, **_OPENFEEDER_PROBLEMS},
        problems=(),
    ),
    OpenOperation(
        method="POST",
        path="/openfeeder/update",
        summary="A hint that pages have changed: their feeds are fetched soon",
        description="A body in JSON: urls, of pages or of feeds, and action, upsert or"
        " delete. Takes any token.",
        answers={
            202: {JSON: "OpenFeederHints"},
            400: {JSON: "OpenFeederProblem"},
            401: {JSON: "OpenFeederProblem"},
            408: {JSON: "OpenFeederProblem"},
            413: {JSON: "OpenFeederProblem"},
            **_OPENFEEDER_PROBLEMS,
        },
        problems=(),
        is_opened=True,
    ),
    OpenOperation(
        method="POST",
        path="/hub",
        summary="The open WebSub hub: subscribe, unsubscribe, publish",
        description="202 whatever will come of it; the link with rel=status leads to"
        " that. A publish request is answered with 204, or by URL where JSON is"
        " accepted. It takes parameters in the query too.",
        form=_HUB_FORM,
        answers={202: {TEXT: "string"}, 204: {}, 200: {JSON: "Pings"}},
        headers={202: {"Link": "the diagnostics of this request, rel=status"}},
        plain_problems=(400, 403, 408, 413, 415, 503),
    ),
    OpenOperation(
        method="POST",
        path="/rpc",
        summary="A blog's ping by XML-RPC: its feed is fetched soon",
        description="A body in XML: weblogUpdates.ping or weblogUpdates.extendedPing,"
        " with up to three URLs. Answered with a struct of flerror and message, or a"
        " fault.",
        answers={200: {RPC_TYPE: "string"}},
        problems=(408, 413, 415, 429),
    ),
    OpenOperation(
        method="GET",
        path="/hub/subscriptions/{token}",
        summary="What became of a request to the open hub",
        answers={200: {JSON: "Diagnosis", HTML: "string"}},
        problems=(404, 429),
    ),
    OpenOperation(
        method="GET",
        path="/upstream/{token}",
        summary="A hub of others asks whether a subscription of this one was meant",
        description="By WebSub, or by rssCloud with url and challenge.",
        query=(
            Parameter(
                name="hub.mode",
                help="what it asks, or tells",
                choices=("subscribe", "unsubscribe", "denied"),
            ),
            Parameter(name="hub.topic", help="of the subscription", longest=2_048),
            Parameter(name="hub.challenge", help="is sent back", longest=1_024),
            Parameter(name="hub.lease_seconds", help="how long it will last"),
            Parameter(name="hub.reason", help="of a denial"),
            Parameter(name="url", help="of rssCloud: the feed", longest=2_048),
            Parameter(name="challenge", help="of rssCloud", longest=1_024),
        ),
        answers={200: {CONFIRMATION_TYPE: "string"}},
        plain_problems=(404, 503),
    ),
    OpenOperation(
        method="POST",
        path="/upstream/{token}",
        summary="A hub of others pushes a feed",
        description="Signed by X-Hub-Signature, of up to 10 MiB; what is not signed"
        " rightly is ignored. Of rssCloud a form with url.",
        answers={202: {}},
        plain_problems=(400, 408, 410, 413, 503),
    ),
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
            (TopicFormat.JSON, "object"),
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
