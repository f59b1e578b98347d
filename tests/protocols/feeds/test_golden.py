"""Every golden document is read as the file beside it says.

`tests.support.golden` says how the readings are written anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from protocols.feeds.lenient import parse_leniently
from protocols.model import Entry, Feed
from storage.packing import pack, unpack
from tests.support.golden import (
    CONTEXT,
    DATA,
    OTHERS,
    golden_documents,
    other_reading,
    other_reading_path,
    reading,
    reading_path,
)


@pytest.mark.parametrize(
    "document", golden_documents(), ids=lambda path: str(path.relative_to(DATA))
)
def test_a_document_is_read_as_its_golden_reading_says(document: Path) -> None:
    expected = json.loads(reading_path(document).read_text(encoding="utf-8"))
    assert reading(document) == expected


@pytest.mark.parametrize(
    "document", golden_documents(), ids=lambda path: str(path.relative_to(DATA))
)
def test_what_is_read_survives_packing(document: Path) -> None:
    """Plain values only: whatever a document holds can be stored and read back."""
    parsed = parse_leniently(document.read_bytes(), CONTEXT)
    for entry in parsed.entries:
        assert unpack(pack(entry), Entry) == entry
    assert unpack(pack(parsed.feed), Feed) == parsed.feed


@pytest.mark.parametrize("path", OTHERS)
def test_what_leads_to_entries_is_read_as_its_golden_reading_says(path: str) -> None:
    expected = json.loads(other_reading_path(path).read_text(encoding="utf-8"))
    assert other_reading(path) == expected
