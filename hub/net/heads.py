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
    given = request.headers
    values = "".join(given.values())
    is_split = "\n" in values or "\r" in values or "\0" in values
    if is_split or not _may_be_given(tuple(given)):
        raise _refusal()
    fields = "".join([f"{name}: {value}\r\n" for name, value in given.items()])
    length = ""
    if request.body is not None or request.method != "GET":
        length = f"Content-Length: {len(request.body or b'')}\r\n"
    asked = f"{request.method} {target.path} HTTP/1.1\r\nHost: {target.authority}\r\n"
    try:
        return f"{asked}{fields}{length}\r\n".encode()
    except UnicodeEncodeError:
        raise _refusal() from None


@lru_cache(1024)
def _may_be_given(names: tuple[str, ...]) -> bool:
    are_tokens = all(map(_TOKEN.fullmatch, names))
    return are_tokens and _OURS.isdisjoint(map(str.lower, names))


def _refusal() -> Unreachable:
    return Unreachable("the request cannot be made")
