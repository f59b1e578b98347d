"""WebSub as a subscriber: requests to a hub, and the hub's requests (WebSub 5).

Only the messages: the caller knows whether a subscription was requested.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from protocols.protocol_errors import InvalidValue
from protocols.websub.websub_parameters import DEFAULT_LEASE, LONGEST_LEASE, Form

CONFIRMATION_TYPE: Final = "application/octet-stream"
"""WebSub 5.3.1 since June 2026: the confirmation MUST use a safe media type, and
MUST carry ``X-Content-Type-Options: nosniff``, so that no browser runs a challenge."""
_CHALLENGE: Final = re.compile(r"[\x21-\x7e]{1,1024}")
"""Subscribers "SHOULD" limit the length of challenges, and reject binary data. Older
hubs use any printable characters.
"""
_LONGEST_REASON: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class HubQuestion:
    """A hub asks whether a request was intended. ``lease_seconds`` count from now."""

    mode: str  # subscribe or unsubscribe
    topic: str
    challenge: str
    lease_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HubDenial:
    """A hub says that there is no subscription, or no longer one (WebSub 5.2)."""

    topic: str
    reason: str = ""


def subscription_form(
    *, mode: str, topic: str, callback: str, secret: str = "", lease_seconds: int = 0
) -> bytes:
    """The body of a request to a hub. Hubs of PubSubHubbub 0.3 require
    ``hub.verify``.
    """
    fields = {
        "hub.mode": mode,
        "hub.topic": topic,
        "hub.callback": callback,
        "hub.verify": "async",
    }
    if secret:
        fields["hub.secret"] = secret
    if lease_seconds:
        fields["hub.lease_seconds"] = str(lease_seconds)
    return urlencode(fields).encode("ascii")


def read_question(form: Form) -> HubQuestion | HubDenial:
    """Read a hub's request. Raises `InvalidValue`."""
    mode = form.required("hub.mode", "subscribe, unsubscribe or denied")
    topic = form.required("hub.topic", "the URL of the topic")
    if mode == "denied":
        return HubDenial(topic=topic, reason=_printable(form.one("hub.reason")))
    if mode not in ("subscribe", "unsubscribe"):
        raise InvalidValue("hub.mode", "subscribe, unsubscribe or denied")
    challenge = form.required("hub.challenge", "the challenge to return")
    if not _CHALLENGE.fullmatch(challenge):
        raise InvalidValue("hub.challenge", "1 to 1024 printable ASCII characters")
    return HubQuestion(
        mode=mode,
        topic=topic,
        challenge=challenge,
        lease_seconds=_lease(form.one("hub.lease_seconds")),
    )


def _lease(value: str) -> int:
    """The lease in seconds; `DEFAULT_LEASE` if it is missing or not a number.

    In PubSubHubbub 0.3 a missing lease is endless; it is renewed all the same.
    """
    text = value.strip()
    if not text.isascii() or not text.isdigit():
        return DEFAULT_LEASE
    return min(int(text[:20]), LONGEST_LEASE)


def _printable(text: str) -> str:
    kept = "".join(each for each in text if each.isprintable())
    return kept[:_LONGEST_REASON]
