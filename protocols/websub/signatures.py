"""Signatures of notifications: ``X-Hub-Signature`` and Standard Webhooks.

Both are HMACs over the exact bytes that are sent. WebSub's key is the secret's UTF-8
bytes, whatever it looks like.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64decode
from binascii import Error as Base64Error
from binascii import b2a_base64
from typing import Final

from protocols.protocol_errors import InvalidValue

ALGORITHMS: Final = ("sha1", "sha256", "sha384", "sha512")
"""The algorithms of the WebSub recommendation."""
OF_OLD: Final = "sha1+sha256"
"""The signing for clients of PubSubHubbub that chose no algorithm.

They know only ``X-Hub-Signature: sha1=…``, and drop notifications with any other.
"""
SIGNINGS: Final = (*ALGORITHMS, OF_OLD)
"""The values that a subscription's signing may have."""

STANDARD_WEBHOOKS_PREFIX: Final = "whsec_"
TOLERANCE: Final = 300
"""Seconds by which clocks may differ, delays included, as in the libraries of Standard
Webhooks.
"""
MOST_SIGNATURES: Final = 16
"""The number of signatures of one request that are looked at."""
_SECONDS: Final = re.compile(r"[0-9]{1,11}", re.ASCII)


def sign(algorithm: str, secret: str, body: bytes) -> str:
    """``sha256=<hex>``, the value of ``X-Hub-Signature`` (WebSub 7.1).

    Raises `InvalidValue` for an algorithm that WebSub does not have.
    """
    if algorithm not in ALGORITHMS:
        raise InvalidValue("algorithm", f"one of {', '.join(ALGORITHMS)}", algorithm)
    return f"{algorithm}={hmac.digest(secret.encode(), body, algorithm).hex()}"


def signature_headers(signing: str, secret: str, body: bytes) -> dict[str, str]:
    """The headers for one of `SIGNINGS`; `OF_OLD` also adds a stronger signature."""
    if signing != OF_OLD:
        return {"X-Hub-Signature": sign(signing, secret, body)}
    return {
        "X-Hub-Signature": sign("sha1", secret, body),
        "X-Hub-Signature-256": sign("sha256", secret, body),
    }


def verify(signature: str, secret: str, body: bytes) -> bool:
    """Whether a signature was made with the secret; False if it is malformed.

    ``signature`` is the header's value, or several joined by commas: a hub that changes
    to a better algorithm may send both. Always False without a secret, as anybody could
    sign.
    """
    given = signature.split(",", len(ALGORITHMS))[: len(ALGORITHMS)]
    return any(_is_made_with(secret, each, body) for each in given)


def _is_made_with(secret: str, signature: str, body: bytes) -> bool:
    algorithm, _, digest = signature.strip().lower().partition("=")
    if algorithm not in ALGORITHMS or not secret:
        return False
    expected = sign(algorithm, secret, body).encode()
    given = f"{algorithm}={digest}".encode(errors="replace")
    return hmac.compare_digest(given, expected)


def sign_webhook(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """``v1,<base64>``, the value of ``webhook-signature`` (Standard Webhooks).

    Over ``id.timestamp.body``, so ``id`` must not contain a full stop.
    """
    signed = b"%b.%d.%b" % (id.encode(), timestamp, body)
    digest = hmac.digest(_webhook_key(secret), signed, "sha256")
    return f"v1,{b2a_base64(digest, newline=False).decode()}"


def verify_webhook(
    signatures: str,
    secret: str,
    *,
    id: str,
    timestamp: str,
    body: bytes,
    now: float,
) -> bool:
    """Whether the secret made one of the signatures, at a time near ``now``.

    The values are those of the headers, ``now`` is in Unix seconds. A time more than
    `TOLERANCE` from ``now`` is refused, so that a recorded request cannot be replayed
    later. So is an id with a full stop, which could be the beginning of another signed
    text.
    """
    if not secret or not id or "." in id or not _SECONDS.fullmatch(timestamp):
        return False
    if abs(now - int(timestamp)) > TOLERANCE:
        return False
    expected = sign_webhook(secret, id, int(timestamp), body).encode()
    return any(
        hmac.compare_digest(each.encode(errors="replace"), expected)
        for each in signatures.split(" ", MOST_SIGNATURES)[:MOST_SIGNATURES]
    )


def _webhook_key(secret: str) -> bytes:
    """The key of a secret: the bytes that ``whsec_<base64>`` encodes, else its own
    bytes.

    A bare ``whsec_`` counts as its own bytes, since anybody knows the empty key.
    """
    if secret.startswith(STANDARD_WEBHOOKS_PREFIX):
        try:
            encoded = secret.removeprefix(STANDARD_WEBHOOKS_PREFIX)
            if key := b64decode(encoded, validate=True):
                return key
        except (Base64Error, ValueError):
            pass
    return secret.encode()
