"""Reading what is new in a document, and deciding on it, as if it were read whole."""

from __future__ import annotations

from hypothesis import given, settings

from tests.support.changing_feeds import histories
from tests.support.two_readers import TwoReaders


@given(histories())
@settings(max_examples=300)
def test_what_is_committed_is_the_same_however_a_document_was_read(
    documents: list[bytes],
) -> None:
    readers = TwoReaders()

    for document in documents:
        readers.fetch(document)
