"""Pings of weblogs: ``weblogUpdates.ping`` and ``weblogUpdates.extendedPing``.

Blogs have sent them since 2001, and most programs for blogs still can. ``ping`` has
the blog's name and URL, maybe that of a page to look at and a category;
``extendedPing`` has the feed's URL behind that page's, WordPress in its place. So which
URL is what is not asked: all that are given may be a feed's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from protocols.errors import InvalidValue
from protocols.websub.callbacks import read_web_url
from protocols.xmlrpc import Fault, FaultCode, MethodCall, Value

METHODS: Final = ("weblogUpdates.ping", "weblogUpdates.extendedPing")
_LAST_URL: Final = 4
"""Parameters behind the feed's are categories."""


def read_ping(call: MethodCall) -> tuple[str, ...]:
    """The URLs that a ping names, each once, the feed's first if there is one.

    Raises `Fault`.
    """
    if call.method not in METHODS:
        raise Fault(FaultCode.NO_SUCH_METHOD, f"expected {' or '.join(METHODS)}")
    if len(call.parameters) < 2:
        raise Fault(FaultCode.WRONG_PARAMETERS, "expected a name and a URL at least")
    named = reversed(call.parameters[1:_LAST_URL])
    urls = tuple(dict.fromkeys(filter(None, map(_url, named))))
    if not urls:
        raise Fault(
            FaultCode.WRONG_PARAMETERS, "expected an absolute http or https URL"
        )
    return urls


def ping_answer(message: str, *, is_error: bool) -> Mapping[str, Value]:
    """The members of the answer that every sender of pings knows."""
    return {"flerror": is_error, "message": message}


def _url(value: str) -> str:
    try:
        return read_web_url(value, "url", allows_fragment=False)
    except InvalidValue:
        return ""
