"""Unpack a file by its content, not by what is declared.

Clients and proxies decode gzip on the way, leave zstd as it is, or compress a second
time; only the magic numbers tell (RFC 1952, RFC 8878).

A ``checksum`` is compared with several hashes. The specification hashes the file that
contains the hash, which is impossible. What publishers hash instead is the file without
the member, or with an empty value, or its pages only.
"""

from __future__ import annotations

import hashlib
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from protocols.protocol_errors import InvalidDocument, LimitExceeded, MalformedDocument

CHECKSUM: Final = re.compile("sha256:[0-9a-fA-F]{64}")
"""The specification requires lower case, the schema allows both."""
_MEMBER: Final = re.compile(rb'("checksum"\s*+:\s*+)"sha256:[0-9a-fA-F]{64}"')


class ChecksumRule(StrEnum):
    """``LENIENT`` accepts any of the hashes, ``STRICT`` only that of the whole file.

    No publisher can give the latter.
    """

    LENIENT = "lenient"
    STRICT = "strict"
    OFF = "off"


class Checksums:
    """Computes all hashes of a file at once: first its first line, then the rest.

    Nothing is hashed if the file claims no checksum.
    """

    __slots__ = ("_claim", "_hashes")

    def __init__(self, claim: str, first_line: bytes, rule: ChecksumRule) -> None:
        """``first_line`` is as received, with its line feed."""
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
        """Raise `InvalidDocument` if no hash is the claimed one."""
        if self._hashes and all(e.hexdigest() != self._claim for e in self._hashes):
            raise InvalidDocument(
                "line 1: /collection/checksum", "the file has another checksum"
            )


def _without_claim(line: bytes) -> Iterator[bytes]:
    """The first line as it may have been before the checksum was added, or b"".

    Blanks are stripped by index: a pattern that begins with them takes quadratic time.
    """
    if (found := _MEMBER.search(line)) is not None:
        before, after = line[: found.start()], line[found.end() :]
        if (left := before.rstrip()).endswith(b","):
            yield left[:-1].rstrip() + after
        if (right := after.lstrip()).startswith(b","):
            yield before + right[1:].lstrip()
        yield before + found[1] + b'""' + after
    yield b""


if sys.version_info >= (3, 14):  # pragma: no cover
    from compression import zstd
else:  # pragma: no cover
    from backports import zstd

GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
MOST_LAYERS: Final = 2
MOST_RATIO: Final = 100
"""SCP, "Resource Limits": "Limit decompression ratio to 100:1 maximum"."""
RATIO_COUNTS_FROM: Final = 1 << 20
"""Bytes of output; a small file of repetitive text exceeds any ratio."""
_STEP: Final = 1 << 14
_OUTPUT_STEP: Final = 1 << 18
_WINDOW: Final = 23
"""RFC 9659: "a frame with a Window_Size that is more than 8 MB" is not for decoders of
content. The window is held in memory.
"""
_ZSTD_OPTIONS: Final[dict[int, int]] = {
    zstd.DecompressionParameter.window_log_max: _WINDOW
}
_FREE_MEMBERS: Final = 1_000
_MEMBER_BYTES: Final = 1 << 10
"""The average size that members must have beyond the free ones: opening one is
costly.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeLimits:
    """Limits in bytes. The specification's are 50 GB on the wire, 500 GB unpacked and
    100 MB for a page.
    """

    wire: int = 1 << 30
    output: int = 10 << 30
    line: int = 1 << 20


class _Member(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...


class Unpacker:
    """Unpacks one file: `feed` it in pieces of any size, then `finish`.

    The output depends only on the bytes, not on how they are split. Raises
    `MalformedDocument` and `LimitExceeded`, and must not be used afterwards. ``wire``
    and ``output`` are the numbers of bytes read and returned so far.
    """

    __slots__ = ("_held", "_layers", "_limits", "output", "wire")

    def __init__(self, limits: SizeLimits | None = None) -> None:
        self._limits = limits or SizeLimits()
        self._held = bytearray()
        self._layers = [_Layer() for _ in range(MOST_LAYERS)]
        self.wire = 0
        self.output = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        self._held += piece
        while len(self._held) >= _STEP:
            step = bytes(self._held[:_STEP])
            del self._held[:_STEP]
            yield from self._unpack(step)

    def finish(self) -> Iterator[bytes]:
        rest = bytes(self._held)
        self._held.clear()
        yield from self._unpack(rest)
        for number, layer in enumerate(self._layers):
            for output in layer.finish():
                yield from self._pass(output, number + 1)

    def _unpack(self, step: bytes) -> Iterator[bytes]:
        self.wire += len(step)
        if self.wire > self._limits.wire:
            raise LimitExceeded("the file's size in bytes", self._limits.wire)
        yield from self._pass(step, 0)

    def _pass(self, data: bytes, number: int) -> Iterator[bytes]:
        """Pass data through the layers from this number on."""
        if number == len(self._layers):
            self.output += len(data)
            yield data
            return
        layer = self._layers[number]
        for output in layer.unpack(data):
            self._check(layer.output)
            yield from self._pass(output, number + 1)

    def _check(self, output: int) -> None:
        if output > self._limits.output:
            raise LimitExceeded("the unpacked size in bytes", self._limits.output)
        if output >= RATIO_COUNTS_FROM and output > MOST_RATIO * self.wire:
            raise LimitExceeded("the ratio of unpacked to sent bytes", MOST_RATIO)


class _Layer:
    """One layer of packing; data that does not begin with a magic number is
    unchanged.
    """

    __slots__ = ("_begun", "_held", "_magic", "_member", "_members", "_taken", "output")

    def __init__(self) -> None:
        self._magic: bytes | None = None  # b"": it is not packed
        self._held = b""  # too short to recognize a magic number
        self._member: _Member | None = None
        self._members = 0
        self._taken = 0
        self.output = 0

    def unpack(self, data: bytes) -> Iterator[bytes]:
        self._taken += len(data)
        data = self._held + data
        self._held = b""
        while data:
            if self._magic == b"":
                self.output += len(data)
                yield data
                return
            if self._member is None and not self._begin(data):
                self._held = data
                return
            if self._member is not None:
                for output in self._from_member(data):
                    self.output += len(output)
                    yield output
                data = self._rest()

    def finish(self) -> Iterator[bytes]:
        """Yield what was too short. Raises `MalformedDocument` if the file ends
        early.
        """
        if self._member is not None:
            raise MalformedDocument("the compressed file ends early")
        if self._held and self._magic is not None:
            raise MalformedDocument("something follows the compressed file")
        if self._held:
            self.output += len(self._held)
            yield self._held

    def _begin(self, data: bytes) -> bool:
        """Begin the next member, of the kind of the first. False if there is too little
        data.
        """
        if self._magic is None:
            found = next((m for m in (GZIP, ZSTD) if data.startswith(m)), b"")
            if not found and any(m.startswith(data) for m in (GZIP, ZSTD)):
                return False
            self._magic = found
            if not found:
                return True
        if not data.startswith(self._magic):
            if self._magic.startswith(data):
                return False
            if not _is_skippable(self._magic, data):
                raise MalformedDocument("something follows the compressed file")
        self._count_member()
        if self._magic == GZIP:
            self._member = zlib.decompressobj(31)
        else:
            self._member = zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)
        return True

    def _count_member(self) -> None:
        self._members += 1
        if self._members > _FREE_MEMBERS + self._taken // _MEMBER_BYTES:
            raise LimitExceeded("the number of compressed members", self._members - 1)

    def _from_member(self, data: bytes) -> Iterator[bytes]:
        member = self._member
        try:
            if isinstance(member, zstd.ZstdDecompressor):
                yield member.decompress(data, _OUTPUT_STEP)
                while not member.eof and not member.needs_input:
                    yield member.decompress(b"", _OUTPUT_STEP)
            else:
                yield from _inflate(member, data)
        except (zlib.error, zstd.ZstdError) as error:
            raise MalformedDocument(f"cannot be decompressed: {error}") from None

    def _rest(self) -> bytes:
        """The data after the member, if the member has ended."""
        member = self._member
        if member is None or not member.eof:
            return b""
        self._member = None
        return member.unused_data


def _inflate(member: Any, data: bytes) -> Iterator[bytes]:
    while True:
        output = member.decompress(data, _OUTPUT_STEP)
        yield output
        data = member.unconsumed_tail
        if member.eof or (not data and len(output) < _OUTPUT_STEP):
            return


def _is_skippable(magic: bytes, data: bytes) -> bool:
    """RFC 8878, 3.1.2: 0x184D2A50 to 0x184D2A5F, of which the first byte varies."""
    return magic == ZSTD and data[0] & 0xF0 == 0x50 and data[1:4] == b"\x2a\x4d\x18"
