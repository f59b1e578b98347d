"""The network: every request the hub makes, guarded, bounded and in our own words."""

from __future__ import annotations

from hub.http.client import HttpNetwork
from hub.http.messages import Allowance, Answer, Limits, Network, Purpose, Request, Sink

__all__ = [
    "Allowance",
    "Answer",
    "HttpNetwork",
    "Limits",
    "Network",
    "Purpose",
    "Request",
    "Sink",
]
