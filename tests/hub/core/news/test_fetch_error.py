from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hub.core.fetched import Fetched, ParseOutcome
from hub.core.news.fetch_commit import fetch_error, is_known_body
from protocols.protocol_errors import EmptyDocument
from storage.records import Polling
from tests.support.documents import a_document

NOW = datetime(2026, 3, 1, tzinfo=UTC)
GOOD = Polling(body_hash="ab")
BAD = Polling(body_hash="ab", body_error="the document is empty")


def answer(status: int, error: str = "") -> Fetched:
    return Fetched(at=NOW, started=NOW, url="//feed/", status=status, error=error)


@pytest.mark.parametrize(
    ("polling", "fetched", "understood", "trouble"),
    [
        (GOOD, answer(500, "answered 500"), ParseOutcome(), "answered 500"),
        (
            GOOD,
            answer(200),
            ParseOutcome(error=EmptyDocument()),
            "the document is empty",
        ),
        (BAD, answer(200), ParseOutcome(feed=a_document()), ""),
        (GOOD, answer(304), ParseOutcome(), ""),
        (GOOD, answer(200), ParseOutcome(), ""),
        (BAD, answer(304), ParseOutcome(), "the document is empty"),
    ],
)
def test_an_error_is_told_in_words(
    polling: Polling, fetched: Fetched, understood: ParseOutcome, trouble: str
) -> None:
    assert fetch_error(polling, fetched, understood) == trouble


def test_a_known_body_that_was_a_feed_need_not_be_parsed() -> None:
    assert is_known_body(GOOD, "ab")
    assert not is_known_body(GOOD, "cd")
    assert not is_known_body(BAD, "ab")
