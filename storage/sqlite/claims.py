"""Leasing work to the dispatcher: chunks of fan-outs, and stragglers that are due."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from storage.errors import StorageError
from storage.records import ClaimedChunk, ClaimTerms
from storage.secrets import SecretBox
from storage.sqlite.chunk_history import acknowledge
from storage.sqlite.delivery_rows import NO_ATTEMPT, pending_indexes, read_chunk
from storage.sqlite.id_lists import pack_ids, unpack_ids
from storage.sqlite.readers import Row
from storage.sqlite.splitting import Split
from storage.sqlite.times import to_milliseconds
from storage.sqlite.writer import Writer

Ask = Callable[[], ClaimTerms | None]
Give = Callable[[list[ClaimedChunk] | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Who claims, until when, and how much; times in milliseconds."""

    lease_id: int
    until: int
    now: int
    limit: int

    @classmethod
    def of(cls, terms: ClaimTerms) -> Claim:
        return cls(
            lease_id=terms.lease_id,
            until=to_milliseconds(terms.until),
            now=to_milliseconds(terms.now),
            limit=terms.limit,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """``is_partial``: nothing was found so far, and there is more to look through."""

    rows: list[Row]
    is_partial: bool


_CHUNK = """
SELECT c.id, c.lease_id, c.outcomes,
    (SELECT json_group_array(json_array(s.id, s.account_id, t.url, s.feed_id,
        s.callback, s.secret, s.algorithm, s.format, s.updates, s.batch, s.state,
        s.from_position, s.lease_end, s.created_at, s.exhausted, s.ended_reason,
        s.former_secret, s.former_until, m.key))
     FROM json_each(c.members) m
     CROSS JOIN subscriptions s ON s.id = m.value
     CROSS JOIN topics t ON t.id = s.topic_id),
    r.position, r.at, r.feed_id, r.kind, r.status, r.refs, r.is_superseded,
    r.source_id
FROM chunks c JOIN records r ON r.position = c.position
WHERE c.id = ?
"""
"""Members come as one JSON text: row by row they would cost a switch between
threads each."""


def claim_chunks(claim: Claim, connection: sqlite3.Connection) -> Claimed:
    """Unfinished chunks whose lease is over, then new ones."""
    ids = _reclaim(claim, connection)
    split = Split(connection, lease_id=claim.lease_id, until=claim.until)
    has_looked_at_all = split.run(claim.limit - len(ids), claim.now)
    rows = _read_chunks([*ids, *split.chunks], connection)
    return Claimed(rows=rows, is_partial=not rows and not has_looked_at_all)


def claim_new_chunks(claim: Claim, connection: sqlite3.Connection) -> list[Row]:
    """Those that the commits before it in the transaction brought, if they did: after
    most there is nothing to split, which is seen in one statement."""
    if connection.execute(_ANY_FANOUT).fetchone() is None:
        return []
    split = Split(connection, lease_id=claim.lease_id, until=claim.until)
    split.run(claim.limit, claim.now)
    return _read_chunks(split.chunks, connection)


_ANY_FANOUT = "SELECT 1 FROM fanouts WHERE is_next = 1 LIMIT 1"


def _read_chunks(ids: Sequence[int], connection: sqlite3.Connection) -> list[Row]:
    return [connection.execute(_CHUNK, (id,)).fetchone() for id in ids]


def _reclaim(claim: Claim, connection: sqlite3.Connection) -> list[int]:
    expired = connection.execute(
        "SELECT id FROM chunks WHERE due <= ? ORDER BY position, id LIMIT ?",
        (claim.now, claim.limit),
    ).fetchall()
    ids = [chunk_id for (chunk_id,) in expired]
    for chunk_id in ids:
        connection.execute(
            "UPDATE chunks SET lease_id = ?, due = ? WHERE id = ?",
            (claim.lease_id, claim.until, chunk_id),
        )
        _pass_by_the_unable(chunk_id, claim, connection)
    left = connection.execute(
        "SELECT id FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
        " ORDER BY position, id",
        (pack_ids(ids),),
    ).fetchall()
    return [chunk_id for (chunk_id,) in left]


_UNABLE = """
SELECT (SELECT json_group_array(m.key) FROM json_each(c.members) m
    LEFT JOIN subscriptions s ON s.id = m.value
    WHERE s.state IS NOT 'active' OR s.from_position >= c.position
        OR EXISTS (SELECT 1 FROM stragglers g WHERE g.subscription_id = m.value)),
    c.outcomes
FROM chunks c WHERE c.id = ?
"""


def _pass_by_the_unable(
    chunk_id: int, claim: Claim, connection: sqlite3.Connection
) -> None:
    """Members that ended, or became stragglers, since the chunk was split need
    nothing more from it. Without any others it is finished."""
    unable, outcomes = connection.execute(_UNABLE, (chunk_id,)).fetchone()
    passed = set(unpack_ids(unable)).intersection(pending_indexes(outcomes))
    if passed:
        noted = [(index, NO_ATTEMPT) for index in sorted(passed)]
        acknowledge(chunk_id, claim.lease_id, noted, claim.now, connection)


def claim_stragglers(claim: Claim, connection: sqlite3.Connection) -> list[Row]:
    due = connection.execute(
        "SELECT subscription_id FROM stragglers WHERE due <= ?"
        " ORDER BY due, subscription_id LIMIT ?",
        (claim.now, claim.limit),
    ).fetchall()
    listed = pack_ids([subscription_id for (subscription_id,) in due])
    connection.execute(
        "UPDATE stragglers SET lease_id = ?, due = ?"
        " WHERE subscription_id IN (SELECT value FROM json_each(?))",
        (claim.lease_id, claim.until, listed),
    )
    rows: list[Row] = connection.execute(
        "SELECT v.* FROM json_each(?) due"
        " CROSS JOIN stored_stragglers v ON v.id = due.value ORDER BY due.key",
        (listed,),
    ).fetchall()
    return rows


class CommitClaims:
    """Claims that follow commits to the writer, and so into their transactions.

    On a disk that takes long to flush, whoever claims when a commit is durable waits
    for the transaction that has begun meanwhile, and then for his own.
    """

    def __init__(self, writer: Writer, box: SecretBox) -> None:
        self._writer = writer
        self._box = box
        self._claimer: tuple[Ask, Give] | None = None

    @contextmanager
    def made_by(self, ask: Ask, give: Give) -> Iterator[None]:
        self._claimer = ask, give
        try:
            yield
        finally:
            self._claimer = None

    def follow(self) -> None:
        """A commit with records was handed to the writer just now."""
        if self._claimer is None:
            return
        ask, give = self._claimer
        if (terms := ask()) is None:
            return
        try:
            rows = self._writer.submit(partial(claim_new_chunks, Claim.of(terms)))
        except StorageError:
            give(None)
        else:
            rows.add_done_callback(self._give)

    def _give(self, rows: asyncio.Future[list[Row]]) -> None:
        has_failed = rows.cancelled() or rows.exception() is not None
        if self._claimer is not None:
            _ask, give = self._claimer
            give(
                None
                if has_failed
                else [read_chunk(r, self._box) for r in rows.result()]
            )
