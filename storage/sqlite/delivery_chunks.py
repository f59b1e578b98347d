"""Chunks of fan-outs: split off, leased to the dispatcher, acknowledged, kept.

Fan-outs are split a page of subscriptions at a time, in id order. Records of one feed
go strictly one after the other, so only the earliest fan-out of each feed is looked at,
and only once no chunk of an earlier record is left. Feeds take turns: a feed with a
hundred thousand subscribers, or with a thousand waiting records, does not hold up a
feed with few. Retrying subscriptions that are due are leased here as well.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from storage.errors import StorageError
from storage.records import ClaimedChunk, ClaimTerms
from storage.secrets import SecretBox
from storage.sqlite.columns import pack_ids, to_milliseconds, unpack_ids
from storage.sqlite.pauses import owe_to_paused
from storage.sqlite.readers import Row
from storage.sqlite.rows import (
    NO_ATTEMPT,
    OUTCOME_BYTES,
    PENDING,
    pending_indexes,
    read_chunk,
)
from storage.sqlite.writer import Writer

PackedOutcome = tuple[int, bytes, bytes]
"""The index of a member, its packed outcome, and the packed time of its answer."""


# --- acknowledging ---


def acknowledge(
    chunk_id: int,
    lease_id: int,
    outcomes: Iterable[PackedOutcome],
    at: int,
    connection: sqlite3.Connection,
) -> bool:
    """Note outcomes in a chunk; once no member is pending, it moves to the history.

    Returns False, and changes nothing, unless the lease holds.
    """
    found = connection.execute(
        "SELECT outcomes, times FROM chunks WHERE id = ? AND lease_id = ?",
        (chunk_id, lease_id),
    ).fetchone()
    if found is None:
        return False
    noted = bytearray(found[0])
    times = bytearray(found[1] or len(noted))
    for index, outcome, answered in outcomes:
        start = index * OUTCOME_BYTES
        noted[start : start + OUTCOME_BYTES] = outcome
        times[start : start + OUTCOME_BYTES] = answered
    is_finished = next(pending_indexes(noted), None) is None
    connection.execute(
        _FINISH
        if is_finished
        else "UPDATE chunks SET"
        " outcomes = :outcomes, times = :times, at = :at WHERE id = :id",
        {"outcomes": noted, "times": times, "at": at, "id": chunk_id},
    )
    if is_finished:
        connection.execute("DELETE FROM chunks WHERE id = ?", (chunk_id,))
    return True


_FINISH = """
INSERT INTO deliveries (feed_id, position, at, first_id, last_id, members, outcomes,
    times)
SELECT feed_id, position, :at, json_extract(members, '$[0]'),
    json_extract(members, '$[#-1]'), members, :outcomes, :times
FROM chunks WHERE id = :id
"""


# --- splitting ---

CHUNK_SIZE = 500
PAGE_SIZE = 1_000
"""Subscriptions that are looked at in one query."""
PAGES = 20
"""The most such queries in one unit of work, so that it ends soon even if none of these
subscriptions wants the record."""

MOST_OF_ONE_FEED = 4
"""The most chunks of one feed under way at once, so that other feeds have room."""

NEXT_AT_REST = """
SELECT f.position, f.feed_id, f.after_id FROM fanouts f
WHERE f.is_next = 1 AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.feed_id = f.feed_id)
ORDER BY f.turn, f.position LIMIT 1
"""
"""The next fan-out: of the feeds without a chunk under way, the one whose last turn is
longest ago, after those that had nothing waiting when their news came. At most as many
feeds are skipped as have chunks."""

NEXT_AT_WORK = f"""
SELECT f.position, f.feed_id, f.after_id FROM (
    SELECT feed_id, min(position) AS first, max(id) AS last, count(*) AS under_way
    FROM chunks GROUP BY feed_id
) c CROSS JOIN fanouts f ON f.position = (
    SELECT min(position) FROM fanouts WHERE feed_id = c.feed_id)
WHERE c.first = f.position AND c.under_way < {MOST_OF_ONE_FEED}
ORDER BY c.last LIMIT 1
"""
"""The next fan-out if every waiting feed has a chunk under way: of the feed whose last
chunk is the oldest."""

_PAGE = """
WITH page AS (
    SELECT id, from_position, format, updates FROM subscriptions
    WHERE feed_id = :feed_id AND state = 'active' AND id > :after_id
    ORDER BY id LIMIT :page_size
), members AS (
    SELECT p.id FROM records r CROSS JOIN page p
    WHERE r.position = :position AND p.from_position < r.position
        AND EXISTS (SELECT 1 FROM temp.wanted w
            WHERE w.taker = p.format || '/' || p.updates
            AND w.news = r.news)
        AND NOT EXISTS (SELECT 1 FROM stragglers g WHERE g.subscription_id = p.id)
    ORDER BY p.id LIMIT :wanted_size
)
SELECT (SELECT json_group_array(id) FROM members), max(id), count(*) FROM page
"""

MOST_HURRIED = 1_000
"""The most retries that one record makes due; the next record makes others due."""

_HURRY = f"""
UPDATE stragglers SET due = :now WHERE subscription_id IN (
    SELECT g.subscription_id FROM stragglers g
    JOIN subscriptions s ON s.id = g.subscription_id
    JOIN records r ON r.position = :position
    WHERE g.feed_id = :feed_id AND g.news_from <= :now AND g.due > :now
        AND g.is_paused = 0 AND g.lease_id = 0
        AND EXISTS (SELECT 1 FROM temp.wanted w
            WHERE w.taker = s.format || '/' || s.updates
            AND w.news = r.news)
    ORDER BY g.news_from LIMIT {MOST_HURRIED})
