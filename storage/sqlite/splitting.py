"""Splitting fan-out rows into chunks: a page of subscriptions at a time, in id order.

Records of one feed go strictly one after the other, so of each feed only its earliest
fan-out is looked at, and only once no chunk of an earlier record is left. Feeds take
turns: one with a hundred thousand subscribers, or with a thousand records that wait,
does not hold up one with a few.
"""

from __future__ import annotations

import sqlite3

from storage.sqlite.delivery_rows import PENDING
from storage.sqlite.id_lists import pack_ids, unpack_ids

CHUNK_SIZE = 500
PAGE_SIZE = 1_000
"""Subscriptions that are looked at in one query."""
PAGES = 20
"""Such queries in one unit of work, so that it ends soon even if nobody in them wants
the record."""

MOST_OF_ONE_FEED = 4
"""Chunks under way at once, so that there is room for those of others."""

NEXT_AT_REST = """
SELECT f.position, f.feed_id, f.after_id FROM fanouts f
WHERE f.is_next = 1 AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.feed_id = f.feed_id)
ORDER BY f.turn, f.position LIMIT 1
"""
"""Of the feeds without a chunk under way, that whose last turn is longest ago; first
those of which nothing waited when their news came. As few are passed over as have
chunks."""

NEXT_AT_WORK = f"""
SELECT f.position, f.feed_id, f.after_id FROM (
    SELECT feed_id, min(position) AS first, max(id) AS last, count(*) AS under_way
    FROM chunks GROUP BY feed_id
) c CROSS JOIN fanouts f ON f.position = (
    SELECT min(position) FROM fanouts WHERE feed_id = c.feed_id)
WHERE c.first = f.position AND c.under_way < {MOST_OF_ONE_FEED}
ORDER BY c.last LIMIT 1
"""
"""If there are no others: that whose last chunk is the oldest."""

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
"""Stragglers that one record brings forward; the next one brings others."""

_HURRY = f"""
UPDATE stragglers SET due = :now WHERE subscription_id IN (
    SELECT g.subscription_id FROM stragglers g
    JOIN subscriptions s ON s.id = g.subscription_id
    JOIN records r ON r.position = :position
    WHERE g.feed_id = :feed_id AND g.news_from <= :now AND g.due > :now
        AND g.lease_id = 0
        AND EXISTS (SELECT 1 FROM temp.wanted w
            WHERE w.taker = s.format || '/' || s.updates
            AND w.news = r.news)
    ORDER BY g.news_from LIMIT {MOST_HURRIED})
"""
"""Those first that were tried the longest ago."""


class Split:
    """One unit's work on fan-outs; ``chunks`` are the ids of what it created."""

    def __init__(
        self, connection: sqlite3.Connection, *, lease_id: int, until: int
    ) -> None:
        self.chunks: list[int] = []
        self._connection = connection
        self._lease_id = lease_id
        self._until = until
        self._pages_left = PAGES

    def run(self, limit: int, now: int) -> bool:
        """Create up to ``limit`` chunks; False if it stopped before it could tell
        whether there are any."""
        while len(self.chunks) < limit and self._pages_left:
            fanout = self._next()
            if fanout is None:
                return True
            position, feed_id, after_id = fanout
            if not after_id:
                self._hurry_stragglers(position, feed_id, now)
            members = self._take_members(position, feed_id, after_id)
            if members:
                self._create_chunk(position, feed_id, members, now)
        return self._pages_left > 0

    def _next(self) -> tuple[int, int, int] | None:
        """Position, feed and how far it was split, of the next fan-out."""
        for statement in (NEXT_AT_REST, NEXT_AT_WORK):
            found: tuple[int, int, int] | None
            found = self._connection.execute(statement).fetchone()
            if found is not None:
                return found
        return None

    def _hurry_stragglers(self, position: int, feed_id: int, now: int) -> None:
        """News is a try of its own for those that wait for a later one."""
        news = {"position": position, "feed_id": feed_id, "now": now}
        self._connection.execute(_HURRY, news)

    def _take_members(self, position: int, feed_id: int, after_id: int) -> list[int]:
        """The next members of a fan-out, which moves past them, or goes if it has no
        more."""
        members: list[int] = []
        while self._pages_left and len(members) < CHUNK_SIZE:
            self._pages_left -= 1
            page = {
                "position": position,
                "feed_id": feed_id,
                "after_id": after_id,
                "page_size": PAGE_SIZE,
                "wanted_size": CHUNK_SIZE - len(members),
            }
            listed, last_id, examined = self._connection.execute(_PAGE, page).fetchone()
            members += unpack_ids(listed)
            if len(members) < CHUNK_SIZE and examined < PAGE_SIZE:
                self._drop_fanout(position, feed_id)
                return members
            after_id = members[-1] if len(members) == CHUNK_SIZE else last_id
        self._connection.execute(
            "UPDATE fanouts SET after_id = ? WHERE position = ?", (after_id, position)
        )
        return members

    def _drop_fanout(self, position: int, feed_id: int) -> None:
        """The feed's next one has the turn that this one has left."""
        self._connection.execute(
            "UPDATE fanouts SET is_next = 1,"
            " turn = (SELECT turn FROM fanouts WHERE position = :position)"
            " WHERE position = (SELECT min(position) FROM fanouts"
            "  WHERE feed_id = :feed_id AND position > :position)",
            {"position": position, "feed_id": feed_id},
        )
        self._connection.execute("DELETE FROM fanouts WHERE position = ?", (position,))

    def _create_chunk(
        self, position: int, feed_id: int, members: list[int], now: int
    ) -> None:
        ((chunk_id,),) = self._connection.execute(
            "INSERT INTO chunks (position, feed_id, at, lease_id, due, members,"
            " outcomes) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (
                *(position, feed_id, now, self._lease_id, self._until),
                *(pack_ids(members), PENDING * len(members)),
            ),
        ).fetchall()
        self._connection.execute(
            "UPDATE fanouts SET turn = ? WHERE position ="
            " (SELECT min(position) FROM fanouts WHERE feed_id = ?)",
            (chunk_id, feed_id),
        )
        self.chunks.append(chunk_id)
