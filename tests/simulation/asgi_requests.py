"""The hub's web application, asked without a server and without sockets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp


@dataclass(frozen=True, slots=True, kw_only=True)
class AsgiRequest:
    """A request to the hub, whose address is a host and the number of a life: neither
    matters, for what comes after it is the same in every life."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class AsgiResponse:
    status: int
    body: bytes


async def send_request(application: ASGIApp, request: AsgiRequest) -> AsgiResponse:
    """Raises what the application lets out."""
    status, body = 0, bytearray()

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)
        body.extend(message.get("body", b""))

    async def receive() -> Any:
        return {"type": "http.request", "body": request.body, "more_body": False}

    await application(_scope(request), receive, send)
    return AsgiResponse(status, bytes(body))


def _scope(request: AsgiRequest) -> dict[str, object]:
    url = urlsplit(request.url)
    path = "/" + url.path.split("/", 2)[2]
    headers = [
        (name.lower().encode(), value.encode())
        for name, value in {"Host": url.netloc, **request.headers}.items()
    ]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.scheme,
        "path": path,
        "raw_path": path.encode(),
        "query_string": url.query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("192.0.2.1", 40_000),
        "server": (url.hostname, url.port or 80),
    }
