"""The stages of a request of the hub, which say where a failed one failed.

It is a file of its own because network, storage and messages all use it.
"""

from __future__ import annotations

from enum import StrEnum


class RequestStage(StrEnum):
    QUEUED = "queued"  # in the hub: no connection was free
    DNS = "dns"
    GUARD = "guard"  # the address guard refused where the name leads
    CONNECT = "connect"
    TLS = "tls"
    FIRST_BYTE = "first_byte"  # connected; nothing of an answer has come
    HEAD = "head"  # of the answer
    BODY = "body"  # of the answer
    ANSWERED = "answered"  # to the end: what failed is its status