"""
"""Makes retries due that want the record, those tried longest ago first."""


class Split:
    """Splits fan-outs in one unit of work; ``chunks`` are the ids of new chunks."""

    def __init__(self, terms: ClaimTerms, connection: sqlite3.Connection) -> None:
        self.chunks: list[int] = []
        self._connection = connection
        self._lease_id = terms.lease_id
        self._until = to_milliseconds(terms.until)
        self._now = to_milliseconds(terms.now)
        self._pages_left = PAGES

    def run(self, limit: int) -> bool:
        """Create up to ``limit`` chunks.

        Returns False if it stopped before it could tell whether there are more.
        """
        while len(self.chunks) < limit and self._pages_left:
            fanout = self._next()
            if fanout is None:
                return True
            position, feed_id, after_id = fanout
            if not after_id:  # there is news: retries may try again because of it
                news = {"position": position, "feed_id": feed_id, "now": self._now}
                self._connection.execute(_HURRY, news)
            members = self._take_members(position, feed_id, after_id)
            if members:
                self._create_chunk(position, feed_id, members)
        return self._pages_left > 0

    def _next(self) -> tuple[int, int, int] | None:
        """Position and feed of the next fan-out, and the last id it was split to."""
        for statement in (NEXT_AT_REST, NEXT_AT_WORK):
            found: tuple[int, int, int] | None
            found = self._connection.execute(statement).fetchone()
            if found is not None:
                return found
        return None

    def _take_members(self, position: int, feed_id: int, after_id: int) -> list[int]:
        """Take the next members of a fan-out, and move it past them; drop it if there
        are no more."""
        members: list[int] = []
        while self._pages_left and len(members) < CHUNK_SIZE:
            self._pages_left -= 1
            room = CHUNK_SIZE - len(members)
            page = {
                "position": position,
                "feed_id": feed_id,
                "after_id": after_id,
                "page_size": PAGE_SIZE,
                "wanted_size": room,
            }
            listed, last_id, examined = self._connection.execute(_PAGE, page).fetchone()
            found = unpack_ids(listed)
            reached = found[-1] if len(found) == room else last_id or after_id
            paused = owe_to_paused(
                position, feed_id, found, self._now, self._connection
            )
            members += [each for each in found if each not in paused]
            if len(found) < room and examined < PAGE_SIZE:
                self._drop_fanout(position, feed_id)
                return members
            after_id = reached
        self._connection.execute(
            "UPDATE fanouts SET after_id = ? WHERE position = ?", (after_id, position)
        )
        return members

    def _drop_fanout(self, position: int, feed_id: int) -> None:
        """Drop a fan-out that is split; the feed's next one takes over its turn."""
        self._connection.execute(
            "UPDATE fanouts SET is_next = 1,"
            " turn = (SELECT turn FROM fanouts WHERE position = :position)"
            " WHERE position = (SELECT min(position) FROM fanouts"
            "  WHERE feed_id = :feed_id AND position > :position)",
            {"position": position, "feed_id": feed_id},
        )
        self._connection.execute("DELETE FROM fanouts WHERE position = ?", (position,))

    def _create_chunk(self, position: int, feed_id: int, members: list[int]) -> None:
        ((chunk_id,),) = self._connection.execute(
            "INSERT INTO chunks (position, feed_id, at, lease_id, due, members,"
            " outcomes) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (
                *(position, feed_id, self._now, self._lease_id, self._until),
                *(pack_ids(members), PENDING * len(members)),
            ),
        ).fetchall()
        self._connection.execute(
            "UPDATE fanouts SET turn = ? WHERE position ="
            " (SELECT min(position) FROM fanouts WHERE feed_id = ?)",
            (chunk_id, feed_id),
        )
        self.chunks.append(chunk_id)


Ask = Callable[[], ClaimTerms | None]
Give = Callable[[list[ClaimedChunk] | None], None]


# --- claiming ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """Claimed chunks. ``is_partial``: none was found so far, and there is more."""

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
    r.source_id, r.event
