from __future__ import annotations

import gzip
import random
import zlib
from contextlib import suppress

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.http.decompression import Decompressor
from hub.http.network_errors import BadAnswer, NetworkError, TooLarge

DOCUMENT = b"<rss>" + b"".join(b"<item>%d</item>" % n for n in range(2000)) + b"</rss>"
LIMIT = 1 << 20


def deflate_raw(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


ENCODED = {
    "gzip": gzip.compress(DOCUMENT),
    "x-gzip": gzip.compress(DOCUMENT),
    "GZip ": gzip.compress(DOCUMENT),
    "deflate": zlib.compress(DOCUMENT),
    "br": brotli.compress(DOCUMENT),
    "identity": DOCUMENT,
    "": DOCUMENT,
    "utf-8": DOCUMENT,
}
BOMBS = {
    "gzip": gzip.compress(bytes(50 << 20)),
    "deflate": zlib.compress(bytes(50 << 20)),
    "br": brotli.compress(bytes(50 << 20)),
}


def inflate(coding: str, data: bytes, *, step: int = 1 << 16) -> bytes:
    inflation = Decompressor(coding, LIMIT)
    for start in range(0, len(data), step):
        inflation.feed(data[start : start + step])
    return inflation.finish()


@pytest.mark.parametrize("step", [1, 7, 65_536])
@pytest.mark.parametrize("coding", ENCODED)
def test_a_body_is_decompressed_as_its_label_says(coding: str, step: int) -> None:
    assert inflate(coding, ENCODED[coding], step=step) == DOCUMENT


@pytest.mark.parametrize("step", [1, 65_536])
def test_deflate_without_its_zlib_wrapper_is_understood(step: int) -> None:
    assert inflate("deflate", deflate_raw(DOCUMENT), step=step) == DOCUMENT


@pytest.mark.parametrize("step", [1, 7, 65_536])
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
def test_a_plain_body_labelled_as_compressed_is_taken_as_it_came(
    coding: str, step: int
) -> None:
    assert inflate(coding, DOCUMENT, step=step) == DOCUMENT


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
@pytest.mark.parametrize("body", [b"", b"x"])
def test_a_body_too_short_for_its_label_is_taken_as_it_came(
    coding: str, body: bytes
) -> None:
    assert inflate(coding, body) == body


def test_gzip_without_a_label_is_left_to_the_reader_of_the_document() -> None:
    assert inflate("", ENCODED["gzip"]) == ENCODED["gzip"]


@pytest.mark.parametrize("step", [1, 65_536])
def test_all_members_of_a_gzip_body_are_read_and_padding_is_not(step: int) -> None:
    body = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0\0"
    assert inflate("gzip", body, step=step) == b"one two"


def test_a_gzip_body_of_countless_members_is_a_bad_answer() -> None:
    with pytest.raises(BadAnswer):
        inflate("gzip", gzip.compress(b"x") * 1001)


@pytest.mark.parametrize("step", [1, 100, 65_536])
def test_what_follows_a_deflated_body_is_ignored(step: int) -> None:
    assert inflate("deflate", ENCODED["deflate"] + b"\0\0", step=step) == DOCUMENT


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
def test_a_compressed_body_that_ends_early_is_a_bad_answer(coding: str) -> None:
    with pytest.raises(BadAnswer, match="ends early"):
        inflate(coding, ENCODED[coding][:-9])


@pytest.mark.parametrize("coding", ["gzip", "deflate"])  # br has no checksum
def test_a_compressed_body_damaged_in_its_middle_is_a_bad_answer(coding: str) -> None:
    noise = random.Random(7).randbytes(500_000)
    plain = DOCUMENT + noise
    body = gzip.compress(plain) if coding == "gzip" else zlib.compress(plain)
    damaged = body[:4000] + b"\xff" * 4000 + body[8000:]
    with pytest.raises(BadAnswer, match=r"damaged|ends early"):
        inflate(coding, damaged, step=3000)


@pytest.mark.parametrize("coding", ["zstd", "compress", "gzip, gzip", "br,gzip"])
def test_a_coding_that_was_not_asked_for_is_a_bad_answer(coding: str) -> None:
    with pytest.raises(BadAnswer, match="unknown Content-Encoding"):
        Decompressor(coding, LIMIT)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
def test_a_bomb_is_stopped_after_a_small_part_of_it(coding: str) -> None:
    plain = bytes(50 << 20)
    bomb = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress}[
        coding
    ](plain)
    inflation = Decompressor(coding, 10 << 20)
    with pytest.raises(TooLarge):
        inflation.feed(bomb)
    assert inflation._output_bytes < 2 << 20


def test_a_body_within_the_ratio_may_not_exceed_the_limit_either() -> None:
    with pytest.raises(TooLarge) as refused:
        inflate("gzip", gzip.compress(random.Random(1).randbytes(1000) * 1200))
    assert refused.value.limit == LIMIT


def test_a_plain_body_larger_than_the_limit_is_too_large() -> None:
    assert len(inflate("", bytes(LIMIT))) == LIMIT
    with pytest.raises(TooLarge):
        inflate("", bytes(LIMIT + 1))


@given(st.binary(max_size=2000), st.sampled_from(["gzip", "deflate", "br", ""]))
def test_no_bytes_whatever_raise_anything_but_our_errors(
    data: bytes, coding: str
) -> None:
    with suppress(NetworkError):
        assert len(inflate(coding, data, step=50)) <= LIMIT


@given(st.binary(max_size=5000), st.integers(1, 600))
def test_compressing_and_inflating_gives_the_same_in_any_pieces(
    data: bytes, step: int
) -> None:
    assert inflate("gzip", gzip.compress(data), step=step) == data
    assert inflate("deflate", zlib.compress(data), step=step) == data
    assert inflate("br", brotli.compress(data), step=step) == data
