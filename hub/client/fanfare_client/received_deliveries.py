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
"""Seconds between the hub's clock and this one, the way included."""


class ForgedDelivery(Exception):
    """The secret did not sign this request, or not within the last five minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedDelivery:
    """What a request brought.

    ``id`` is the same in every attempt: what has it was taken before. ``position`` is
    that of its last record in the hub's log, ``epoch`` the log's: another one means
    that the hub was restored from a backup. Both are 0 and "" in tests and in what was
    sent again by hand. ``missed``: the first and last position of what the hub no
    longer has, or None. ``document`` is None unless the format is JSON.
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
        """The entries, newest first; none in a notice that the feed fails, or works."""
        return list(self.document.get("items", ())) if self.document else []


def read_delivery(
    headers: Mapping[str, str], body: bytes, secret: str, *, now: float | None = None
) -> ReceivedDelivery:
    """Of a request to a callback, with the body's bytes as they came.

    ``headers`` by names in any case. ``secret``: that of the subscription. ``now``:
    Unix seconds, by default those of this machine. Raises `ForgedDelivery`, and
    `ValueError` for no secret.
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
    """As the hub has it: what ``whsec_<base64>`` stands for, else its own bytes."""
    if secret.startswith("whsec_"):
        try:
            return b64decode(secret[6:], validate=True) or secret.encode()
        except Base64Error:
            pass
    return secret.encode()


def _place(id: str) -> tuple[str, int]:
    """Of ``epoch-position-subscription``."""
    parts = id.split("-")
    if len(parts) == 3 and parts[1].isdecimal() and parts[0] not in ("test", "replay"):
        return parts[0], int(parts[1])
    return "", 0
