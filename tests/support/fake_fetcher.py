"""A fetcher that answers as a test says, and parsers without worker processes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import TypeAlias
from urllib.parse import urlsplit

from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.ingest.fetcher import FetchRequest
from hub.ingest.parse_worker import read_document
from hub.ingest.worker_frames import Task
from protocols.feeds import ParseContext
from protocols.model import ParsedFeed
from protocols.protocol_errors import EmptyDocument
from tests.support.clock import ManualClock
from tests.support.documents import a_document, entries_named
from tests.support.fetch_targets import an_answer

Answers: TypeAlias = Callable[
    [FetchRequest], Fetched | Awaitable[Fetched | None] | None
]


@dataclass
class FakeFetcher:
    """Answers a 304 to validators, else a small document, or what ``answers`` has.

    While ``gate`` is closed all requests hang. It counts what runs at once.
    """

    clock: ManualClock
    answers: Answers = lambda request: None
    lands: dict[str, str] = field(default_factory=dict)  # URLs that are redirected
    requests: list[FetchRequest] = field(default_factory=list)
    started: list[tuple[str, float]] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    running: Counter[str] = field(default_factory=Counter)
    most_at_once: int = 0
    most_of_a_host: int = 0

    def __post_init__(self) -> None:
        self.gate.set()

    @property
    def urls(self) -> list[str]:
        return [request.url for request in self.requests]

    async def fetch(self, request: FetchRequest) -> Fetched:
        host = urlsplit(request.url).hostname or ""
        self.requests.append(request)
        self.started.append((host, self.clock.monotonic()))
        self.running[host] += 1
        self.most_at_once = max(self.most_at_once, self.running.total())
        self.most_of_a_host = max(self.most_of_a_host, self.running[host])
        try:
            await self.gate.wait()
            await asyncio.sleep(0)
        finally:
            self.running[host] -= 1
        answer = self.answers(request)
        if isawaitable(answer):
            answer = await answer
        if answer is None:
            answer = an_answer(304 if request.validators else 200, b"a", etag='"1"')
        now = self.clock.now()
        url = self.lands.get(request.url, request.url)
        return replace(answer, at=now, started=now, url=url)


class InlineParser:
    """Reads a document as a worker does, in this process."""

    async def parse(self, body: bytes, context: ParseContext) -> ParsedFeed:
        return read_document(Task(body=body, context=context))


class LineParser:
    """Reads a body's words as keys of entries; an empty body is no document."""

    async def parse(self, body: bytes, context: ParseContext) -> ParsedFeed:
        if not body:
            raise EmptyDocument
        return a_document(*entries_named(*body.decode().split()))
