"""The subscriber: a callback that answers as it is told and remembers what it got.

All callbacks of a test are on one server, `Subscribers`; each has a name, and its path.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from time import monotonic
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support.http_server import (
    Origin,
    Script,
    ServerAnswer,
    ServerRequest,
    respond,
)
from tests.support.publisher import entries_named_in


def confirm(request: ServerRequest) -> ServerAnswer:
    """Answer a question as a subscriber that wants what it is asked about."""
    return ServerAnswer(body=request.query.get("hub.challenge", "").encode())


@dataclass(slots=True, kw_only=True)
class Receipt:
    """One notification that arrived. Times are monotonic seconds of this process."""

    entries: tuple[tuple[int, int], ...]  # (feed, number)
    delivery_id: str
    signature_valid: bool
    started: float  # when it was there as a whole
    answered: float = float("inf")
    status: int = 0  # 0: it is not answered
    request: ServerRequest

    @property
    def hub(self) -> str:
        """The URL that the process that sent it gave for the hub; "" without one."""
        found = re.search(r'<([^>]*)>; rel="hub"', self.request.headers.get("link", ""))
        return found[1] if found else ""

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300


@dataclass(slots=True, kw_only=True)
class Subscriber:
    """One callback, and what it got.

    It confirms what it is asked and answers 200 to notifications, unless
    ``on_question`` and ``answers`` say otherwise; these are used up one by one.
    ``first``: the first entry that it is owed; 0: the first there is. Once it
    ``has_left`` it is owed nothing, but what still comes has to be without holes.
    ``excused``: numbers of what came while it was away; ``returns``: when it came back.
    """

    name: str
    url: str
    feed: int = 0
    topic: str = ""
    secret: str = ""
    algorithm: str = "sha256"
    format: str = "json"
    on_question: Script = confirm
    answers: Iterator[ServerAnswer] = field(default_factory=lambda: iter(()))
    questions: list[ServerRequest] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    open_requests: int = 0
    most_open: int = 0  # at once
    first: int = 0
    has_left: bool = False
    excused: set[int] = field(default_factory=set)
    returns: list[float] = field(default_factory=list)

    def answer(self, *answers: ServerAnswer) -> None:
        """Answer notifications in turn; the last answer stays."""
        self.answers = chain(answers, repeat(answers[-1]))

    @property
    def modes(self) -> list[str]:
        """The modes of all questions."""
        return [each.query["hub.mode"] for each in self.questions]

    def parameters(self, question: int = -1) -> list[tuple[str, str]]:
        """All parameters of a question, in order."""
        return parse_qsl(urlsplit(self.questions[question].target).query)

    @property
    def deliveries(self) -> list[ServerRequest]:
        """The requests of all notifications as they came, whatever was answered."""
        return [each.request for each in self.receipts]

    @property
    def bodies(self) -> list[bytes]:
        return [each.body for each in self.deliveries]

    @property
    def items(self) -> list[tuple[str, str]]:
        """The items of JSON notifications: what each is, and its title or deleted
        id."""
        documents = [json.loads(body) for body in self.bodies]
        return [_named(item) for each in documents for item in each.get("items", [])]

    @property
    def titles(self) -> list[str]:
        """The titles of `items`."""
        return [title for _, title in self.items]

    @property
    def accepted(self) -> list[Receipt]:
        """The accepted notifications as they came; a slow answer makes none later."""
        return sorted(
            (receipt for receipt in self.receipts if receipt.accepted),
            key=lambda receipt: receipt.started,
        )

    @property
    def numbers(self) -> list[int]:
        """The numbers of the entries of all accepted notifications, as they came."""
        return [number for each in self.accepted for _feed, number in each.entries]

    def owns(self, request: ServerRequest) -> bool:
        """Whether the request's signature is by this subscriber's secret."""
        if not self.secret:
            return not request.headers.get("x-hub-signature")
        return request.is_signed_with(self.secret, self.algorithm)

    def receipt_of(self, request: ServerRequest, started: float) -> Receipt:
        """A receipt for a notification that is not answered yet."""
        return Receipt(
            entries=tuple(entries_named_in(request.body.decode(errors="replace"))),
            delivery_id=request.headers.get("webhook-id", ""),
            signature_valid=self.owns(request),
            started=started,
            request=request,
        )


def _named(item: dict[str, Any]) -> tuple[str, str]:
    if item.get("verb") == "delete":
        return "deleted", item["id"]
    is_updated = item.get("extensions", {}).get("fanfare", {}).get("updated")
    return "updated" if is_updated else "new", item["title"]


class Subscribers(Origin):
    """All callbacks of a test, each at the path of its name, ``/NAME``.

    A request to any other path is answered 404, and kept as a stray.
    """

    def __init__(self) -> None:
        super().__init__()
        self.all: dict[str, Subscriber] = {}
        self.strays: list[ServerRequest] = []
        self.open_requests = 0  # to all of them
        self.most_open = 0  # at once

    def add(self, name: str = "", **fields: Any) -> Subscriber:
        """Add a subscriber, with a number if it has no name, and other ``fields``."""
        name = name or str(len(self.all) + 1)
        self.all[name] = Subscriber(name=name, url=self.url(f"/{name}"), **fields)
        return self.all[name]

    def __getitem__(self, name: str) -> Subscriber:
        """The subscriber of that name, added if there is none."""
        return self.all[name] if name in self.all else self.add(name)

    @property
    def counts(self) -> list[int]:
        """How many notifications came to each."""
        return [len(each.receipts) for each in self.all.values()]

    async def until_count(
        self, name: str, count: int, *, seconds: float = 60.0
    ) -> None:
        """Wait until so many notifications have come to one, whatever it answers."""
        one = self[name]
        await self.until(lambda: len(one.receipts) >= count, seconds=seconds)

    async def _take(self, request: ServerRequest) -> ServerAnswer | None:
        one = self.all.get(request.path[1:])
        if one is None:
            self.strays.append(request)
            return ServerAnswer(status=404)
        one.open_requests += 1
        one.most_open = max(one.most_open, one.open_requests)
        self.open_requests += 1
        self.most_open = max(self.most_open, self.open_requests)
        return await super()._take(request)

    async def _answer(self, request: ServerRequest) -> ServerAnswer | None:
        one = self[request.path[1:]]
        if request.method == "GET":
            one.questions.append(request)
            return await respond(one.on_question, request)
        receipt = self._remember(one, request)
        answer = next(one.answers, ServerAnswer())
        if answer.silent:
            return answer
        if answer.delay:
            await asyncio.sleep(answer.delay)
        receipt.status, receipt.answered = answer.status, monotonic()
        return replace(answer, delay=0.0)

    def _remember(self, one: Subscriber, request: ServerRequest) -> Receipt:
        receipt = one.receipt_of(request, request.at)
        one.receipts.append(receipt)
        return receipt

    def _end(self, request: ServerRequest) -> None:
        super()._end(request)
        if one := self.all.get(request.path[1:]):
            one.open_requests -= 1
            self.open_requests -= 1
