"""A receiver by the text of the Standard Webhooks specification, and of RFC 2104.

It shares nothing with the hub: it takes a signature apart where the hub puts one
together, and makes the HMAC of two hashes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

PREFIX = "whsec_"
VERSION = "v1"
BLOCK = 64
"""The block size of SHA-256, in bytes."""
TOLERANCE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request as it came. ``now``: when that was, in Unix seconds."""

    headers: Mapping[str, str]
    body: bytes
    now: int

    @property
    def parts(self) -> tuple[str, str, str]:
        """The id, the time and the signatures."""
        names = ("webhook-id", "webhook-timestamp", "webhook-signature")
        id, timestamp, signatures = (self.headers[name] for name in names)
        return id, timestamp, signatures


def verifies(request: Received, secret: str) -> bool:
    """Whether the secret signed the request, a short time ago.

    The specification says of a secret: "base64 encoded, prefixed with whsec_"; any
    other stands for its own bytes.
    """
    id, timestamp, signatures = request.parts
    if abs(request.now - int(timestamp)) > TOLERANCE:
        return False
    key = secret.encode()
    if secret.startswith(PREFIX):
        key = base64.standard_b64decode(secret[len(PREFIX) :])
    signed = b".".join([id.encode(), timestamp.encode(), request.body])
    return hmac_sha256(key, signed) in set(_given(signatures))


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    """RFC 2104, section 2: H(K xor opad, H(K xor ipad, text))."""
    if len(key) > BLOCK:
        key = hashlib.sha256(key).digest()
    padded = key.ljust(BLOCK, b"\0")
    inner = bytes(each ^ 0x36 for each in padded)
    outer = bytes(each ^ 0x5C for each in padded)
    return hashlib.sha256(outer + hashlib.sha256(inner + message).digest()).digest()


def _given(signatures: str) -> list[bytes]:
    """ "A space delimited list"; of each "the version identifier" is before a comma."""
    pairs = [each.partition(",") for each in signatures.split()]
    return [base64.b64decode(it) for version, _, it in pairs if version == VERSION]
