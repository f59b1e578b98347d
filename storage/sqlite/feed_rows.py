"""Rows of feeds and of their push, and the values they stand for."""

from __future__ import annotations

import hashlib

import msgspec

from storage.records import (
    CallbackState,
    Credentials,
    DueFeed,
    FeedId,
    FeedPush,
    FeedState,
    FetchTarget,
    Polling,
    Posting,
    Push,
    PushCallback,
    PushOffer,
    PushRecord,
    PushWay,
    PushWrite,
    StoredFeed,
)
from storage.secrets import SecretBox
from storage.sqlite.columns import (
    from_milliseconds,
    from_milliseconds_or_none,
    to_milliseconds_or_none,
)
from storage.sqlite.readers import Row
from storage.sqlite.standings import read_standing

PUSH = "way, hub, topic, marks, record, until, hinted_at"
CALLBACK = "id, feed_id, way, hub, topic, token, secret, state, asked_at, until"

_record_decoder = msgspec.json.Decoder(PushRecord)
_marks_decoder = msgspec.json.Decoder(tuple[str, ...])


def hash_token(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


def encode_push(write: PushWrite) -> dict[str, object]:
    """Parameters of the statements that store it with a fetch."""
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
    """From the columns `PUSH`; None where a feed has none of them."""
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
    """From feed_id, state, has_credentials, failures, asked_at, retry_at, trouble and
    `PUSH`."""
    feed_id, state, has_credentials, failures, asked_at, retry_at, trouble = row[:7]
    return FeedPush(
        feed_id=FeedId(feed_id),
        feed_state=FeedState(state),
        has_credentials=bool(has_credentials),
        push=read_push(row[7:]) or Push(offer=None),
        callbacks=callbacks,
        failures=failures,
        asked_at=from_milliseconds_or_none(asked_at),
        retry_at=from_milliseconds_or_none(retry_at),
        trouble=trouble,
    )


class _OnlyPosting(msgspec.Struct):
    """The part of a polling state that all feeds' habits are read from."""

    posting: Posting = Posting()


_polling_decoder = msgspec.json.Decoder(Polling)
_posting_decoder = msgspec.json.Decoder(_OnlyPosting)
_NEVER_POLLED = Polling()
_states = {state.value: state for state in FeedState}
_credentials_decoder = msgspec.json.Decoder(Credentials)


def read_feed(row: Row) -> StoredFeed:
    """From the view ``stored_feeds``, whatever follows it."""
    return StoredFeed(
        id=row[0],
        url=row[1],
        state=_states[row[2]],
        private=bool(row[3]),
        section=row[4],
        title=row[5],
        format=row[6],
        next_fetch=from_milliseconds(row[7]),
        created_at=from_milliseconds(row[8]),
        removed_at=from_milliseconds_or_none(row[9]),
        polling=_polling_decoder.decode(row[10]) if row[10] else _NEVER_POLLED,
        has_credentials=bool(row[11]),
    )


def read_posting(polling: bytes) -> Posting:
    return _posting_decoder.decode(polling).posting


def read_target(row: Row, box: SecretBox) -> FetchTarget:
    """From the view ``stored_feeds``, the seen-set, the slices, the inventory,
    whether an error is awaited, the standing and the push.
    """
    encrypted, keeps_document, subscribers, seen, slices, inventory = row[11:17]
    is_error_awaited = row[17] is not None
    return FetchTarget(
        feed=read_feed(row),
        credentials=decrypt_credentials(encrypted, box),
        seen=seen or b"",
        keeps_body=bool(keeps_document),
        subscribers=subscribers,
        slices=slices or b"",
        inventory=inventory or b"",
        is_error_awaited=is_error_awaited,
        standing=read_standing(row[18:22]),
        push=read_push(row[22:]),
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
