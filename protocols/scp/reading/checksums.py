"""What a collection's ``checksum`` may be the hash of.

The specification hashes the file that contains the hash, which nobody can make. What
publishers hash instead is the file without the member, or with an empty value, or its
pages only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from protocols.errors import InvalidDocument

CHECKSUM: Final = re.compile("sha256:[0-9a-fA-F]{64}")
"""The specification wants lower case, the schema takes either."""
_MEMBER: Final = re.compile(rb'("checksum"\s*+:\s*+)"sha256:[0-9a-fA-F]{64}"')


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
        beginnings: dict[bytes, None] = {}
        if claim and rule is not ChecksumRule.OFF:
            beginnings[first_line] = None
        if claim and rule is ChecksumRule.LENIENT:
            beginnings.update(dict.fromkeys(_without_claim(first_line)))
        self._hashes = [hashlib.sha256(each) for each in beginnings]

    def update(self, piece: bytes) -> None:
        for each in self._hashes:
            each.update(piece)

    def verify(self) -> None:
        """Raises `InvalidDocument`."""
        if self._hashes and all(e.hexdigest() != self._claim for e in self._hashes):
            raise InvalidDocument(
                "line 1: /collection/checksum", "the file has another checksum"
            )


def _without_claim(line: bytes) -> Iterator[bytes]:
    """A first line as it may have been before the claim was made, or nothing of it.

    Blanks are cut by index: a pattern that begins with them takes the square of time.
    """
    if (found := _MEMBER.search(line)) is not None:
        before, after = line[: found.start()], line[found.end() :]
        if (left := before.rstrip()).endswith(b","):
            yield left[:-1].rstrip() + after
        if (right := after.lstrip()).startswith(b","):
            yield before + right[1:].lstrip()
        yield before + found[1] + b'""' + after
    yield b""
