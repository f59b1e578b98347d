"""A checksum of long documents, for telling whether they are the same again.

GMAC with a key that everybody knows is no signature, but as good a checksum of 128
bits as any, and of those at hand it takes the least time by far: processors multiply
for it. Whoever makes two of their documents alike deceives about their own feed only.
"""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_CIPHER: Final = AESGCM(bytes.fromhex("9e3779b97f4a7c15f39cc0605cedc834"))
_NONCE: Final = bytes(12)


def checksum(document: bytes | memoryview) -> bytes:
    """16 bytes; the same in all processes and for good, since it is stored."""
    return _CIPHER.encrypt(_NONCE, b"", document)
