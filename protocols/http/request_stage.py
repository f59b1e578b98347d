"""How far a request of the hub has come: where one that failed has failed.

Its own file, since network, storage and messages all speak of it.
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
