"""The network: every request of the hub, guarded and bounded, with errors in words."""

from __future__ import annotations

from hub.http.client import HttpNetwork
from hub.http.exchange import (
    Answer,
    BodyAllowance,
    BodySink,
    Network,
    Purpose,
    Request,
    ResponseLimits,
)

__all__ = [
    "Answer",
    "BodyAllowance",
    "BodySink",
    "HttpNetwork",
    "Network",
    "Purpose",
    "Request",
    "ResponseLimits",
]
