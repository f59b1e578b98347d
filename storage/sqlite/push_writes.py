"""Units of work on pushes, and what a fetch writes of them."""

from __future__ import annotations

import sqlite3

from storage.records import FeedId, PushCallback, PushCount
from storage.sqlite.commit_encoding import EncodedPush

_PUT = """
INSERT INTO pushes (feed_id, way, hub, topic, marks, record, hinted_at, due)
VALUES (:feed_id, :way, :hub, :topic, :marks, :record, :hinted_at, :at)
ON CONFLICT (feed_id) DO UPDATE SET
    failures = iif(hub = excluded.hub, failures, 0),
    retry_at = iif(hub = excluded.hub, retry_at, NULL),
    trouble = iif(hub = excluded.hub, trouble, ''),
    way = excluded.way, hub = excluded.hub, topic = excluded.topic,
    marks = excluded.marks, record = excluded.record,
    hinted_at = iif(hinted_at <= :heeded_until, NULL,
        coalesce(hinted_at, iif(:heeded_until IS NULL, excluded.hinted_at, NULL))),
    due = iif(:is_turned, excluded.due, due)
"""


def put_push(
    feed_id: int, at: int, push: EncodedPush, connection: sqlite3.Connection
) -> None:
    """Part of the unit of work that commits a fetch."""
    former = _hub_of(feed_id, connection)
    connection.execute(_PUT, {"feed_id": feed_id, "at": at, **push.row})
    if former != push.row["hub"]:
        _forget_hub(former, connection)
    for what in push.counted:
        count_of_hub(str(push.row["hub"]), what, connection)


def drop_callback(callback: PushCallback, connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM push_callbacks WHERE id = ?", (callback.id,))
    connection.execute(
        "UPDATE pushes SET due = 0, until = (SELECT max(until) FROM push_callbacks"
        " WHERE feed_id = :feed AND state = 'active') WHERE feed_id = :feed",
        {"feed": callback.feed_id},
    )


def forget_push(feed_id: FeedId, connection: sqlite3.Connection) -> None:
    """Also the counts of hubs that no feed names any more."""
    hub = _hub_of(feed_id, connection)
    connection.execute(
        "DELETE FROM pushes WHERE feed_id = ? AND (way = '' OR NOT EXISTS"
        " (SELECT 1 FROM feeds WHERE id = pushes.feed_id AND state <> 'removed'))",
        (feed_id,),
    )
    _forget_hub(hub, connection)


def count_of_hub(hub: str, what: PushCount, connection: sqlite3.Connection) -> None:
    """Of one hub, and of all under ""."""
    connection.executemany(
        "INSERT INTO push_hubs VALUES (?, ?, 1)"
        " ON CONFLICT (hub, what) DO UPDATE SET count = count + 1",
        [(each, what) for each in {hub, ""}],
    )


def _hub_of(feed_id: int, connection: sqlite3.Connection) -> str:
    row = connection.execute(
        "SELECT hub FROM pushes WHERE feed_id = ?", (feed_id,)
    ).fetchone()
    return row[0] if row else ""


def _forget_hub(hub: str, connection: sqlite3.Connection) -> None:
    """The counts of one that no feed names any more: feeds may name any number."""
    connection.execute(
        "DELETE FROM push_hubs WHERE hub = :hub AND hub <> ''"
        " AND NOT EXISTS (SELECT 1 FROM pushes WHERE hub = :hub)",
        {"hub": hub},
    )
