"""Subscribers that remember every request they ever got, and how they answered it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import monotonic

from tests.support.http_server import Served, ServerAnswer, ServerRequest
from tests.support.publisher import entries_named_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a subscriber does next: how long it thinks, then what it answers."""

    status: int = 200
    after: float = 0.0  # seconds
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One notification that arrived. Times are monotonic seconds of this process."""

    entries: tuple[tuple[int, int], ...]  # (feed, number)
    delivery_id: str
    signature_valid: bool
    started: float  # when it was there as a whole
    answered: float
    status: int
    request: ServerRequest

    @property
    def hub(self) -> str:
        """Where the process that sent it says the hub is; "" if it does not."""
        found = re.search(r'<([^>]*)>; rel="hub"', self.request.headers.get("link", ""))
        return found[1] if found else ""

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300


@dataclass(slots=True)
class Subscriber:
    """One callback. ``replies`` are used up one by one; then it answers 200.

    ``first``: the entry that it subscribed in time for; 0: the first there is. What it
    gets once it ``has_left`` is owed by nobody, but has no holes either. ``excused``
    are numbers of what came while it was away, ``returns`` when it came back.
    """

    name: str
    feed: int
    topic: str
    callback: str
    secret: str = ""
    algorithm: str = "sha256"
    format: str = "json"
    replies: Iterator[Reply] = field(default_factory=lambda: iter(()))
    receipts: list[Receipt] = field(default_factory=list)
    questions: list[ServerRequest] = field(default_factory=list)  # GET: denials
    first: int = 0
    has_left: bool = False
    excused: set[int] = field(default_factory=set)
    returns: list[float] = field(default_factory=list)

    @property
    def accepted(self) -> list[Receipt]:
        """As they came; a slow answer makes nothing later."""
        return sorted(
            (receipt for receipt in self.receipts if receipt.accepted),
            key=lambda receipt: receipt.started,
        )

    @property
    def numbers(self) -> list[int]:
        """Numbers of the entries of all accepted notifications, as they came."""
        return [number for each in self.accepted for _feed, number in each.entries]

    def owns(self, request: ServerRequest) -> bool:
        """Whether the signature is the one this subscriber's secret makes."""
        if not self.secret:
            return not request.headers.get("x-hub-signature")
        return request.is_signed_with(self.secret, self.algorithm)


class Subscribers(Served):
    """All callbacks of a test, on one server, at ``/callbacks/<name>``."""

    def __init__(self) -> None:
        self.all: dict[str, Subscriber] = {}
        self.strays: list[ServerRequest] = []  # requests to nobody's callback
        super().__init__()

    def add(self, name: str, *, feed: int, topic: str, format: str) -> Subscriber:
        subscriber = Subscriber(
            name=name,
            feed=feed,
            topic=topic,
            callback=f"{self._server.url}/callbacks/{name}",
            secret=f"the secret of {name}",
            format=format,
        )
        self.all[name] = subscriber
        return subscriber

    async def _answer(self, request: ServerRequest) -> ServerAnswer:
        subscriber = self.all.get(request.path.rpartition("/")[2])
        if subscriber is None:
            self.strays.append(request)
            return ServerAnswer(status=404)
        if request.method == "GET":
            subscriber.questions.append(request)
            return ServerAnswer()
        return await self._receive(subscriber, request)

    async def _receive(
        self, subscriber: Subscriber, request: ServerRequest
    ) -> ServerAnswer:
        started = monotonic()
        reply = next(subscriber.replies, Reply())
        if reply.after:
            await asyncio.sleep(reply.after)
        receipt = Receipt(
            entries=tuple(entries_named_in(request.body.decode())),
            delivery_id=request.headers.get("webhook-id", ""),
            signature_valid=subscriber.owns(request),
            started=started,
            answered=monotonic(),
            status=reply.status,
            request=request,
        )
        subscriber.receipts.append(receipt)
        return ServerAnswer(status=reply.status, headers=reply.headers)


@dataclass
class Told:
    """A callback, and all that it was told."""

    requests: list[ServerRequest] = field(default_factory=list)

    async def __call__(self, request: ServerRequest) -> ServerAnswer:
        if request.method == "POST":
            self.requests.append(request)
        return ServerAnswer()

    @property
    def bodies(self) -> list[bytes]:
        return [each.body for each in self.requests]

    @property
    def items(self) -> list[tuple[str, str]]:
        """Of JSON notifications: each item's title, or its id if it was deleted."""
        return [
            ("deleted", item["id"])
            if item.get("verb") == "delete"
            else (
                "updated"
                if item.get("extensions", {}).get("fanfare", {}).get("updated")
                else "new",
                item["title"],
            )
            for body in self.bodies
            for item in json.loads(body).get("items", [])
        ]
