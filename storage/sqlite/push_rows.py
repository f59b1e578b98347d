"""Rows of what is pushed, and the values they stand for."""

from __future__ import annotations

import hashlib

import msgspec

from storage.records import (
    CallbackState,
    FeedId,
    FeedState,
    Push,
    PushCallback,
    PushOffer,
    PushRecord,
    PushWay,
    PushWrite,
    Upstream,
)
from storage.secrets import SecretBox
from storage.sqlite.readers import Row
from storage.sqlite.times import (
    from_milliseconds,
    from_milliseconds_or_none,
    to_milliseconds_or_none,
)

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


def read_upstream(row: Row, callbacks: tuple[PushCallback, ...]) -> Upstream:
    """From feed_id, state, has_credentials, failures, asked_at, retry_at, trouble and
    `PUSH`."""
    feed_id, state, has_credentials, failures, asked_at, retry_at, trouble = row[:7]
    return Upstream(
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
