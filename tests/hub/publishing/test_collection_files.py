"""Files of collections: compressed as far as readers take it, whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from backports import zstd

from hub.publishing.collection_files import (
    LARGEST_RATIO,
    RATIO_COUNTS_FROM,
    CollectionFile,
    WrittenFile,
)
from protocols.scp.collection import (
    CollectionHead,
    CollectionType,
    Encoding,
    head_line,
)

HEAD = CollectionHead(
    section="all",
    type=CollectionType.SNAPSHOT,
    generated=datetime(2026, 1, 1, tzinfo=UTC),
)
VARIED = [hashlib.sha256(bytes([n])).hexdigest().encode() + b"\n" for n in range(200)]


def write(folder: Path, lines: list[bytes], encoding: Encoding) -> WrittenFile:
    with CollectionFile(folder, "x") as file:
        for line in lines:
            file.put([line])
        return file.finish(HEAD, encoding)


@pytest.mark.parametrize("encoding", list(Encoding))
def test_a_file_is_its_head_and_its_pages(tmp_path: Path, encoding: Encoding) -> None:
    done = write(tmp_path, VARIED, encoding)
    sent = done.path.read_bytes()
    inflate = {
        Encoding.GZIP: gzip.decompress,
        Encoding.ZSTD: zstd.decompress,
        Encoding.PLAIN: bytes,
    }[encoding]
    raw = inflate(sent)
    assert raw == head_line(HEAD) + b"".join(VARIED)
    assert done.digest == hashlib.sha256(raw).hexdigest()
    assert (done.size, done.encoding) == (len(sent), encoding)
    assert [each.name for each in tmp_path.iterdir()] == [done.path.name]
    assert write(tmp_path, VARIED, encoding) == done


def test_what_would_shrink_too_much_is_compressed_less(tmp_path: Path) -> None:
    """One text that comes again and again: gzip's first level makes less of it."""
    text = b"".join(VARIED[:6])[:400]
    lines = [b"%d" % (n % 10) + text for n in range(4_000)]
    raw = sum(map(len, lines))
    assert raw > RATIO_COUNTS_FROM
    assert raw > LARGEST_RATIO * len(gzip.compress(b"".join(lines), 4))
    for encoding in (Encoding.GZIP, Encoding.ZSTD):
        done = write(tmp_path, lines, encoding)
        assert raw <= done.size * LARGEST_RATIO
        assert done.encoding in (Encoding.GZIP, Encoding.PLAIN)


def test_and_not_at_all_if_even_that_is_too_much(tmp_path: Path) -> None:
    done = write(tmp_path, [b"x" * (2 * RATIO_COUNTS_FROM)], Encoding.ZSTD)
    assert done.encoding is Encoding.PLAIN
    assert done.path.suffix == ".scp"


def test_small_files_may_shrink_as_they_like(tmp_path: Path) -> None:
    done = write(tmp_path, [b"x" * (RATIO_COUNTS_FROM // 2)], Encoding.GZIP)
    assert done.encoding is Encoding.GZIP
    assert done.size * LARGEST_RATIO < RATIO_COUNTS_FROM // 2


def test_what_is_not_finished_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with CollectionFile(tmp_path, "x") as file:
            file.put(VARIED)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []
