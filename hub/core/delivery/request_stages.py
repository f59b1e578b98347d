"""Where a request to a callback failed, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

STAGE_WORDS: Final[Mapping[str, str]] = {
    "queued": "in the hub, waiting for a free connection",
    "dns": "looking up the callback's host (DNS)",
    "guard": "at the address guard, before connecting",
    "connect": "connecting",
    "tls": "negotiating TLS",
    "first_byte": "waiting for the first byte of the answer",
    "head": "reading the head of the answer",
    "body": "reading the body of the answer",
    "answered": "complete answer, but not a 2xx",
}
"""By the value of `RequestStage`."""
