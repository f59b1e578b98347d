"""Signatures of notifications: ``X-Hub-Signature`` and Standard Webhooks.

Both are HMACs over the exact bytes that are sent. WebSub's key is the secret's UTF-8
bytes, whatever it looks like.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Final

from protocols.errors import InvalidValue

ALGORITHMS: Final = ("sha1", "sha256", "sha384", "sha512")
"""Those of the WebSub recommendation."""

STANDARD_WEBHOOKS_PREFIX: Final = "whsec_"


def sign(algorithm: str, secret: str, body: bytes) -> str:
    """``sha256=<hex>``, the value of ``X-Hub-Signature`` (WebSub 7.1).

    Raises `InvalidValue` for an algorithm that WebSub does not have.
    """
    if algorithm not in ALGORITHMS:
        raise InvalidValue("algorithm", f"one of {', '.join(ALGORITHMS)}", algorithm)
    return f"{algorithm}={hmac.digest(secret.encode(), body, algorithm).hex()}"


def verify(signature: str, secret: str, body: bytes) -> bool:
    """Whether a signature was made with the secret; a malformed one was not."""
    algorithm, _, digest = signature.strip().lower().partition("=")
    if algorithm not in ALGORITHMS:
        return False
    expected = sign(algorithm, secret, body).encode()
    return hmac.compare_digest(f"{algorithm}={digest}".encode(), expected)


def sign_webhook(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """``v1,<base64>``, the value of ``webhook-signature`` (Standard Webhooks).

    Over ``id.timestamp.body``, so ``id`` must not contain a full stop.
    """
    signed = b"%b.%d.%b" % (id.encode(), timestamp, body)
    digest = hmac.digest(_webhook_key(secret), signed, "sha256")
    return f"v1,{b64encode(digest).decode()}"


def _webhook_key(secret: str) -> bytes:
    """The bytes that ``whsec_<base64>`` stands for; of any other secret its own."""
    if secret.startswith(STANDARD_WEBHOOKS_PREFIX):
        try:
            encoded = secret.removeprefix(STANDARD_WEBHOOKS_PREFIX)
            return b64decode(encoded, validate=True)
        except (Base64Error, ValueError):
            pass
    return secret.encode()
