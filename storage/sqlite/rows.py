"""Reads rows of the log, of feeds, subscriptions and deliveries as values, and packs
them."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec

from protocols.model import Status
from storage.records import (
    Attempt,
    AttemptDetails,
    AttemptReason,
    CallbackState,
    ChunkOutcome,
    ClaimedChunk,
    Credentials,
    DeadLetter,
    DueFeed,
    EntryId,
    EntryRef,
    FailedAttempt,
    FeedHealth,
    FeedId,
    FeedPush,
    FeedState,
    FetchTarget,
    Format,
    LatestRequests,
    OperationalEvent,
    Polling,
    Position,
    Posting,
    Push,
    PushCallback,
    PushOffer,
    PushRecord,
    PushWay,
    PushWrite,
    Record,
    RecordKind,
    RetryingSubscription,
    SentChunk,
    StoredEntry,
    StoredFeed,
    Subscription,
    SubscriptionId,
    SubscriptionState,
    TimedRequest,
    Updates,
)
from storage.secrets import SecretBox
from storage.sqlite.columns import (
    answer_time,
    from_milliseconds,
    from_milliseconds_or_none,
    pack_answer_time,
    to_milliseconds_or_none,
)
from storage.sqlite.feed_statistics import read_statistics
from storage.sqlite.readers import Row

_status_decoder = msgspec.json.Decoder(Status)
_event_decoder = msgspec.json.Decoder(OperationalEvent)


# --- the log ---


RECORD = "position, at, feed_id, kind, status, refs, is_superseded, source_id, event"
"""The columns that `read_record` takes."""


def read_record(row: Row) -> Record:
    position, at, feed_id, kind, status, refs, is_superseded, source, event = row
    return Record(
        position=position,
        at=from_milliseconds(at),
        feed_id=feed_id,
        kind=RecordKind(kind),
        status=_status_decoder.decode(status),
        entries=unpack_refs(refs),
        is_superseded=bool(is_superseded),
        source=source,
        event=None if event is None else decode_event(event),
    )


def decode_event(encoded: str) -> OperationalEvent:
    return _event_decoder.decode(encoded)


ENTRY = "e.id, e.feed_id, e.key, e.revision, e.deleted, e.body, e.unlisted"
"""The columns that `read_entry` takes, of ``entries e``."""


def read_entry(row: Row) -> StoredEntry:
    entry_id, feed_id, key, revision, deleted, body, unlisted = row
    return StoredEntry(
        id=entry_id,
        feed_id=feed_id,
        key=key,
        revision=revision,
        deleted=bool(deleted),
        body=body,
        unlisted=bool(unlisted),
    )


def hash_key(key: str) -> bytes:
    """A hash that represents a key of any length in an index."""
    return hashlib.blake2b(key.encode(), digest_size=16).digest()


PACKED_REF_BYTES: Final = 16


def pack_refs(refs: Sequence[tuple[int, int, bool]]) -> bytes:
    """Pack (entry id, revision, fresh) as pairs of 64-bit integers."""
    numbers = [
        number
        for entry_id, revision, fresh in refs
        for number in (entry_id, revision << 1 | fresh)
    ]
    return struct.pack(f"<{len(numbers)}q", *numbers)


def unpack_refs(packed: bytes) -> tuple[EntryRef, ...]:
    return tuple(
        EntryRef(EntryId(entry_id), marked >> 1, bool(marked & 1))
        for entry_id, marked in struct.iter_unpack("<qq", packed)
    )


# --- subscriptions ---

# looking up takes a third of a call of the enumeration, and chunks have 500 members
_FORMATS = {each.value: each for each in Format}
_UPDATES = {each.value: each for each in Updates}
_STATES = {each.value: each for each in SubscriptionState}


def read_subscription(row: Row, box: SecretBox) -> Subscription:
    """Read a row of the view ``stored_subscriptions``; further columns may follow."""
    return Subscription(
        id=row[0],
        account=row[1],
        topic=row[2],
        feed_id=row[3],
        callback=row[4],
        secret=box.decrypt(row[5]),
        algorithm=row[6],
        format=_FORMATS[row[7]],
        updates=_UPDATES[row[8]],
        batch=bool(row[9]),
        state=_STATES[row[10]],
        from_position=row[11],
        lease_end=from_milliseconds_or_none(row[12]),
        created_at=from_milliseconds(row[13]),
        exhausted=bool(row[14]),
        ended_reason=row[15],
        former_secret=box.decrypt(row[16]),
        former_until=from_milliseconds_or_none(row[17]),
    )


# --- deliveries ---

OUTCOME_BYTES = 4
"""Bytes of a member's outcome, and of the time of its answer in another column."""
_OUTCOME = struct.Struct(">HH")
_PENDING_STATUS = 0xFFFF
_LONGEST = 0xFFFF
PENDING = _OUTCOME.pack(_PENDING_STATUS, 0)
"""The outcome of a member that is not acknowledged yet."""
NO_ATTEMPT = _OUTCOME.pack(0, 0), pack_answer_time(0)
"""The outcome and the time of a member that needs nothing more."""

