"""Deliveries as a callback gets them: checked, then read."""

from __future__ import annotations

import hmac
import json
import time
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TOLERANCE = 300
"""Most seconds between the hub's time of signing and this machine's time."""


class ForgedDelivery(Exception):
    """The secret did not sign the request, or not within the last five minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedDelivery:
    """A delivery, as a request brought it.

    ``id`` is the same in every attempt: a delivery whose id is known was taken before.
    ``position`` is the place of its last record in the hub's log, and ``epoch`` is the
    log's: another epoch means that the hub was restored from a backup. They are 0 and
    "" in tests and in what was sent again by hand. ``missed``: the first and last
    position of records that the hub no longer has, or None. ``document`` is None unless
    the format is JSON.
    """

    id: str
    epoch: str
    position: int
    topic: str
    missed: tuple[int, int] | None
    is_test: bool
    body: bytes
    document: Mapping[str, Any] | None

    @property
    def items(self) -> list[dict[str, Any]]:
        """Return the entries, newest first; none if it is only about the feed's
        state."""
        return list(self.document.get("items", ())) if self.document else []


def read_delivery(
    headers: Mapping[str, str], body: bytes, secret: str, *, now: float | None = None
) -> ReceivedDelivery:
    """Check a request to a callback, and return the delivery in it.

    ``headers`` by names in any case; ``body``: the bytes as they came; ``secret``: the
    subscription's; ``now``: Unix seconds, by default this machine's. Raises
    `ForgedDelivery`, and `ValueError` for an empty secret.
    """
    if not secret:
        raise ValueError("secret: expected that of the subscription, not an empty one")
    given = {name.lower(): value for name, value in headers.items()}
    _check(given, body, secret, time.time() if now is None else now)
    id = given["webhook-id"]
    epoch, position = _place(id)
    is_json = given.get("content-type", "").startswith("application/json")
    first, _, last = given.get("fanfare-missed", "").partition("-")
    return ReceivedDelivery(
        id=id,
        epoch=epoch,
        position=position,
        topic=given.get("x-pubsubhubbub-topic", ""),
        missed=(int(first), int(last)) if last else None,
        is_test="fanfare-test" in given,
        body=body,
        document=json.loads(body) if is_json else None,
    )


def _check(headers: Mapping[str, str], body: bytes, secret: str, now: float) -> None:
    id, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    signatures = headers.get("webhook-signature", "").encode().split()
    if not (id and at.isascii() and at.isdecimal() and signatures):
        raise ForgedDelivery("the request is not signed")
    if abs(now - int(at)) > TOLERANCE:
        raise ForgedDelivery(f"the request was signed {now - int(at):.0f} s ago")
    digest = hmac.digest(_key(secret), f"{id}.{at}.".encode() + body, "sha256")
    expected = b"v1," + b64encode(digest)
    if not any(hmac.compare_digest(each, expected) for each in signatures):
        raise ForgedDelivery("the signature is not that of the secret")


def _key(secret: str) -> bytes:
    """Return the key of a secret: what ``whsec_<base64>`` encodes, or its own bytes."""
    if secret.startswith("whsec_"):
        try:
            return b64decode(secret[6:], validate=True) or secret.encode()
        except Base64Error:
            pass
    return secret.encode()


def _place(id: str) -> tuple[str, int]:
    """Return epoch and position of an id ``epoch-position-subscription``.

    For a test, and for what was sent again by hand, they are "" and 0.
    """
    parts = id.split("-")
    if len(parts) == 3 and parts[1].isdecimal() and parts[0] not in ("test", "replay"):
        return parts[0], int(parts[1])
    return "", 0
