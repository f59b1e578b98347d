"""The word that a subscription is refused or has been ended (WebSub 5.2)."""

from __future__ import annotations

from protocols.websub.callbacks import callback_with


def denial_url(callback: str, topic: str, reason: str = "") -> str:
    """Where the denial is sent by GET; an empty reason is left out."""
    parameters = {"hub.mode": "denied", "hub.topic": topic}
    if reason:
        parameters["hub.reason"] = reason
    return callback_with(callback, parameters)
