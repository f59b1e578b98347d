"""A web site of documents that change, and callbacks that keep what they are told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.http_server import Served, ServerAnswer, ServerRequest


class Site(Served):
    """Serves ``pages`` (type and body by path), with ETags; everything else is a 404.

    ``asked`` are the paths of all requests.
    """

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, bytes]] = {}
        self.headers: dict[str, Mapping[str, str]] = {}
        self.asked: list[str] = []
        super().__init__()

    def url(self, path: str = "/") -> str:
        return f"{self._server.url}{path}"

    def put(self, path: str, content: Any, type: str = "application/json") -> None:
        """Text and bytes as they are, anything else as JSON."""
        if isinstance(content, str):
            content = content.encode()
        is_written = isinstance(content, bytes)
        body = content if is_written else json.dumps(content).encode()
        self.pages[path] = (type, body)

    async def _answer(self, request: ServerRequest) -> ServerAnswer:
        self.asked.append(request.path)
        if request.path not in self.pages:
            return ServerAnswer(status=404)
        type, body = self.pages[request.path]
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        more = self.headers.get(request.path, {})
        headers = {"Content-Type": type, "ETag": etag, **more}
        if request.headers.get("if-none-match") == etag:
            return ServerAnswer(status=304, headers=headers)
        return ServerAnswer(headers=headers, body=body)


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
