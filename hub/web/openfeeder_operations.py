"""The operations of OpenFeeder, once: what each is given, and what it answers."""

from __future__ import annotations

from hub.web.open_operation import JSON, OpenOperation
from hub.web.operation import Parameter
from protocols.openfeeder.serving.parameters import (
    DEFAULT_LIMIT,
    LARGEST_LIMIT,
    LONGEST_QUERY,
    LONGEST_URL,
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

OPENFEEDER_OPERATIONS: tuple[OpenOperation, ...] = (
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
)
