from __future__ import annotations

import gzip
import os
import random

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from protocols.protocol_errors import FeedError, LimitExceeded, MalformedDocument
from protocols.scp.read import unpacking
from protocols.scp.read.unpacking import SizeLimits, Unpacker
from tests.support.scp_files import in_pieces

TEXT = b"".join(b"line %d of it\n" % each for each in range(2_000))
NOISE = random.Random(1).randbytes(40_000)
SKIPPABLE = b"\x5a\x2a\x4d\x18\x04\x00\x00\x00abcd"


def unpack(data: bytes, limits: SizeLimits | None = None, step: int = 1 << 20) -> bytes:
    unpacker = Unpacker(limits)
    parts = []
    for begin in range(0, len(data), step):
        parts += unpacker.feed(data[begin : begin + step])
    parts += unpacker.finish()
    assert unpacker.output == sum(map(len, parts))
    assert unpacker.wire == len(data)
    return b"".join(parts)


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(TEXT, id="as it is"),
        pytest.param(gzip.compress(TEXT), id="gzip"),
        pytest.param(zstd.compress(TEXT), id="zstd"),
        pytest.param(gzip.compress(gzip.compress(TEXT)), id="gzip, by a proxy again"),
        pytest.param(gzip.compress(zstd.compress(TEXT)), id="zstd in gzip"),
        pytest.param(
            gzip.compress(TEXT[:9_000]) + gzip.compress(TEXT[9_000:]), id="two members"
        ),
        pytest.param(
            zstd.compress(TEXT[:9_000]) + zstd.compress(TEXT[9_000:]), id="two frames"
        ),
        pytest.param(
            zstd.compress(TEXT[:9]) + SKIPPABLE + zstd.compress(TEXT[9:]),
            id="a skippable frame between",
        ),
    ],
)
@pytest.mark.parametrize("step", [1, 100, 1 << 20])
def test_a_file_is_unpacked_by_what_it_is(packed: bytes, step: int) -> None:
    assert unpack(packed, step=step) == TEXT


@pytest.mark.parametrize("data", [b"", b"\x1f", b"\x28\xb5\x2f", b"{", b"\x1fx"])
def test_what_is_too_short_to_be_packed_is_taken_as_it_is(data: bytes) -> None:
    assert unpack(data) == data


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (gzip.compress(TEXT)[:-20], "ends early"),
        (zstd.compress(TEXT)[:-20], "ends early"),
        (gzip.compress(TEXT)[:2], "ends early"),
        (gzip.compress(TEXT) + b"more", "something follows"),
        (gzip.compress(TEXT) + b"\x1f", "something follows"),
        (gzip.compress(TEXT) + b"\0\0\0\0", "something follows"),
        (zstd.compress(TEXT) + b"more", "something follows"),
        (b"\x1f\x8b\x08\x00" + bytes(100), "cannot be decompressed"),
        (b"\x1f\x8bnothing that was ever packed", "cannot be decompressed"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 100, "cannot be decompressed"),
    ],
)
def test_a_damaged_file_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(MalformedDocument, match=complaint):
        unpack(data)


def test_a_third_packing_is_no_longer_unpacked() -> None:
    packed = gzip.compress(TEXT)
    assert unpack(gzip.compress(gzip.compress(packed))) == packed


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(gzip.compress(bytes(30_000_000)), id="gzip"),
        pytest.param(zstd.compress(bytes(30_000_000)), id="zstd"),
        pytest.param(gzip.compress(gzip.compress(bytes(90_000_000))), id="twice"),
        pytest.param(
            gzip.compress(b"\x1f\x8b\x08\x08" + bytes(6) + b"x" * 30_000_000),
            id="whose second packing has an endless name",
        ),
    ],
)
def test_more_than_a_hundred_times_its_size_is_refused(bomb: bytes) -> None:
    unpacker = Unpacker()
    with pytest.raises(LimitExceeded, match="ratio of unpacked to sent bytes"):
        for _ in [*unpacker.feed(bomb), *unpacker.finish()]:
            pass
    assert unpacker.output < 8 * 1024 * 1024


def test_under_a_mebibyte_any_ratio_will_do() -> None:
    small = bytes((1 << 20) - 1)
    assert unpack(gzip.compress(small)) == small


def test_size_limits_hold() -> None:
    with pytest.raises(LimitExceeded, match="the file's size in bytes"):
        unpack(NOISE, SizeLimits(wire=39_999))
    with pytest.raises(LimitExceeded, match="the unpacked size in bytes"):
        unpack(gzip.compress(TEXT), SizeLimits(output=len(TEXT) - 1))
    unpack(NOISE, SizeLimits(wire=40_000, output=40_000))


def test_a_window_that_takes_much_memory_is_refused() -> None:
    options = {
        zstd.CompressionParameter.window_log: 27,
        zstd.CompressionParameter.enable_long_distance_matching: 1,
    }
    compressor = zstd.ZstdCompressor(options=options)
    frame = compressor.compress(os.urandom(100)) + compressor.flush()
    with pytest.raises(MalformedDocument, match="cannot be decompressed"):
        unpack(frame)


def test_members_beyond_reason_are_refused() -> None:
    empty = gzip.compress(b"")
    with pytest.raises(LimitExceeded, match="the number of compressed members"):
        unpack(empty * 1_100)
    assert unpack(gzip.compress(NOISE[:2_000]) * 1_100) == NOISE[:2_000] * 1_100


def test_output_that_fills_a_step_exactly_is_whole() -> None:
    text = (NOISE * 7)[: unpacking._OUTPUT_STEP]
    assert unpack(gzip.compress(text)) == text
    assert unpack(zstd.compress(text)) == text


_SEEDS = [TEXT[:500], NOISE[:100], bytes(1_000)]


@given(
    st.one_of(
        st.binary(max_size=300),
        st.builds(
            lambda seed, pack, damage, at: _damaged(pack(seed), damage, at),
            st.sampled_from(_SEEDS),
            st.sampled_from([gzip.compress, zstd.compress]),
            st.binary(max_size=4),
            st.integers(0, 500),
        ),
    ),
    st.lists(st.integers(0, 500), max_size=5),
)
def test_the_pieces_change_nothing_and_nothing_else_is_raised(
    data: bytes, cuts: list[int]
) -> None:
    assert outcome([data]) == outcome(in_pieces(data, cuts))


def outcome(pieces: list[bytes]) -> object:
    unpacker = Unpacker(SizeLimits(output=100_000))
    parts = []
    try:
        for piece in pieces:
            parts += list(unpacker.feed(piece))
        parts += list(unpacker.finish())
    except FeedError as error:
        return str(error)
    return b"".join(parts)


def _damaged(data: bytes, damage: bytes, at: int) -> bytes:
    return data[:at] + damage + data[at + len(damage) :]
