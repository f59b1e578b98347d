"""The stages of a request by the hub, which tell where a failed one failed.

In a module of its own because network, storage and messages all use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class RequestStage(StrEnum):
    QUEUED = "queued"  # in the hub: no connection was free
    DNS = "dns"
    GUARD = "guard"  # the address guard refused the host's address
    CONNECT = "connect"
    TLS = "tls"
    FIRST_BYTE = "first_byte"  # connected; nothing of the answer has arrived
    HEAD = "head"  # of the answer
    BODY = "body"  # of the answer
    ANSWERED = "answered"  # completely: if the request failed, it is by its status


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
"""Where a request to a callback failed, by the value of `RequestStage`."""
