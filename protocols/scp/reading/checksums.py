"""What a collection's ``checksum`` may be the hash of.

The specification hashes the file that contains the hash, which nobody can make. What
publishers hash instead is the file without the member, or with an empty value, or its
pages only.
"""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from typing import Final

from protocols.errors import InvalidDocument

CHECKSUM: Final = re.compile("sha256:[0-9a-fA-F]{64}")
"""The specification wants lower case, the schema takes either."""
_VALUE = rb'"sha256:[0-9a-fA-F]{64}"'
_MEMBER: Final = rb'"checksum"\s*:\s*' + _VALUE
_LEADING = re.compile(rb"\s*,\s*" + _MEMBER)
_TRAILING = re.compile(_MEMBER + rb"\s*,\s*")
_BLANKED = re.compile(rb'("checksum"\s*:\s*)' + _VALUE)


class ChecksumRule(StrEnum):
    """``LENIENT`` takes any of the ways, ``STRICT`` only the hash of the whole file as
    it is, which no publisher can give."""

    LENIENT = "lenient"
    STRICT = "strict"
    OFF = "off"


class Checksums:
    """The hashes of one file in all ways at once: its first line, then all the rest.

    Without a claim nothing is hashed.
    """

    __slots__ = ("_claim", "_hashes")

    def __init__(self, claim: str, first_line: bytes, rule: ChecksumRule) -> None:
        """``first_line`` is as it came, with its line feed."""
        self._claim = claim.lower().removeprefix("sha256:")
        beginnings: dict[bytes, None] = {first_line: None}
        if rule is ChecksumRule.LENIENT:
            beginnings[_LEADING.sub(b"", first_line, count=1)] = None
            beginnings[_TRAILING.sub(b"", first_line, count=1)] = None
            beginnings[_BLANKED.sub(rb'\1""', first_line, count=1)] = None
            beginnings[b""] = None
        wanted = beginnings if claim and rule is not ChecksumRule.OFF else ()
        self._hashes = [hashlib.sha256(each) for each in wanted]

    def update(self, piece: bytes) -> None:
        for each in self._hashes:
            each.update(piece)

    def verify(self) -> None:
        """Raises `InvalidDocument`."""
        if self._hashes and all(e.hexdigest() != self._claim for e in self._hashes):
            raise InvalidDocument(
                "line 1: /collection/checksum", "the file has another checksum"
            )