ATTEMPT = (
    "a.id, a.subscription_id, a.position, a.at, a.status, a.milliseconds, a.error,"
    " a.reason"
)
_ATTEMPT_REASONS = tuple(AttemptReason)
ATTEMPT_REASON_NUMBERS = {each: number for number, each in enumerate(AttemptReason)}
"""Columns that `read_attempt` expects; the details, or NULL, follow them."""

_member_decoder = msgspec.json.Decoder(list[Row])
_details_decoder = msgspec.msgpack.Decoder(AttemptDetails)


def pack_outcome(outcome: ChunkOutcome) -> bytes:
    """Pack an outcome. More than 65,535 ms count as that: no request takes so long."""
    return _OUTCOME.pack(outcome.status, min(outcome.milliseconds, _LONGEST))


def unpack_outcome(packed: bytes) -> tuple[int, int]:
    status, milliseconds = _OUTCOME.unpack(packed)
    return status, milliseconds


def pending_indexes(outcomes: bytes | bytearray) -> Iterator[int]:
    for index, (status, _) in enumerate(_OUTCOME.iter_unpack(outcomes)):
        if status == _PENDING_STATUS:
            yield index


def read_chunk(row: Row, box: SecretBox) -> ClaimedChunk:
    """Read a row of id, lease, outcomes, members and a record's columns.

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
    """Read a row of the view ``stored_stragglers``."""
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
        is_paused,
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
        is_paused=bool(is_paused),
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


def pack_details(details: AttemptDetails | None) -> bytes | None:
    return None if details is None else msgspec.msgpack.encode(details)


def read_attempt(row: Row) -> Attempt:
    """Read the columns of `ATTEMPT`, then the details; further columns may follow."""
    number, whose, position, at, status, milliseconds, error, reason, packed = row[:9]
    return Attempt(
        id=number,
        subscription_id=whose,
        position=position,
        at=from_milliseconds(at),
        status=status,
        milliseconds=milliseconds,
        error=error,
        reason=_ATTEMPT_REASONS[reason],
        details=_details_decoder.decode(packed) if packed else None,
    )


def read_failed_attempt(row: Row) -> FailedAttempt:
    """Read the columns of `read_attempt`, then the host, the topic and the callback."""
    host, topic, callback = row[9:]
    return FailedAttempt(
        attempt=read_attempt(row), host=host, topic=topic, callback=callback
    )


def read_chunk_attempt(subscription_id: SubscriptionId, row: Row) -> Attempt:
    position, at, outcome, is_exact = row
    status, milliseconds = unpack_outcome(outcome)
    return Attempt(
        subscription_id=subscription_id,
        position=Position(position),
        at=from_milliseconds(at),
        status=status,
        milliseconds=milliseconds,
        is_exact=bool(is_exact),
    )


def read_first_successes(rows: Iterable[Row]) -> dict[Position, datetime | None]:
    """Read rows of a record's position, and of a chunk of it, NULL for none that a
    callback accepted: its last acknowledgement, outcomes and times."""
    found = dict[Position, datetime | None]()
    for position, settled, outcomes, times in rows:
        known = found.setdefault(Position(position), None)
        if settled is not None:
            first = from_milliseconds(_first_success(settled, outcomes, times))
            found[position] = first if known is None else min(known, first)
    return found


def _first_success(settled: int, outcomes: bytes, times: bytes | None) -> int:
    return min(
        answered if answered is not None else settled
        for index, (status, _) in enumerate(_OUTCOME.iter_unpack(outcomes))
        if 200 <= status < 300
        for answered in (answer_time(settled, times, index),)
    )


SENT_CHUNK = "id, feed_id, position, at, outcomes"


def read_sent_chunk(row: Row) -> SentChunk:
    id, feed_id, position, at, outcomes = row
    found = [*_OUTCOME.iter_unpack(outcomes)]
    taken = sorted(taken for status, taken in found if 200 <= status < 300)
    return SentChunk(
        id=id,
        feed_id=FeedId(feed_id),
        position=Position(position),
        at=from_milliseconds(at),
        callbacks=len(found),
        delivered=len(taken),
        median_milliseconds=taken[len(taken) // 2] if taken else 0,
        slowest_milliseconds=taken[-1] if taken else 0,
    )


def read_latest_requests(
    chunks: Sequence[tuple[int, Sequence[int], bytes]],
    attempts: Sequence[Row],
    *,
    is_cut: tuple[bool, bool],
) -> LatestRequests:
    """Read chunks of a time, members and outcomes, and attempts of a time, a
    subscription, milliseconds and whether it was delivered, each the latest first.

    ``is_cut``: whether there may be earlier chunks, and earlier attempts.
    """
    found = [each for chunk in chunks for each in _timed_members(*chunk)]
    found += [
        TimedRequest(
            subscription_id=SubscriptionId(whose),
            at=from_milliseconds(at),
            milliseconds=milliseconds,
            is_delivered=bool(is_delivered),
        )
        for at, whose, milliseconds, is_delivered in attempts
    ]
    found.sort(key=lambda each: each.at, reverse=True)
    begun = [
        rows[-1][0] for rows, cut in zip((chunks, attempts), is_cut, strict=True) if cut
    ]
    return LatestRequests(
        requests=tuple(found), since=from_milliseconds(max(begun)) if begun else None
    )


def _timed_members(
    at: int, members: Sequence[int], outcomes: bytes
) -> Iterator[TimedRequest]:
    """The members of a chunk that a record was delivered to."""
    ended = from_milliseconds(at)
    for member, outcome in zip(members, _OUTCOME.iter_unpack(outcomes), strict=True):
        status, milliseconds = outcome
        if 200 <= status < 300:
            yield TimedRequest(
                subscription_id=SubscriptionId(member),
                at=ended,
                milliseconds=milliseconds,
                is_delivered=True,
            )


# --- pushes ---

PUSH = "way, hub, topic, marks, record, until, hinted_at"
CALLBACK = "id, feed_id, way, hub, topic, token, secret, state, asked_at, until"

_record_decoder = msgspec.json.Decoder(PushRecord)
_marks_decoder = msgspec.json.Decoder(tuple[str, ...])


def hash_token(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


def encode_push(write: PushWrite) -> dict[str, object]:
    """Parameters of the statements that store a push with a fetch."""
    offer = write.push.offer
    return {
        "way": offer.way if offer else "",
        "hub": offer.hub if offer else "",
        "topic": offer.topic if offer else "",
        "marks": msgspec.json.encode(offer.marks if offer else ()).decode(),
        "record": msgspec.json.encode(write.push.record),
        "is_turned": write.is_turned,
        "hinted_at": to_milliseconds_or_none(write.push.hinted_at),
        "heeded_until": to_milliseconds_or_none(write.heeded_until),
    }


def read_push(row: Row) -> Push | None:
    """Read the columns of `PUSH`; None if the feed has no row of them."""
    way, hub, topic, marks, record, until, hinted_at = row
    if way is None:
        return None
    offer = None
    if way:
        offer = PushOffer(
            way=PushWay(way), hub=hub, topic=topic, marks=_marks_decoder.decode(marks)
        )
    return Push(
        offer=offer,
        record=_record_decoder.decode(record),
        until=from_milliseconds_or_none(until),
        hinted_at=from_milliseconds_or_none(hinted_at),
    )


def read_callback(row: Row, box: SecretBox) -> PushCallback:
    id, feed_id, way, hub, topic, token, secret, state, asked_at, until = row
    return PushCallback(
        id=id,
        feed_id=FeedId(feed_id),
        way=PushWay(way),
        hub=hub,
        topic=topic,
        token=box.decrypt(token),
        secret=box.decrypt(secret),
        state=CallbackState(state),
        asked_at=from_milliseconds(asked_at),
        until=from_milliseconds(until),
    )


def read_feed_push(row: Row, callbacks: tuple[PushCallback, ...]) -> FeedPush:
    """Read a feed's id, state, credentials' presence, failures, times asked and to
    retry, trouble, and `PUSH`."""
    feed_id, state, has_credentials, failures, asked_at, retry_at, error = row[:7]
    return FeedPush(
        feed_id=FeedId(feed_id),
        feed_state=FeedState(state),
        has_credentials=bool(has_credentials),
        push=read_push(row[7:]) or Push(offer=None),
        callbacks=callbacks,
        failures=failures,
        asked_at=from_milliseconds_or_none(asked_at),
        retry_at=from_milliseconds_or_none(retry_at),
        error=error,
    )


# --- feeds ---


class _OnlyPosting(msgspec.Struct):
    """The part of a polling state that all feeds' habits are read from."""

    posting: Posting = Posting()


