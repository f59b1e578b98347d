"""Callbacks that do all that harms a sender; they need not get anything."""

from __future__ import annotations

from tests.support.http_server import ServerAnswer

_MEGABYTE = 1 << 20
_PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_NO_CONTENT = b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\nand yet"

HOSTILE: dict[str, tuple[ServerAnswer, ...]] = {
    "hanging": (ServerAnswer(silent=True),),
    "dripping": (ServerAnswer(raw=_PLAIN, drip=1.0, piece=1),),
    "endless": (
        ServerAnswer(headers={"Content-Length": "9999999999"}, body=b"x" * 65_536),
    ),
    "large": (ServerAnswer(body=b"x" * 4 * _MEGABYTE),),
    "huge-header": (ServerAnswer(headers={"X-Huge": "x" * _MEGABYTE}),),
    "many-headers": (
        ServerAnswer(headers={f"X-{number}": "" for number in range(10_000)}),
    ),
    "resetting": (ServerAnswer(raw=b"", resets=True),),
    "failing": (ServerAnswer(status=500),),
    "gateway": (
        ServerAnswer(status=502),
        ServerAnswer(status=504),
        ServerAnswer(status=503),
    ),
    "moved": (ServerAnswer(status=301, headers={"Location": "http://127.0.0.1:1/"}),),
    "moved-to-itself": (
        ServerAnswer(status=308, headers={"Location": "/moved-to-itself"}),
    ),
    "wait-seconds": (ServerAnswer(status=429, headers={"Retry-After": "2"}),),
    "wait-years": (ServerAnswer(status=503, headers={"Retry-After": "1000000000"}),),
    "wait-negative": (ServerAnswer(status=429, headers={"Retry-After": "-1"}),),
    "wait-garbage": (ServerAnswer(status=503, headers={"Retry-After": "soon, \x01"}),),
    "wait-past": (
        ServerAnswer(
            status=429, headers={"Retry-After": "Mon, 01 Jan 1990 00:00:00 GMT"}
        ),
    ),
    "no-content": (ServerAnswer(raw=_NO_CONTENT),),
    "odd-status": (ServerAnswer(status=999),),
    "slow": (ServerAnswer(delay=5.0),),
    "gzip": (
        ServerAnswer(headers={"Content-Encoding": "gzip"}, body=b"\x1f\x8b" * 512),
    ),
}
"""Answers by the name of the callback's path; the last one stays."""

ACCEPTING = ("endless", "large", "no-content", "slow", "gzip")
"""Hostile callbacks that answer 2xx all the same."""
ENDLESS = "endless"
"""The callback that has given its whole answer when the hub still waits for more."""
RESETTING = "resetting"
"""May get the same attempt twice: once more if a kept-alive connection was reset."""
