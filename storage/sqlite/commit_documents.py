"""What a commit keeps of a feed's documents, a row each, written over the last."""

from __future__ import annotations

import sqlite3
from typing import Final

from storage.errors import DocumentWanted
from storage.sqlite.commit_encoding import EncodedCommit
from storage.sqlite.sites import put_site
from storage.subscription_filter import DOCUMENT_KINDS


def _upsert(table: str, column: str) -> str:
    return (
        f"INSERT INTO {table} (feed_id, {column}) VALUES (?, ?)"
        f" ON CONFLICT (feed_id) DO UPDATE SET {column} = excluded.{column}"
    )


_SEEN: Final = _upsert("seen_sets", "seen")
_SLICES: Final = _upsert("slices", "slices")
_HEAD: Final = _upsert("feed_heads", "head")
_INVENTORY: Final = _upsert("inventories", "inventory")


def require_document(commit: EncodedCommit, connection: sqlite3.Connection) -> None:
    """Subscriptions may have begun since the fetch was told whether to keep it."""
    if commit.body is not None or not any(
        record.kind in DOCUMENT_KINDS for record in commit.records
    ):
        return
    (is_kept,) = connection.execute(
        "SELECT keeps_document FROM feeds WHERE id = ?", (commit.feed_id,)
    ).fetchone()
    if is_kept:
        raise DocumentWanted(f"feed {commit.feed_id} has as-is subscriptions")


def put_documents(
    commit: EncodedCommit, first_position: int, connection: sqlite3.Connection
) -> None:
    for upsert, packed in (
        (_SEEN, commit.seen),
        (_SLICES, commit.slices),
        (_HEAD, commit.head),
        (_INVENTORY, commit.inventory),
    ):
        if packed is not None:
            connection.execute(upsert, (commit.feed_id, packed))
    if commit.raw is not None:
        connection.execute(
            "INSERT INTO raw_documents VALUES (?, ?, ?) ON CONFLICT (feed_id) DO UPDATE"
            " SET content_type = excluded.content_type, body = excluded.body",
            (commit.feed_id, commit.raw.content_type, commit.raw.body),
        )
    if commit.site is not None:
        put_site(commit.feed_id, commit.site, connection)
    if commit.body is not None:
        connection.execute(
            "INSERT INTO bodies (feed_id, content_type, body, position)"
            " SELECT id, ?, ?, ? FROM feeds WHERE id = ? AND keeps_document"
            " ON CONFLICT (feed_id) DO UPDATE"
            " SET content_type = excluded.content_type, body = excluded.body,"
            " position = max(position, excluded.position)",
            (
                *(commit.body.content_type, commit.body.body),
                *(_document_position(commit, first_position), commit.feed_id),
            ),
        )


def _document_position(commit: EncodedCommit, first_position: int) -> int:
    """Of the last record that is news of the document; 0 if none is."""
    return max(
        (
            position
            for position, record in enumerate(commit.records, first_position)
            if record.kind in DOCUMENT_KINDS
        ),
        default=0,
    )
