"""What passes between the hub and a parse worker: length-prefixed MessagePack.

The worker says that it is ready; then one task, one result. Feed errors travel as
values, with their data.
"""

from __future__ import annotations

import struct

import msgspec

from protocols.errors import (
    EmptyDocument,
    FeedError,
    FeedLink,
    LimitExceeded,
    MalformedDocument,
    NotAFeed,
)
from protocols.feeds import ParseContext
from protocols.model import ParsedFeed

LENGTH = struct.Struct("!I")
MOST_BYTES = 64 << 20  # of one frame
READY = LENGTH.pack(0)
"""An empty frame: what a worker says first, once it can read documents."""


class Task(msgspec.Struct, frozen=True):
    """A document to read; ``is_malformed``: the strict parser has already given up."""

    body: bytes
    context: ParseContext
    is_malformed: bool = False


class Parsed(msgspec.Struct, frozen=True, tag=True):
    feed: ParsedFeed


class Empty(msgspec.Struct, frozen=True, tag=True):
    pass


class Other(msgspec.Struct, frozen=True, tag=True):
    found: str
    feeds: tuple[FeedLink, ...]


class Malformed(msgspec.Struct, frozen=True, tag=True):
    cause: str
    line: int | None = None
    column: int | None = None


class Exceeded(msgspec.Struct, frozen=True, tag=True):
    what: str
    limit: int


Result = Parsed | Empty | Other | Malformed | Exceeded

_encoder = msgspec.msgpack.Encoder()
_task_decoder = msgspec.msgpack.Decoder(Task)
_result_decoder: msgspec.msgpack.Decoder[Result] = msgspec.msgpack.Decoder(Result)


def encode(message: Task | Result) -> bytes:
    """The whole frame, length first."""
    payload = _encoder.encode(message)
    return LENGTH.pack(len(payload)) + payload


def decode_task(payload: bytes) -> Task:
    return _task_decoder.decode(payload)


def decode_result(payload: bytes) -> Result:
    """Raises msgspec.DecodeError for anything else than a result."""
    return _result_decoder.decode(payload)


def describe(error: FeedError) -> Result:
    """A feed error as a value."""
    match error:
        case EmptyDocument():
            return Empty()
        case NotAFeed():
            return Other(error.found, error.feeds)
        case MalformedDocument():
            return Malformed(error.cause, error.line, error.column)
        case LimitExceeded():
            return Exceeded(error.what, error.limit)
        case _:
            return Malformed(str(error))


def unwrap(result: Result) -> ParsedFeed:
    """The parsed feed; raises the feed error that the result describes."""
    match result:
        case Parsed():
            return result.feed
        case Empty():
            raise EmptyDocument
        case Other():
            raise NotAFeed(result.found, result.feeds)
        case Malformed():
            raise MalformedDocument(result.cause, result.line, result.column)
        case Exceeded():
            raise LimitExceeded(result.what, result.limit)
