from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from protocols.model import Entry, Link
from storage.packing import (
    encoded_size,
    pack,
    pack_bytes,
    unpack,
    unpack_bytes,
    unpacked_size,
)


@given(st.builds(Entry, key=st.text(), id=st.text(), title=st.text()))
def test_an_entry_survives_packing(entry: Entry) -> None:
    assert unpack(pack(entry), Entry) == entry


@given(st.binary())
def test_bytes_survive_packing(body: bytes) -> None:
    assert unpack_bytes(pack_bytes(body)) == body


def test_packing_makes_documents_smaller() -> None:
    links = tuple(Link(href=f"https://a.example/{number}") for number in range(50))
    entry = Entry(key="k", id="k", links=links)

    assert len(pack(entry)) < len(repr(entry)) / 5


def test_how_long_a_body_is_shows_without_unpacking_it() -> None:
    body = b"a" * 9_000_000
    packed = pack_bytes(body)
    assert len(packed) < 10_000
    assert unpacked_size(packed) == len(body)


def test_what_a_former_version_has_packed_is_read_and_its_length_guessed() -> None:
    packed = zlib.compress(b"content" * 100)
    assert unpack_bytes(packed) == b"content" * 100
    assert unpacked_size(packed) == 4 * len(packed)


def test_the_size_of_a_value_is_that_before_it_is_packed() -> None:
    value = {"title": "word " * 100}
    assert encoded_size(value) == unpacked_size(pack(value))
