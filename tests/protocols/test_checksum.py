from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from protocols.identity import checksum


def test_it_stays_the_same_for_good() -> None:
    assert checksum(b"a document").hex() == "b6ed5e8ce6cb88b88c6f58db02e5abc4"


@given(st.binary(), st.binary())
def test_documents_that_differ_have_others(one: bytes, other: bytes) -> None:
    assert (checksum(one) == checksum(other)) == (one == other)


@given(st.binary(min_size=1), st.data())
def test_the_change_of_a_single_byte_shows(
    document: bytes, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(document) - 1))
    byte = data.draw(st.integers(0, 255))
    changed = document[:at] + bytes([byte]) + document[at + 1 :]

    assert (checksum(changed) == checksum(document)) == (changed == document)


def test_a_part_of_a_document_need_not_be_copied() -> None:
    assert checksum(memoryview(b"a document")[2:]) == checksum(b"document")
