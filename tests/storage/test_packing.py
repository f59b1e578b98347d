from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from protocols.model import Entry, Link
from storage.packing import pack, pack_bytes, unpack, unpack_bytes


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
