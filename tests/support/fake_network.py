"""A network without sockets, which answers as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from hub.http import Answer, Purpose, Request
from hub.http.response_parser import AnswerHeaders

Scripted: TypeAlias = Answer | int | Exception
"""An answer, the status of an answer without a body, or an exception to raise."""
Script: TypeAlias = Scripted | Callable[[Request], Scripted | Awaitable[Scripted]]


def answered(
    status: int = 200,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    complete: bool = True,
) -> Answer:
    fields = [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()]
    return Answer(
        url="",
        status=status,
        headers=AnswerHeaders(fields),
        body=body,
        complete=complete,
        milliseconds=7,
    )


def is_named_exempt(host: str) -> bool:
    return host.endswith(".exempt")


class FakeNetwork:
    """Answers requests with ``scripts`` in turn, the last of which stays.

    Requests for a URL in ``at`` get what is there. While ``gate`` is closed all
    requests hang.
    """

    def __init__(
        self, *scripts: Script, exempts: Callable[[str], bool] = is_named_exempt
    ) -> None:
        """Take the scripts, and ``exempts``: which hosts are not paced."""
        self._scripts = list(scripts) or [200]
        self.at: dict[str, Script] = {}
        self.requests: list[Request] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._exempts = exempts

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        return self._exempts(host)

    async def send(self, request: Request) -> Answer:
        self.requests.append(request)
        await self.gate.wait()
        script = self.at.get(request.url) or self._next()
        scripted = script(request) if callable(script) else script
        if isawaitable(scripted):
            scripted = await scripted
        if isinstance(scripted, Exception):
            raise scripted
        if isinstance(scripted, int):
            scripted = answered(scripted)
        return replace(scripted, url=request.url)

    def _next(self) -> Script:
        return self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]

    def answer_with(self, *scripts: Script) -> None:
        """From now on answer with these scripts, as with the constructor's."""
        self._scripts = list(scripts)

    def of(self, method: str) -> list[Request]:
        return [each for each in self.requests if each.method == method]

    @property
    def urls(self) -> list[str]:
        return [each.url for each in self.requests]

    @property
    def queries(self) -> list[dict[str, str]]:
        """The queries of all requests; of a repeated parameter the last value."""
        return [_last(urlsplit(url).query) for url in self.urls]

    @property
    def modes(self) -> list[str]:
        """What callbacks or hubs were asked to do: the ``hub.mode`` of each request."""
        return [
            (query or form)["hub.mode"]
            for query, form in zip(self.queries, self.forms, strict=True)
        ]

    @property
    def forms(self) -> list[dict[str, str]]:
        """The form of each request; {} for one without a form."""
        return [_last((each.body or b"").decode()) for each in self.requests]


def _last(pairs: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(pairs).items()}


def agree(request: Request) -> Scripted:
    """Answer like callbacks that agree to everything, and like missing pages."""
    query = _last(urlsplit(request.url).query)
    if request.method == "GET" and "hub.mode" not in query:
        return 404
    return answered(body=query.get("hub.challenge", "").encode())
