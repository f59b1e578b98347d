"""Deleting feeds and subscriptions for good, with everything that belongs to them."""

from __future__ import annotations

import sqlite3

from storage.sqlite.columns import pack_ids

ROWS_PURGED = 500
"""The most rows deleted in one transaction."""

_ROWS_OF_FEED = (
    "DELETE FROM entries WHERE id IN"
    " (SELECT id FROM entries WHERE feed_id = ? LIMIT ?)",
    "DELETE FROM records WHERE position IN"
    " (SELECT position FROM records WHERE feed_id = ? LIMIT ?)",
    "DELETE FROM site_pages WHERE (feed_id, key_hash) IN"
    " (SELECT feed_id, key_hash FROM site_pages WHERE feed_id = ? LIMIT ?)",
    "DELETE FROM attempts WHERE rowid IN (SELECT a.rowid FROM subscriptions s"
    " CROSS JOIN attempts a ON a.subscription_id = s.id WHERE s.feed_id = ? LIMIT ?)",
)
"""Rows that may be very many; all other rows are deleted with the feed at once."""

_PURGES_OF_FEED = (
    "DELETE FROM dead WHERE subscription_id IN"
    " (SELECT id FROM subscriptions WHERE feed_id = ?)",
    "DELETE FROM attempts WHERE subscription_id IN"
    " (SELECT id FROM subscriptions WHERE feed_id = ?)",
    "DELETE FROM stragglers WHERE subscription_id IN"
    " (SELECT id FROM subscriptions WHERE feed_id = ?)",
    "DELETE FROM subscriptions WHERE feed_id = ?",
    "DELETE FROM deliveries WHERE feed_id = ?",
    "DELETE FROM chunks WHERE feed_id = ?",
    "DELETE FROM fanouts WHERE feed_id = ?",
    "DELETE FROM records WHERE feed_id = ?",
    "DELETE FROM trimmed WHERE feed_id = ?",
    "DELETE FROM entries WHERE feed_id = ?",
    "DELETE FROM bodies WHERE feed_id = ?",
    "DELETE FROM feed_heads WHERE feed_id = ?",
    "DELETE FROM seen_sets WHERE feed_id = ?",
    "DELETE FROM slices WHERE feed_id = ?",
    "DELETE FROM inventories WHERE feed_id = ?",
    "DELETE FROM raw_documents WHERE feed_id = ?",
    "DELETE FROM site_pages WHERE feed_id = ?",
    "DELETE FROM site_states WHERE feed_id = ?",
    "DELETE FROM topics WHERE feed_id = ? AND NOT EXISTS"
    " (SELECT 1 FROM subscriptions WHERE topic_id = topics.id)",
    "DELETE FROM page_feeds WHERE feed_id = ?",
    "DELETE FROM page_origins WHERE feed_id = ?",
    "DELETE FROM page_shown WHERE feed_id = ?",
    "DELETE FROM schedule WHERE feed_id = ?",
    "DELETE FROM track_queries WHERE feed_id = ?",
    "DELETE FROM standings WHERE feed_id = ?",
    "DELETE FROM feed_links WHERE feed_id = ?",
    "DELETE FROM pushes WHERE feed_id = ?",
    "DELETE FROM push_callbacks WHERE feed_id = ?",
    "DELETE FROM given_names WHERE feed_id = ?",
    "DELETE FROM awaited_errors WHERE feed_id = ?",
    "DELETE FROM earlier_polls WHERE feed_id = ?",
    "DELETE FROM feed_hot WHERE feed_id = ?",
    "DELETE FROM feed_audience WHERE feed_id = ?",
    "DELETE FROM feeds WHERE id = ?",
)

_PURGES_OF_SUBSCRIPTIONS = (
    "DELETE FROM dead WHERE subscription_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM attempts WHERE subscription_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM subscriptions WHERE id IN (SELECT value FROM json_each(?))",
)
"""A subscription's retry was deleted when it ended."""


def purge_removed_feed(
    before: int, feed_id: int, limit: int, connection: sqlite3.Connection
) -> bool:
    """Delete at most ``limit`` rows of a feed; returns whether it is gone, or active
    again."""
    found = connection.execute(
        "SELECT id FROM feeds WHERE id = ? AND state = 'removed' AND removed_at < ?",
        (feed_id, before),
    ).fetchall()
    if not found:
        return True
    deleted = 0
    for rows in _ROWS_OF_FEED:
        deleted += connection.execute(rows, (feed_id, limit - deleted)).rowcount
    if deleted < limit:
        for purge in _PURGES_OF_FEED:
            connection.execute(purge, (feed_id,))
    return deleted < limit


def purge_ended_subscriptions(
    before: int, limit: int, connection: sqlite3.Connection
) -> int:
    found = connection.execute(
        "SELECT id FROM subscriptions WHERE state = 'ended' AND ended_at < ?"
        " ORDER BY ended_at, id LIMIT ?",
        (before, limit),
    ).fetchall()
    listed = pack_ids([subscription_id for (subscription_id,) in found])
    for purge in _PURGES_OF_SUBSCRIPTIONS:
        connection.execute(purge, (listed,))
    return len(found)
