"""Writes a collection into a file: pages first, then head and pages compressed.

The head says when everything was generated, which is known only at the end. So pages
are gathered in a file of their own, and only one batch is held in memory.
"""

from __future__ import annotations

import hashlib
import os
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from protocols.scp.collection import CollectionHead, Encoding, head_line

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHUNK = 256 * 1024
LARGEST_RATIO = 90
"""The most that a file is compressed, to one part in so many. Readers refuse 100:1
(SCP, "Decompression"), and some count the head differently."""
RATIO_COUNTS_FROM = 1024 * 1024
"""Bytes of a collection from which on readers check the ratio."""
_GZIP_LEVEL = 4
"""It takes a third of the time of level 6, for 7 % more bytes of such text."""
_ZSTD_LEVEL = 3
_GZIP = 31
"""Window bits that make zlib write a gzip header, in which no time is set."""


class Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class _Plain:
    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    path: Path
    encoding: Encoding
    digest: str  # SHA-256 of the uncompressed bytes, hex
    size: int  # bytes as they are sent


class CollectionFile:
    """A collection that is being written, as a context manager: if it is not finished,
    no file is left behind."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._pages_path = directory / f"{name}.pages.part"
        self._target = directory / f"{name}.part"
        self._pages = self._pages_path.open("w+b")
        self.count = 0
        self.raw_size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pages.close()
        self._pages_path.unlink(missing_ok=True)
        self._target.unlink(missing_ok=True)

    def put(self, lines: list[bytes]) -> None:
        data = b"".join(lines)
        self._pages.write(data)
        self.count += len(lines)
        self.raw_size += len(data)

    def finish(self, head: CollectionHead, encoding: Encoding) -> WrittenFile:
        """Compress the file and make it durable; if it compresses too well, compress
        less."""
        first = head_line(head)
        raw = len(first) + self.raw_size
        for level, tried in _attempts(encoding):
            digest, size = self._compress(first, tried, level)
            is_small = raw < RATIO_COUNTS_FROM or raw <= size * LARGEST_RATIO
            if is_small:
                break
        name = f"{head.id}-{digest[:12]}{tried.suffix}"
        path = self._directory / name
        self._target.replace(path)
        return WrittenFile(path=path, encoding=tried, digest=digest, size=size)

    def _compress(
        self, first: bytes, encoding: Encoding, level: int
    ) -> tuple[str, int]:
        """The digest of the bytes before compression, and the number of bytes after
        it."""
        compressor = _compressor(encoding, level)
        digest = hashlib.sha256()
        with self._target.open("wb") as file:
            for chunk in self._chunks(first):
                digest.update(chunk)
                file.write(compressor.compress(chunk))
            file.write(compressor.flush())
            file.flush()
            os.fsync(file.fileno())
            return digest.hexdigest(), file.tell()

    def _chunks(self, first: bytes) -> Iterator[bytes]:
        yield first
        self._pages.seek(0)
        while chunk := self._pages.read(CHUNK):
            yield chunk


def _attempts(encoding: Encoding) -> list[tuple[int, Encoding]]:
    """Levels and encodings to try, from the wanted one to one that is always
    allowed."""
    if encoding is Encoding.PLAIN:
        return [(0, Encoding.PLAIN)]
    level = _ZSTD_LEVEL if encoding is Encoding.ZSTD else _GZIP_LEVEL
    return [(level, encoding), (1, Encoding.GZIP), (0, Encoding.PLAIN)]


def _compressor(encoding: Encoding, level: int) -> Compressor:
    if encoding is Encoding.GZIP:
        return zlib.compressobj(level, zlib.DEFLATED, _GZIP)
    if encoding is Encoding.ZSTD:
        return zstd.ZstdCompressor(level)
    return _Plain()
