"""Messages between the hub and a parse worker: length-prefixed MessagePack.

The worker says that it is ready; then each task is followed by one result. Feed errors
travel as values, with their data. A document has a frame of its own, which is not
copied. Entries come in several frames, so that a large feed is not decoded all at once.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from protocols.feeds import ParseContext
from protocols.model import Entry, ParsedFeed
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

LENGTH = struct.Struct("!I")
MOST_BYTES = 64 << 20  # of one result
BATCH = 32
"""Entries in one frame; they are decoded in a few milliseconds, however long they
are."""
READY = LENGTH.pack(0)
"""An empty frame, which a worker sends first, once it can read documents."""


@dataclass(frozen=True, slots=True)
class Task:
    """A document to read; ``is_malformed``: the strict parser has already given up."""

    body: bytes
    context: ParseContext
    is_malformed: bool = False


class TaskHeader(msgspec.Struct, frozen=True):
    """A task without its document, which is the next frame."""

    context: ParseContext
    is_malformed: bool


class Parsed(msgspec.Struct, frozen=True, tag=True):
    """A feed without its entries, which follow in so many frames."""

    feed: ParsedFeed
    batches: int = 0


class Empty(msgspec.Struct, frozen=True, tag=True):
    pass


class Other(msgspec.Struct, frozen=True, tag=True):
    found: str
    feeds: tuple[FeedLink, ...]


class Malformed(msgspec.Struct, frozen=True, tag=True):
    cause: str
    line: int | None = None
    column: int | None = None


class Invalid(msgspec.Struct, frozen=True, tag=True):
    pointer: str
    rule: str


class Unsupported(msgspec.Struct, frozen=True, tag=True):
    format: str
    version: str


class Exceeded(msgspec.Struct, frozen=True, tag=True):
    what: str
    limit: int
    line: int | None = None


Result = Parsed | Empty | Other | Malformed | Invalid | Unsupported | Exceeded

_encoder = msgspec.msgpack.Encoder()
_order_decoder = msgspec.msgpack.Decoder(TaskHeader)
_result_decoder: msgspec.msgpack.Decoder[Result] = msgspec.msgpack.Decoder(Result)
_batch_decoder = msgspec.msgpack.Decoder(tuple[Entry, ...])


def encode_task(task: Task) -> tuple[bytes, bytes]:
    """A task as two frames: the second is the document, which is not copied."""
    order = _frame(TaskHeader(task.context, task.is_malformed))
    return order + LENGTH.pack(len(task.body)), task.body


def decode_task(order: bytes, body: bytes) -> Task:
    decoded = _order_decoder.decode(order)
    return Task(body, decoded.context, decoded.is_malformed)


def encode_result(result: Result) -> list[bytes]:
    """All frames of a result."""
    if not isinstance(result, Parsed):
        return [_frame(result)]
    entries = result.feed.entries
    starts = range(0, len(entries), BATCH)
    head = Parsed(replace(result.feed, entries=()), len(starts))
    return [_frame(head), *(_frame(entries[at : at + BATCH]) for at in starts)]


def decode_result(payload: bytes) -> Result:
    """The result in a first frame. Raises msgspec.DecodeError for anything else."""
    return _result_decoder.decode(payload)


def decode_batch(payload: bytes) -> tuple[Entry, ...]:
    """The entries in one of the frames that follow. Raises msgspec.DecodeError."""
    return _batch_decoder.decode(payload)


def _frame(message: TaskHeader | Result | Sequence[Entry]) -> bytes:
    payload = _encoder.encode(message)
    return LENGTH.pack(len(payload)) + payload


def describe(error: FeedError) -> Result:
    """A feed error as a value."""
    match error:
        case EmptyDocument():
            return Empty()
        case NotAFeed():
            return Other(error.found, error.feeds)
        case MalformedDocument():
            return Malformed(error.cause, error.line, error.column)
        case InvalidDocument():
            return Invalid(error.pointer, error.rule)
        case UnsupportedVersion():
            return Unsupported(error.format, error.version)
        case LimitExceeded():
            return Exceeded(error.what, error.limit, error.line)
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
        case Invalid():
            raise InvalidDocument(result.pointer, result.rule)
        case Unsupported():
            raise UnsupportedVersion(result.format, result.version)
        case Exceeded():
            raise LimitExceeded(result.what, result.limit, result.line)
