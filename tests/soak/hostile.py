"""Callbacks that do all that harms senders; nobody expects them to get anything."""

from __future__ import annotations

from tests.support.receiver import Script

_MEGABYTE = 1 << 20

HOSTILE: dict[str, tuple[Script, ...]] = {
    "hanging": (Script(hang=True),),
    "dripping": (Script(drip=1.0),),
    "endless": (Script(headers={"Content-Length": "9999999999"}, body=b"x" * 65_536),),
    "large": (Script(body=b"x" * 4 * _MEGABYTE),),
    "huge-header": (Script(headers={"X-Huge": "x" * _MEGABYTE}),),
    "many-headers": (Script(headers={f"X-{number}": "" for number in range(10_000)}),),
    "resetting": (Script(reset=True),),
    "failing": (Script(status=500),),
    "gateway": (Script(status=502), Script(status=504), Script(status=503)),
    "moved": (Script(status=301, headers={"Location": "http://127.0.0.1:1/"}),),
    "moved-to-itself": (Script(status=308, headers={"Location": "/moved-to-itself"}),),
    "wait-seconds": (Script(status=429, headers={"Retry-After": "2"}),),
    "wait-years": (Script(status=503, headers={"Retry-After": "1000000000"}),),
    "wait-negative": (Script(status=429, headers={"Retry-After": "-1"}),),
    "wait-garbage": (Script(status=503, headers={"Retry-After": "soon, \x01"}),),
    "wait-past": (
        Script(status=429, headers={"Retry-After": "Mon, 01 Jan 1990 00:00:00 GMT"}),
    ),
    "no-content": (Script(status=204, body=b"and yet"),),
    "odd-status": (Script(status=999),),
    "slow": (Script(delay=5.0),),
    "gzip": (Script(headers={"Content-Encoding": "gzip"}, body=b"\x1f\x8b" * 512),),
}
"""By the name of the callback's path: how it answers; the last answer stays."""

ACCEPTING = ("endless", "large", "no-content", "slow", "gzip")
"""Those who answer 2xx, all the same."""
ENDLESS = "endless"
"""Has given its whole answer when the hub still waits for more."""
RESETTING = "resetting"
"""May get the same attempt twice: once more where a kept-alive connection was reset."""