FROM chunks c JOIN records r ON r.position = c.position
WHERE c.id = ?
"""
"""Members are read as one JSON text: as rows, each would cost a switch between
threads."""


def claim_chunks(terms: ClaimTerms, connection: sqlite3.Connection) -> Claimed:
    """Claim unfinished chunks whose lease is over, then new ones."""
    return _split_off(_reclaim(terms, connection), terms, connection)


def claim_new_chunks(terms: ClaimTerms, connection: sqlite3.Connection) -> Claimed:
    """Claim chunks that earlier commits of the same transaction brought, if any.

    After most commits there is nothing to split, which one statement tells.
    """
    if connection.execute(_ANY_FANOUT).fetchone() is None:
        return Claimed(rows=[], is_partial=False)
    return _split_off([], terms, connection)


def _split_off(
    claimed: Sequence[int], terms: ClaimTerms, connection: sqlite3.Connection
) -> Claimed:
    """Claim new chunks besides those already claimed, as many as the terms allow."""
    split = Split(terms, connection)
    has_looked_at_all = split.run(terms.limit - len(claimed))
    ids = [*claimed, *split.chunks]
    rows = [connection.execute(_CHUNK, (id,)).fetchone() for id in ids]
    return Claimed(rows=rows, is_partial=not rows and not has_looked_at_all)


_ANY_FANOUT = "SELECT 1 FROM fanouts WHERE is_next = 1 LIMIT 1"


def _reclaim(terms: ClaimTerms, connection: sqlite3.Connection) -> list[int]:
    now, until = to_milliseconds(terms.now), to_milliseconds(terms.until)
    expired = connection.execute(
        "SELECT id FROM chunks WHERE due <= ? ORDER BY position, id LIMIT ?",
        (now, terms.limit),
    ).fetchall()
    if not expired:
        return []
    ids = [chunk_id for (chunk_id,) in expired]
    for chunk_id in ids:
        connection.execute(
            "UPDATE chunks SET lease_id = ?, due = ? WHERE id = ?",
            (terms.lease_id, until, chunk_id),
        )
        _pass_by_the_unable(chunk_id, terms.lease_id, now, connection)
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
        OR s.paused_at IS NOT NULL
        OR EXISTS (SELECT 1 FROM stragglers g WHERE g.subscription_id = m.value)),
    c.outcomes
FROM chunks c WHERE c.id = ?
"""


def _pass_by_the_unable(
    chunk_id: int, lease_id: int, now: int, connection: sqlite3.Connection
) -> None:
    """Mark members as done that ended, failed or were paused after the chunk was split.

    A retry or a pause keeps the record for them. Without other members the chunk is
    finished.
    """
    _owe_to_paused_members(chunk_id, now, connection)
    unable, outcomes = connection.execute(_UNABLE, (chunk_id,)).fetchone()
    passed = set(unpack_ids(unable)).intersection(pending_indexes(outcomes))
    if passed:
        noted = [(index, *NO_ATTEMPT) for index in sorted(passed)]
        acknowledge(chunk_id, lease_id, noted, now, connection)


def _owe_to_paused_members(
    chunk_id: int, now: int, connection: sqlite3.Connection
) -> None:
    position, feed_id, packed, outcomes = connection.execute(
        "SELECT position, feed_id, members, outcomes FROM chunks WHERE id = ?",
        (chunk_id,),
    ).fetchone()
    members = unpack_ids(packed)
    pending = [members[index] for index in pending_indexes(outcomes)]
    owe_to_paused(position, feed_id, pending, now, connection)


def claim_retrying(terms: ClaimTerms, connection: sqlite3.Connection) -> list[Row]:
    due = connection.execute(
        "SELECT subscription_id FROM stragglers WHERE due <= ? AND is_paused = 0"
        " ORDER BY due, subscription_id LIMIT ?",
        (to_milliseconds(terms.now), terms.limit),
    ).fetchall()
    listed = pack_ids([subscription_id for (subscription_id,) in due])
    connection.execute(
        "UPDATE stragglers SET lease_id = ?, due = ?"
        " WHERE subscription_id IN (SELECT value FROM json_each(?))",
        (terms.lease_id, to_milliseconds(terms.until), listed),
    )
    rows: list[Row] = connection.execute(
        "SELECT v.* FROM json_each(?) due"
        " CROSS JOIN stored_stragglers v ON v.id = due.value ORDER BY due.key",
        (listed,),
    ).fetchall()
    return rows


class CommitClaims:
    """Claims that follow commits to the writer, to be made in the same transaction.

    Otherwise, on a disk that is slow to flush, a claim made once the commit is durable
    would wait for the transaction that has begun meanwhile, and then for its own.
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
        """Claim chunks, just after a commit with records was handed to the writer."""
        if self._claimer is None:
            return
        ask, give = self._claimer
        if (terms := ask()) is None:
            return
        try:
            claimed = self._writer.submit(partial(claim_new_chunks, terms))
        except StorageError:
            give(None)
        else:
            claimed.add_done_callback(self._give)

    def _give(self, claimed: asyncio.Future[Claimed]) -> None:
        if self._claimer is None:
            return
        _ask, give = self._claimer
        chunks = None
        try:
            chunks = self._chunks_of(claimed)
        finally:  # even if a chunk cannot be read, so that its place is freed
            give(chunks)

    def _chunks_of(self, claimed: asyncio.Future[Claimed]) -> list[ClaimedChunk] | None:
        """The claimed chunks; None if the claimer is to look for itself: the commit
        failed, or there is more to look through."""
        has_failed = claimed.cancelled() or claimed.exception() is not None
        if has_failed or claimed.result().is_partial:
            return None
        return [read_chunk(row, self._box) for row in claimed.result().rows]
