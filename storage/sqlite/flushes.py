"""Outcomes of deliveries, applied as one unit of work.

Every write is fenced: it changes nothing unless the lease it names still holds.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence

from storage.records import (
    AccountId,
    Attempt,
    ChunkOutcome,
    DeliveryFlush,
    Flushed,
    Position,
    SubscriptionId,
    SubscriptionState,
)
from storage.sqlite.columns import pack_answer_time, pack_ids, to_milliseconds
from storage.sqlite.delivery_chunks import PackedOutcome, acknowledge
from storage.sqlite.retries import (
    Lease,
    RetryFate,
    give_up,
    move,
    note_conditions,
    open_retry,
)
from storage.sqlite.rows import (
    ATTEMPT_REASON_NUMBERS,
    pack_details,
    pack_outcome,
)
from storage.sqlite.subscription_writes import end_all

ATTEMPTS_KEPT = 2_000
"""The last so many failed attempts and catch-ups of each subscription are kept: a day
and a half of one that is asked once a minute."""
DETAILS_KEPT = 5
"""The last so many failures of each subscription keep their details, and stay however
many catch-ups follow."""
MOST_REPLACED = DETAILS_KEPT + 3
"""So many of the oldest are looked at when one is added: more than may have to stay, so
that at least two go."""

_MAKE_ROOM = """
DELETE FROM attempts WHERE id IN
    (SELECT id FROM attempts WHERE subscription_id = ? ORDER BY id LIMIT ?)
    AND number <= ? AND details IS NULL
"""

_GONE = """
UPDATE subscriptions SET condition = 'gone'
WHERE id = ? AND state IN ('pending', 'active')
"""


def apply_flush(flush: DeliveryFlush, connection: sqlite3.Connection) -> Flushed:
    at = to_milliseconds(flush.at)
    lost = _acknowledge_all(flush.outcomes, at, connection)
    for opened in flush.opened:
        if opened.chunk not in lost:
            open_retry(opened, connection)
    fates = {each.subscription_id: move(each, at, connection) for each in flush.moved}
    closed: set[Lease] = set()
    for given_up in flush.given_up:
        if given_up.chunk in lost:
            continue
        fate = give_up(given_up, closed, connection)
        fates[given_up.subscription_id] = fate
    for subscription_id, reason in flush.ended:
        connection.execute(_GONE, (subscription_id,))
        end_all([subscription_id], reason, SubscriptionState.ENDED, at, connection)
    if flush.recovered or flush.opened or flush.moved or flush.given_up:
        _note_changed(flush, at, connection)
    if flush.advanced:
        _advance(flush.advanced, connection)
    if flush.notified:
        _count(flush.notified, connection)
    for attempt in flush.attempts:
        _keep_attempt(attempt, connection)
    return Flushed(
        unfinished=_those(RetryFate.UNFINISHED, fates),
        lost=_those(RetryFate.LOST, fates),
    )


def _note_changed(
    flush: DeliveryFlush, at: int, connection: sqlite3.Connection
) -> None:
    if flush.recovered:
        _recover(flush.recovered, connection)
    changed = {
        *flush.recovered,
        *(each.subscription_id for each in flush.opened),
        *(each.subscription_id for each in flush.moved),
        *(each.subscription_id for each in flush.given_up),
    }
    note_conditions(changed, at, connection)


def _acknowledge_all(
    outcomes: Sequence[ChunkOutcome], at: int, connection: sqlite3.Connection
) -> set[tuple[int, int] | None]:
    """Store all outcomes; returns chunk and lease of each chunk whose lease is lost."""
    by_chunk: dict[tuple[int, int], list[PackedOutcome]] = defaultdict(list)
    for outcome in outcomes:
        packed = outcome.index, pack_outcome(outcome), pack_answer_time(outcome.at)
        by_chunk[outcome.chunk_id, outcome.lease_id].append(packed)
    return {
        (chunk_id, lease_id)
        for (chunk_id, lease_id), noted in by_chunk.items()
        if not acknowledge(chunk_id, lease_id, noted, at, connection)
    }


def _recover(ids: Sequence[SubscriptionId], connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE subscriptions SET exhausted = 0"
        " WHERE id IN (SELECT value FROM json_each(?)) AND exhausted = 1",
        (pack_ids(ids),),
    )


def _advance(
    advanced: Sequence[tuple[SubscriptionId, Position]], connection: sqlite3.Connection
) -> None:
    connection.executemany(
        "UPDATE subscriptions SET from_position = max(from_position, ?) WHERE id = ?",
        [(position, subscription_id) for subscription_id, position in advanced],
    )


def _count(
    notified: Sequence[tuple[AccountId, int]], connection: sqlite3.Connection
) -> None:
    connection.executemany(
        "UPDATE accounts SET notified = notified + ? WHERE id = ?",
        [(count, account) for account, count in notified],
    )


def _keep_attempt(attempt: Attempt, connection: sqlite3.Connection) -> None:
    details = attempt.details
    ((number,),) = connection.execute(
        "INSERT INTO attempts (subscription_id, position, at, status, milliseconds,"
        " error, host, details, reason, number)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, coalesce((SELECT number + 1"
        "  FROM attempts WHERE subscription_id = ?1 ORDER BY id DESC LIMIT 1), 1))"
        " RETURNING number",
        (
            *(attempt.subscription_id, attempt.position, to_milliseconds(attempt.at)),
            *(attempt.status, attempt.milliseconds, attempt.error),
            *(details.request.host if details else "", pack_details(details)),
            ATTEMPT_REASON_NUMBERS[attempt.reason],
        ),
    ).fetchall()
    if number > ATTEMPTS_KEPT:
        connection.execute(
            _MAKE_ROOM,
            (attempt.subscription_id, MOST_REPLACED, number - ATTEMPTS_KEPT),
        )
    if details is not None:
        connection.execute(
            "UPDATE attempts SET details = NULL WHERE id ="
            " (SELECT id FROM attempts WHERE subscription_id = :subscription"
            "  AND details IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET :kept)",
            {"subscription": attempt.subscription_id, "kept": DETAILS_KEPT},
        )


def _those(
    fate: RetryFate, fates: dict[SubscriptionId, RetryFate]
) -> frozenset[SubscriptionId]:
    return frozenset(each for each, its_fate in fates.items() if its_fate is fate)
