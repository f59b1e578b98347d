"""The head of a request, as bytes: what the caller gave, Host and Content-Length."""

from __future__ import annotations

import re
from functools import lru_cache

from hub.errors import Unreachable
from hub.net.messages import Request
from hub.net.urls import Target

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_OURS = frozenset({"host", "content-length", "transfer-encoding"})


def request_head(request: Request, target: Target) -> bytes:
    """Raises Unreachable for headers that would say more than one line each, or where
    the request ends."""
    lines = [f"{request.method} {target.path} HTTP/1.1", f"Host: {target.authority}"]
    for name, value in request.headers.items():
        if not _may_be_given(name):
            raise _refusal()
        lines.append(f"{name}: {value}")
    if request.body is not None:
        lines.append(f"Content-Length: {len(request.body)}")
    elif request.method != "GET":
        lines.append("Content-Length: 0")
    text = "\r\n".join([*lines, "", ""])
    breaks = len(lines) + 1
    is_broken = text.count("\n") != breaks or text.count("\r") != breaks
    if is_broken or "\0" in text:
        raise _refusal()
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _refusal() from None


@lru_cache(1024)
def _may_be_given(name: str) -> bool:
    return _TOKEN.fullmatch(name) is not None and name.lower() not in _OURS


def _refusal() -> Unreachable:
    return Unreachable("the request cannot be made")
