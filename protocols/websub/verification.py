"""Verification of intent (WebSub 5.3) and denial (5.2): requests to the callback."""

from __future__ import annotations

import hmac
import re
from typing import Final

from protocols.websub.callbacks import callback_with


def denial_url(callback: str, topic: str, reason: str = "") -> str:
    """The URL to which the denial is sent by GET; an empty reason is left out."""
    parameters = {"hub.mode": "denied", "hub.topic": topic}
    if reason:
        parameters["hub.reason"] = reason
    return callback_with(callback, parameters)


CHALLENGE: Final = re.compile(r"[+\-./0-9=A-Z_a-z]+")
"""The characters a challenge "MUST only consist of" since June 2026, so that echoing
it cannot be turned against the subscriber's own site."""


def verification_url(
    *,
    callback: str,
    mode: str,
    topic: str,
    challenge: str,
    lease_seconds: int | None = None,
    verify_token: str = "",
    tells_callback: bool = False,
) -> str:
    """The URL to which the verification is sent by GET. ``topic`` is "as given in the
    request".

    ``verify_token`` is of PubSubHubbub 0.3; some readers still refuse without it.
    ``tells_callback`` adds ``hub.callback``, as Superfeedr does.
    """
    parameters = {"hub.mode": mode, "hub.topic": topic, "hub.challenge": challenge}
    if tells_callback:
        parameters["hub.callback"] = callback
    if lease_seconds is not None:
        parameters["hub.lease_seconds"] = str(lease_seconds)
    if verify_token:
        parameters["hub.verify_token"] = verify_token
    return callback_with(callback, parameters)


def is_confirmed(status: int, body: bytes, challenge: str) -> bool:
    """Whether the callback confirms: "an HTTP success (2xx) code with a response body
    equal to the hub.challenge parameter", without even an extra line break.
    """
    return 200 <= status < 300 and hmac.compare_digest(body, challenge.encode())
