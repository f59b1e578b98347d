"""What a worker makes of a document, without the process around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain

import pytest
from msgspec import structs

from hub.ingest.parse_worker import answer, read_document
from hub.ingest.worker_frames import LENGTH, Task, decode_batch, decode_result, unwrap
from protocols.feeds import ParseContext
from protocols.model import Feed, FeedFormat, ParsedFeed
from protocols.protocol_errors import (
    EmptyDocument,
    FeedError,
    LimitExceeded,
    MalformedDocument,
)

CONTEXT = ParseContext(url="https://x.example/", now=datetime(2026, 1, 1, tzinfo=UTC))
RSS = (
    b"<rss version='2.0'><channel><title>T</title><item><guid>1</guid>"
    b"<title>One</title></item></channel></rss>"
)


def outcome(read: Callable[[Task], ParsedFeed], body: bytes = b"x") -> ParsedFeed:
    first, *others = (
        frame[LENGTH.size :] for frame in answer(Task(body, CONTEXT), read)
    )
    feed = unwrap(decode_result(first))
    batches = map(decode_batch, others)
    return structs.replace(feed, entries=tuple(chain.from_iterable(batches)))


def raising(error: Exception) -> Callable[[Task], ParsedFeed]:
    def read(task: Task) -> ParsedFeed:
        raise error

    return read


def test_a_well_formed_document_is_read_strictly() -> None:
    parsed = outcome(read_document, RSS)
    assert [entry.title for entry in parsed.entries] == ["One"]
    assert parsed.path == "strict"


def test_an_ill_formed_document_is_repaired() -> None:
    parsed = outcome(read_document, RSS.replace(b"</channel>", b""))
    assert [entry.title for entry in parsed.entries] == ["One"]
    assert parsed.path != "strict"


@pytest.mark.parametrize(
    ("raised", "told", "words"),
    [
        (EmptyDocument(), EmptyDocument, "is empty"),
        (MemoryError(), LimitExceeded, "memory"),
        (RecursionError(), LimitExceeded, "nesting"),
        (KeyError("x"), MalformedDocument, r"failed on it \(KeyError\)"),
    ],
)
def test_whatever_goes_wrong_is_told_as_a_feed_error(
    raised: Exception, told: type[FeedError], words: str
) -> None:
    with pytest.raises(told, match=words):
        outcome(raising(raised))


def test_a_result_that_cannot_be_encoded_is_told_as_a_feed_error() -> None:
    def read(task: Task) -> ParsedFeed:
        return ParsedFeed(format=FeedFormat.RSS, feed=Feed(title="\udcff"))

    with pytest.raises(MalformedDocument, match="failed on it"):
        outcome(read)


def test_of_a_part_nothing_is_repaired_into_a_feed() -> None:
    with pytest.raises(MalformedDocument, match="line 1"):
        read_document(Task(RSS, replace(CONTEXT, selector="$.a")))
