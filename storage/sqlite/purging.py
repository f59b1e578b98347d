"""Deleting feeds and subscriptions for good, with everything that belongs to them."""

from __future__ import annotations

import sqlite3

from storage.sqlite.columns import pack_ids

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
    "DELETE FROM feeds WHERE id = ?",
)

_PURGES_OF_SUBSCRIPTIONS = (
    "DELETE FROM dead WHERE subscription_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM attempts WHERE subscription_id IN (SELECT value FROM json_each(?))",
    "DELETE FROM subscriptions WHERE id IN (SELECT value FROM json_each(?))",
)
"""A subscription's retry went when it ended."""


def purge_removed_feeds(before: int, limit: int, connection: sqlite3.Connection) -> int:
    feeds = connection.execute(
        "SELECT id FROM feeds WHERE state = 'removed' AND removed_at < ?"
        " ORDER BY removed_at LIMIT ?",
        (before, limit),
    ).fetchall()
    for feed in feeds:
        for purge in _PURGES_OF_FEED:
            connection.execute(purge, feed)
    return len(feeds)


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
