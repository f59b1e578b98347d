"""Acknowledging members of chunks, and the history of those that are finished."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from storage.sqlite.delivery_rows import OUTCOME_BYTES, pending_indexes

PackedOutcome = tuple[int, bytes]
"""The index of a member, and what came of it."""


def acknowledge(
    chunk_id: int,
    lease_id: int,
    outcomes: Iterable[PackedOutcome],
    at: int,
    connection: sqlite3.Connection,
) -> bool:
    """Note outcomes in a chunk; without pending members it moves to the history.

    False, and nothing changes, unless the lease holds.
    """
    found = connection.execute(
        "SELECT outcomes FROM chunks WHERE id = ? AND lease_id = ?",
        (chunk_id, lease_id),
    ).fetchone()
    if found is None:
        return False
    noted = bytearray(found[0])
    for index, outcome in outcomes:
        start = index * OUTCOME_BYTES
        noted[start : start + OUTCOME_BYTES] = outcome
    connection.execute(
        "UPDATE chunks SET outcomes = ?, at = ? WHERE id = ?",
        (bytes(noted), at, chunk_id),
    )
    if next(pending_indexes(noted), None) is None:
        _finish(chunk_id, connection)
    return True


def _finish(chunk_id: int, connection: sqlite3.Connection) -> None:
    connection.execute(
        "INSERT INTO deliveries (feed_id, position, at, first_id, last_id, members,"
        " outcomes) SELECT feed_id, position, at, json_extract(members, '$[0]'),"
        " json_extract(members, '$[#-1]'), members, outcomes FROM chunks WHERE id = ?",
        (chunk_id,),
    )
    connection.execute("DELETE FROM chunks WHERE id = ?", (chunk_id,))
