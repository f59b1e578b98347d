from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain

import msgspec
import pytest
from msgspec.structs import replace

from hub.ingest.worker_frames import (
    BATCH,
    LENGTH,
    Parsed,
    Task,
    decode_batch,
    decode_result,
    decode_task,
    describe,
    encode_result,
    encode_task,
    unwrap,
)
from protocols.feeds import ParseContext
from protocols.model import (
    Author,
    Deletion,
    Entry,
    Feed,
    FeedFormat,
    Geo,
    Hints,
    IdSource,
    Link,
    ParsedFeed,
    Text,
)
from protocols.protocol_errors import (
    EmptyDocument,
    FeedError,
    FeedLink,
    InvalidDocument,
    LimitExceeded,
    MalformedDocument,
    NotAFeed,
    UnsupportedVersion,
)

NOW = datetime(2026, 3, 1, 12, 30, 15, 250_000, tzinfo=UTC)
FEED = ParsedFeed(
    format=FeedFormat.ATOM,
    feed=Feed(id="tag:x", title="T\u00eft\u2028le \U0001f4f0", updated=NOW),
    entries=(
        Entry(
            key="k",
            id="tag:x/1",
            id_source=IdSource.LINK,
            title="One",
            content=Text(value="<p>x</p>", type="xhtml"),
            published=NOW,
            links=(Link(href="https://x.example/1", length=2**40),),
            authors=(Author(name="A", object_types=("person",)),),
            geo=Geo(latitude=1.5, longitude=-2.5),
            source=Feed(title="Source"),
            extensions={"podcast": {"season": 1, "list": [1.5, None, True, "x"]}},
        ),
    ),
    deletions=(Deletion(key="d", id="tag:x/0", at=NOW),),
    hints=Hints(ttl_minutes=60, skip_hours=(0, 23)),
    path="feedparser",
    problems=("a problem",),
)


def payload(frame: bytes) -> bytes:
    (length,) = LENGTH.unpack(frame[: LENGTH.size])
    assert length == len(frame) - LENGTH.size
    return frame[LENGTH.size :]


def test_a_task_arrives_as_it_was_sent() -> None:
    context = ParseContext(url="https://x.example/", content_type="text/xml", now=NOW)
    task = Task(b"\x00\xff<rss/>", context, is_malformed=True)
    head, body = encode_task(task)
    order = payload(head[: -LENGTH.size])
    assert decode_task(order, payload(head[-LENGTH.size :] + body)) == task


def test_a_document_is_not_copied_into_its_frame() -> None:
    body = b"<rss/>"
    context = ParseContext(url="https://x.example/", now=NOW)
    assert encode_task(Task(body, context))[-1] is body


@pytest.mark.parametrize("count", [0, 1, BATCH, BATCH + 1, 3 * BATCH])
def test_a_feed_arrives_as_it_was_sent(count: int) -> None:
    entries = tuple(replace(FEED.entries[0], key=str(each)) for each in range(count))
    feed = replace(FEED, entries=entries)
    first, *others = map(payload, encode_result(Parsed(feed)))
    head = decode_result(first)
    batches = [decode_batch(each) for each in others]
    assert isinstance(head, Parsed)
    assert head.batches == len(batches)
    assert all(len(batch) <= BATCH for batch in batches)
    assert replace(unwrap(head), entries=tuple(chain(*batches))) == feed


@pytest.mark.parametrize(
    "error",
    [
        EmptyDocument(),
        NotAFeed("an HTML page", (FeedLink(href="https://x.example/f", title="F"),)),
        MalformedDocument("mismatched tag", 3, 14),
        MalformedDocument("no end"),
        InvalidDocument("/creator", "expected an object"),
        UnsupportedVersion("feed.json", "2"),
        LimitExceeded("the depth of elements", 200),
        LimitExceeded("the depth of elements", 200, 7),
    ],
    ids=lambda error: type(error).__name__ + str(len(str(error))),
)
def test_a_feed_error_arrives_with_all_its_data(error: FeedError) -> None:
    (frame,) = encode_result(describe(error))
    with pytest.raises(type(error)) as caught:
        unwrap(decode_result(payload(frame)))
    assert str(caught.value) == str(error)
    assert vars(caught.value) == vars(error)


def test_a_feed_error_of_another_kind_arrives_as_a_malformed_document() -> None:
    with pytest.raises(MalformedDocument, match="something else"):
        unwrap(describe(FeedError("something else")))


@pytest.mark.parametrize("noise", [b"", b"noise", b"\x81\xa4type\xa5Other"])
def test_what_is_no_result_is_refused(noise: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_result(noise)
