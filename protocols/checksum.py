"""A checksum of long documents, for telling whether they are the same again.

Poly1305 with a key that everybody knows is no signature, but as good a checksum of 128
bits as any, and of those at hand it takes the least time by far. Whoever makes two of
their documents alike deceives about their own feed only.
"""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.poly1305 import Poly1305

_KEY: Final = bytes.fromhex(
    "9e3779b97f4a7c15f39cc0605cedc8341082276bf3a27251f86c6a11d0c18e95"
)


def checksum(document: bytes | memoryview) -> bytes:
    """16 bytes; the same in all processes and for good, since it is stored."""
    return Poly1305.generate_tag(_KEY, document)
