"""A fake hub with canned answers by method and path, which keeps the requests.

The documents are those of the administration API, as the CLI gets them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs

from hub.hub_address import (
    IDENTITY_PATH,
    claim_token,
    name_connection,
    prove_identity,
    prove_token,
)
from tests.support.http_server import ServerAnswer, ServerRequest, WebServer

SECONDS = 60.0


@dataclass
class FakeApi:
    """Answers by ``answers["GET /api/feeds"]``; the query is not part of the key.

    A document may be a function of the request's. With a ``key`` it proves to be a hub,
    and with a ``token`` that it has the same token.
    """

    url: str = ""
    key: str = ""
    token: str = ""
    connection: str = ""  # of the last request
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    requests: list[tuple[str, Any]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        self.requests.append((f"{method} {target}", json.loads(body or b"null")))
        path, _, query = target.partition("?")
        if path == IDENTITY_PATH and (self.key or self.token):
            proof = self._prove(**{name: it[0] for name, it in parse_qs(query).items()})
            return 200, json.dumps({"proof": proof}).encode()
        missing = (404, {"title": "Not Found", "detail": f"no {target}"})
        status, document = self.answers.get(f"{method} {path}", missing)
        if callable(document):
            document = document(json.loads(body or b"null"))
        raw = document if isinstance(document, bytes) else json.dumps(document).encode()
        return status, raw

    def _prove(self, challenge: str, claim: str = "") -> str:
        if not claim:
            return prove_identity(self.key, challenge)
        is_known = claim == claim_token(self.token, self.connection, challenge)
        return prove_token(self.token, self.connection, challenge) if is_known else ""


@contextmanager
def serving(api: FakeApi, port: int = 0, host: str = "127.0.0.1") -> Iterator[FakeApi]:
    """Serve on a loopback port until the end of the block, in another thread.

    A command has an event loop of its own, or none.
    """

    async def answer(request: ServerRequest) -> ServerAnswer:
        api.tokens.append(request.headers.get("authorization", ""))
        api.connection = name_connection(request.client, request.server)
        status, body = await asyncio.to_thread(
            api.answer, request.method, request.target, request.body
        )
        return ServerAnswer(status=status, body=body)

    async def serve() -> None:
        async with WebServer(answer, host=host, port=port) as server:
            started.set_result(server.url)
            await asyncio.to_thread(ended.wait)

    started, ended = Future[str](), Event()
    thread = Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        api.url = started.result(SECONDS)
        yield api
    finally:
        ended.set()
        thread.join(SECONDS)


def freshness_document(**more: Any) -> dict[str, Any]:
    return {
        "publication_to_commit": {"entries": 12, "p50": 310.0, "p99": 1_760.0},
        "commit_to_delivery": {"entries": 0, "p50": None, "p99": None},
        **more,
    }


def feed_document(**changes: Any) -> dict[str, Any]:
    feed: dict[str, Any] = {
        "id": 7,
        "url": "https://example.org/feed.xml",
        "state": "active",
        "private": False,
        "health": {"state": "ok", "since": "2026-01-01T12:00:00Z", "reason": ""},
        "category": "",
        "section": "",
        "title": "Example",
        "format": "atom",
        "next_fetch": "2026-01-01T12:15:00Z",
        "next_fetch_reason": "it is new",
        "code": 200,
        "message": "Fetched (ring) 200 900 and parsed 3/3 entries",
        "error": "",
        "failures": 0,
        "failing_since": None,
        "last_failure": None,
        "last_fetch": "2026-01-01T12:00:00Z",
        "last_parse": "2026-01-01T12:00:00Z",
        "period": 900.0,
        "own_period": 0.0,
        "velocity": 3.5,
        "entries": 3,
        "subscribers": 2,
        "fetch_url": "https://example.org/feed.xml",
        "validators": {"etag": '"abc"', "last_modified": ""},
        "answers_304": True,
        "unchanged": 0,
        "retry_after": None,
        "fresh_until": None,
        "has_credentials": False,
        "added": True,
        "bozo_rank": 0.0,
        "generated_ids": False,
        "rekeyed": 0,
        "rekeyed_at": None,
        "gap_at": None,
        "waiting": 0,
        "dropped": 0,
        "problems": [],
        "maintained_at": None,
        "popularity": None,
        "porn_rank": None,
        "is_stale": False,
        "related": [],
        "site": None,
        "push": None,
        "freshness": freshness_document(),
        "period_terms": [
            {"name": "wanted", "value": 900.0, "unit": "s", "note": "the rule"}
        ],
    }
    return {**feed, **changes}


def subscription_document(**changes: Any) -> dict[str, Any]:
    subscription: dict[str, Any] = {
        "id": 4,
        "callback": "https://you.example/hook",
        "topic": "https://example.org/feed.xml",
        "events": [],
        "state": "active",
        "format": "json",
        "updates": "fresh",
        "algorithm": "sha256",
        "has_secret": True,
        "former_secret_until": None,
        "created_at": "2026-01-01T12:00:00Z",
        "exhausted": False,
        "ended_reason": "",
        "health": {
            "state": "ok",
            "since": "2026-01-01T12:00:00Z",
            "reason": "",
            "last_milliseconds": None,
        },
        "explanation": "nothing waits to be delivered",
        "advice": [],
        "lag": {"records": 0, "has_more": False, "seconds": 0.0},
        "lease_end": None,
        "dead_letters": [],
        "retrying": None,
        "attempts": [],
        "added": True,
        "feed_status": feed_document(),
    }
    return {**subscription, **changes}
