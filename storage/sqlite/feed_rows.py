"""Rows of feeds, and the values they stand for."""

from __future__ import annotations

import msgspec

from storage.records import (
    Credentials,
    DueFeed,
    FeedId,
    FeedState,
    FetchTarget,
    Polling,
    Posting,
    StoredFeed,
)
from storage.secrets import SecretBox
from storage.sqlite.push_rows import read_push
from storage.sqlite.readers import Row
from storage.sqlite.standings import read_standing
from storage.sqlite.times import from_milliseconds, from_milliseconds_or_none


class _OnlyPosting(msgspec.Struct):
    """Of the polling, what all feeds' habits are read from."""

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
