"""The result of a fetch, encoded and packed as one JSON value for ``commit_news``."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import msgspec

from storage.postgres.polling_state import fetch_state_of
from storage.postgres.rows import news_of
from storage.records import FetchCommit, Pace, RecordKind, SiteWrite, pace_of
from storage.sqlite.columns import to_milliseconds
from storage.sqlite.fetch_commits import (
    EncodedCommit,
    EncodedEntry,
    PlainValues,
    encode_commit,
)
from storage.sqlite.polling_state import encode_cold
from storage.sqlite.polls import pack_poll
from storage.sqlite.rows import hash_key
from storage.subscription_filter import DOCUMENT_KINDS

_ELSEWHERE: Final = ("id", "hot")
"""What has another name here, or another form."""
_NUL: Final = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")


def encode_unit(fetch: FetchCommit, values: PlainValues) -> bytes:
    """Encode a commit, and pack its ``values``; bytes are base64."""
    return to_jsonb(_unit(fetch, encode_commit(fetch, values)))


def to_jsonb(value: object) -> bytes:
    """JSON that PostgreSQL accepts: its texts cannot have the character NUL."""
    encoded = msgspec.json.encode(value)
    return _NUL.sub(rb"\1\\ufffd", encoded) if b"\\u0000" in encoded else encoded


def _unit(fetch: FetchCommit, encoded: EncodedCommit) -> dict[str, Any]:
    """A commit as members of a JSON object; what does not change is left out."""
    turn = encoded.turn or {}
    documents = [
        number
        for number, record in enumerate(fetch.records)
        if record.kind in DOCUMENT_KINDS
    ]
    found: dict[str, Any] = {
        **{name: each for name, each in encoded.feed.items() if name not in _ELSEWHERE},
        **fetch_state_of(fetch.polling)._asdict(),
        "feed_id": encoded.feed_id,
        "at": encoded.at,
        "state": turn.get("state"),
        "condition": turn.get("condition"),
        "needs_body": bool(documents) and encoded.body is None,
        "document": documents[-1] if documents else None,
        "deletions": [_entry(each) for each in encoded.entries if each.deleted],
        "entries": [_entry(each) for each in encoded.entries if not each.deleted],
        "records": _records(fetch, encoded),
        **_matches(fetch, encoded),
    }
    more = {
        "seen": encoded.seen,
        "slices": encoded.slices,
        "head": encoded.head,
        "inventory": encoded.inventory,
        "raw": encoded.raw,
        "body": encoded.body,
        "site": None if encoded.site is None else _site(encoded.site),
        "push": encoded.push and {**encoded.push.row, "counted": encoded.push.counted},
        "events": encoded.events or None,
    }
    return found | {name: each for name, each in more.items() if each is not None}


def _entry(entry: EncodedEntry) -> dict[str, Any]:
    return {
        "hash": entry.key_hash,
        "key": entry.key,
        "deleted": entry.deleted,
        "published": entry.published,
        "record": entry.last_record,
        "body": entry.body,
        "unlisted": entry.unlisted,
    }


def _records(fetch: FetchCommit, encoded: EncodedCommit) -> list[dict[str, Any]]:
    return [
        {
            "kind": record.kind,
            "status": packed.status,
            "is_superseded": packed.is_superseded,
            "news": news_of(
                record.kind,
                any_fresh=any(fresh for _, fresh in record.entries),
                is_superseded=packed.is_superseded,
            ),
            "entries": [(hash_key(key), fresh, key) for key, fresh in record.entries],
        }
        for record, packed in zip(fetch.records, encoded.records, strict=True)
    ]


def _matches(fetch: FetchCommit, encoded: EncodedCommit) -> dict[str, Any]:
    if fetch.matched is None:
        return {}
    news = news_of(RecordKind.ENTRIES, any_fresh=True, is_superseded=False)
    return {
        "queries": fetch.matched.version,
        "match_status": encoded.match_status,
        "matches": [
            {
                "feed_id": each.feed_id,
                "news": news,
                "entries": [(hash_key(key), True, key) for key in each.keys],
            }
            for each in fetch.matched.matches
        ],
    }


def _site(site: SiteWrite) -> dict[str, Any]:
    return {
        "state": site.state,
        "walk": site.walk,
        "listed": [hash_key(key) for key in site.listed],
        "pages": [
            {"hash": hash_key(each.key), **msgspec.structs.asdict(each)}
            for each in site.pages
        ],
    }


# --- commits without news ---


class QuietCommit(NamedTuple):
    """The parameters of ``commit_quiet`` for one of them."""

    feed_id: int
    version: int | None  # that it was decided on; None: of any
    next_fetch: int
    pace: Pace
    poll: bytes | None
    outcome: bytes
    last_fetch: int | None
    fresh_for: int
    period: float
    price: float
    velocity: float
    unchanged: int
    cold: bytes | None  # None: unchanged
    fetch_url: str


def encode_quiet_commit(fetch: FetchCommit) -> QuietCommit:
    polling = fetch.polling
    return QuietCommit(
        fetch.feed_id,
        fetch.version,
        to_milliseconds(fetch.next_fetch),
        pace_of(polling.period),
        None if fetch.poll is None else pack_poll(fetch.poll),
        *fetch_state_of(polling),
        encode_cold(polling) if fetch.changes_cold else None,
        polling.fetch_url,
    )
