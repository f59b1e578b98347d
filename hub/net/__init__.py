"""The network: every request the hub makes, guarded, bounded and in our own words."""

from __future__ import annotations

from hub.net.client import HttpNetwork
from hub.net.messages import Allowance, Answer, Limits, Network, Purpose, Request, Sink

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