_polling_decoder = msgspec.json.Decoder(Polling)
_posting_decoder = msgspec.json.Decoder(_OnlyPosting)
_NEVER_POLLED = Polling()
_states = {state.value: state for state in FeedState}
_conditions = {each.value: each for each in FeedHealth}
_credentials_decoder = msgspec.json.Decoder(Credentials)


def read_feed(row: Row) -> StoredFeed:
    """Read a row of the view ``stored_feeds``; further columns may follow."""
    return StoredFeed(
        id=row[0],
        url=row[1],
        state=_states[row[2]],
        private=bool(row[3]),
        category=row[4],
        title=row[5],
        format=row[6],
        next_fetch=from_milliseconds(row[7]),
        created_at=from_milliseconds(row[8]),
        removed_at=from_milliseconds_or_none(row[9]),
        polling=_polling_decoder.decode(row[10]) if row[10] else _NEVER_POLLED,
        has_credentials=bool(row[11]),
        condition=_conditions[row[12]],
        condition_since=from_milliseconds_or_none(row[13]),
        turned_at=from_milliseconds_or_none(row[14]),
        own_period=row[15],
    )


def read_posting(polling: bytes) -> Posting:
    return _posting_decoder.decode(polling).posting


def read_target(row: Row, box: SecretBox) -> FetchTarget:
    """Read a row of the view ``stored_feeds``, then the seen-set, the slices, the
    inventory, whether an error is awaited, the statistics and the push."""
    encrypted = row[11]
    keeps_document, subscribers, version, seen, slices, inventory = row[16:22]
    is_error_awaited = row[22] is not None
    return FetchTarget(
        feed=read_feed(row),
        credentials=decrypt_credentials(encrypted, box),
        seen=seen or b"",
        keeps_body=bool(keeps_document),
        subscribers=subscribers,
        slices=slices or b"",
        inventory=inventory or b"",
        is_error_awaited=is_error_awaited,
        statistics=read_statistics(row[23:27]),
        version=version,
        push=read_push(row[27:]),
    )


def read_due(row: Row) -> DueFeed:
    feed_id, url, next_fetch, pace = row
    return DueFeed(
        id=FeedId(feed_id),
        url=url,
        next_fetch=from_milliseconds(next_fetch),
        pace=pace,
    )


def encrypt_credentials(credentials: Credentials | None, box: SecretBox) -> str:
    if credentials is None:
        return ""
    return box.encrypt(msgspec.json.encode(credentials).decode())


def decrypt_credentials(encrypted: str, box: SecretBox) -> Credentials | None:
    if not encrypted:
        return None
    return _credentials_decoder.decode(box.decrypt(encrypted))
