"""Rows of chunks, retries, dead letters and attempts, and their values."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from storage.records import (
    Attempt,
    ChunkOutcome,
    ClaimedChunk,
    DeadLetter,
    Position,
    RetryingSubscription,
    SubscriptionId,
)
from storage.secrets import SecretBox
from storage.sqlite.columns import from_milliseconds
from storage.sqlite.log_rows import read_record
from storage.sqlite.readers import Row
from storage.sqlite.subscription_rows import read_subscription

OUTCOME_BYTES = 4
_OUTCOME = struct.Struct(">HH")
_PENDING_STATUS = 0xFFFF
_LONGEST = 0xFFFF
PENDING = _OUTCOME.pack(_PENDING_STATUS, 0)
"""The outcome of a member that is not acknowledged yet."""
NO_ATTEMPT = _OUTCOME.pack(0, 0)

_member_decoder = msgspec.json.Decoder(list[Row])


def pack_outcome(outcome: ChunkOutcome) -> bytes:
    """Milliseconds above 65,535 count as that: no request takes so long."""
    return _OUTCOME.pack(outcome.status, min(outcome.milliseconds, _LONGEST))


def unpack_outcome(packed: bytes) -> tuple[int, int]:
    status, milliseconds = _OUTCOME.unpack(packed)
    return status, milliseconds


def pending_indexes(outcomes: bytes | bytearray) -> Iterator[int]:
    for index, (status, _) in enumerate(_OUTCOME.iter_unpack(outcomes)):
        if status == _PENDING_STATUS:
            yield index


def read_chunk(row: Row, box: SecretBox) -> ClaimedChunk:
    """From a row of id, lease, outcomes, members and a record's columns.

    The members are JSON: each is a subscription and its index.
    """
    chunk_id, lease_id, outcomes, members = row[:4]
    pending = set(pending_indexes(outcomes))
    return ClaimedChunk(
        id=chunk_id,
        lease_id=lease_id,
        record=read_record(row[4:]),
        pending=tuple(
            (member[-1], read_subscription(member, box))
            for member in _member_decoder.decode(members)
            if member[-1] in pending
        ),
    )


def read_retrying(row: Row, box: SecretBox) -> RetryingSubscription:
    """From the view ``stored_stragglers``."""
    (
        *_subscription,
        position,
        attempts,
        next_try,
        failing_since,
        last_status,
        last_error,
        skip_after,
        skip_to,
        missed_first,
        missed_last,
        lease_id,
        tried_to,
    ) = row
    return RetryingSubscription(
        subscription=read_subscription(row, box),
        position=position,
        attempts=attempts,
        next_try=from_milliseconds(next_try),
        failing_since=from_milliseconds(failing_since),
        last_status=last_status,
        last_error=last_error,
        skip_after=skip_after,
        skip_to=skip_to,
        missed=None if missed_first is None else (missed_first, missed_last),
        lease_id=lease_id,
        tried_to=tried_to,
    )


def read_dead_letter(row: Row) -> DeadLetter:
    dead_id, subscription_id, topic, callback, first, last, reason, at = row
    return DeadLetter(
        id=dead_id,
        subscription_id=subscription_id,
        topic=topic,
        callback=callback,
        first=first,
        last=last,
        reason=reason,
        at=from_milliseconds(at),
    )


def read_attempt(subscription_id: SubscriptionId, row: Row) -> Attempt:
    position, at, status, milliseconds, error = row
    return Attempt(
        subscription_id=subscription_id,
        position=Position(position),
        at=from_milliseconds(at),
        status=status,
        milliseconds=milliseconds,
        error=error,
    )


def read_chunk_attempt(subscription_id: SubscriptionId, row: Row) -> Attempt:
    position, at, outcome = row
    status, milliseconds = unpack_outcome(outcome)
    return Attempt(
        subscription_id=subscription_id,
        position=Position(position),
        at=from_milliseconds(at),
        status=status,
        milliseconds=milliseconds,
    )
