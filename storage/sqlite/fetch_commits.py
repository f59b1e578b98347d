"""What a fetch found, applied by the writer as one unit."""

from __future__ import annotations

import sqlite3

from storage.records import Position
from storage.sqlite.commit_documents import put_documents, require_document
from storage.sqlite.commit_encoding import EncodedCommit, EncodedEntry
from storage.sqlite.commit_records import (
    KnownEntry,
    append_match,
    append_record,
    assign_positions,
    matches_of,
)
from storage.sqlite.push_writes import put_push


def apply_commit(
    commit: EncodedCommit, connection: sqlite3.Connection
) -> tuple[Position, ...] | None:
    """The positions of its records, those of track queries included.

    None if the feed was removed meanwhile. Raises `DocumentWanted`, `QueriesWanted`.
    """
    updated = connection.execute(
        "UPDATE feeds SET polling = :polling, fetch_url = :fetch_url,"
        " unlisted = :unlisted,"
        " state = coalesce(:state, state),"
        # The name it was given stands while it has none of its own.
        " title = CASE :title WHEN '' THEN coalesce("
        "(SELECT title FROM given_names WHERE feed_id = :id), '')"
        " ELSE coalesce(:title, title) END,"
        " format = coalesce(:format, format), removed_at = :removed_at"
        " WHERE id = :id AND state <> 'removed'",
        commit.feed,
    )
    if not updated.rowcount:
        return None
    connection.execute(
        "UPDATE schedule SET next_fetch = :next_fetch, pace = :pace"
        " WHERE feed_id = :id",
        commit.feed,
    )
    require_document(commit, connection)
    if commit.push is not None:
        put_push(commit.feed_id, commit.at, commit.push, connection)
    matches = matches_of(commit, connection)
    count = len(commit.records) + len(matches)
    last_position = assign_positions(count, commit.matched, connection)
    first_position = last_position - count + 1
    put_documents(commit, first_position, connection)
    known = {
        entry.key: _put_entry(entry, commit, first_position, connection)
        for entry in commit.entries
    }
    for position, record in enumerate(commit.records, first_position):
        append_record(position, record, commit, known, connection)
    first_match = first_position + len(commit.records)
    for position, match in enumerate(matches, first_match):
        append_match(position, match, commit, known, connection)
    return tuple(map(Position, range(first_position, last_position + 1)))


def _put_entry(
    entry: EncodedEntry,
    commit: EncodedCommit,
    first_position: int,
    connection: sqlite3.Connection,
) -> KnownEntry:
    """A deletion keeps the last body and the entry's date."""
    is_named = entry.last_record is not None
    ((entry_id, revision),) = connection.execute(
        "INSERT INTO entries (feed_id, key_hash, key, revision, deleted, sorted_at,"
        " last_position, body, unlisted) VALUES (:feed_id, :key_hash, :key, 1,"
        " :deleted, coalesce(:published, :at), :position, :body, :unlisted)"
        " ON CONFLICT (feed_id, key_hash) DO UPDATE SET revision = revision + 1,"
        " deleted = excluded.deleted,"
        " sorted_at = iif(excluded.deleted, sorted_at,"
        "  coalesce(:published, sorted_at)),"
        " last_position = max(last_position, excluded.last_position),"
        " body = iif(excluded.deleted, body, excluded.body),"
        " unlisted = iif(excluded.deleted, unlisted, excluded.unlisted)"
        " RETURNING id, revision",
        {
            "feed_id": commit.feed_id,
            "key_hash": entry.key_hash,
            "key": entry.key,
            "deleted": entry.deleted,
            "published": entry.published,
            "at": commit.at,
            "position": first_position + (entry.last_record or 0) if is_named else 0,
            "body": entry.body,
            "unlisted": entry.unlisted,
        },
    ).fetchall()
    return entry_id, revision
