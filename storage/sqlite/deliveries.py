"""`storage.contract.DeliveryStore` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from storage.errors import NotFound
from storage.records import (
    AccountId,
    Attempt,
    AttemptFilter,
    AttemptRange,
    ClaimedChunk,
    ClaimTerms,
    DeadLetter,
    DeliveryFlush,
    DeliveryLag,
    FailedAttempt,
    FeedId,
    Flushed,
    LatestRequests,
    Position,
    RetryingSubscription,
    SentChunk,
    SubscriptionId,
    UndeliveredFilter,
    UndeliveredOutcome,
)
from storage.secrets import SecretBox
from storage.sqlite.columns import from_milliseconds_or_none, pack_ids, to_milliseconds
from storage.sqlite.control import SqliteControl
from storage.sqlite.delivery_chunks import (
    MOST_OF_ONE_FEED,
    Ask,
    CommitClaims,
    Give,
    claim_chunks,
    claim_retrying,
)
from storage.sqlite.flushes import ATTEMPTS_KEPT, apply_flush
from storage.sqlite.pauses import refuse_if_paused
from storage.sqlite.readers import Readers
from storage.sqlite.retries import (
    END,
    discard_retry,
    replay,
    retry_dead_letter,
)
from storage.sqlite.rows import (
    ATTEMPT,
    PENDING,
    SENT_CHUNK,
    read_attempt,
    read_chunk,
    read_chunk_attempt,
    read_dead_letter,
    read_failed_attempt,
    read_first_successes,
    read_latest_requests,
    read_retrying,
    read_sent_chunk,
)
from storage.sqlite.selections import topics_of
from storage.sqlite.writer import Writer
from storage.subscription_filter import wanted_news


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failures:
    """SQL for a condition on attempts ``a``, and its values."""

    condition: str
    values: dict[str, int | str]


class SqliteDeliveries:
    def __init__(
        self,
        writer: Writer,
        readers: Readers,
        box: SecretBox,
        control: SqliteControl,
        commit_claims: CommitClaims,
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._box = box
        self._control = control
        self._commit_claims = commit_claims
        self._last_flush = 0, Flushed()

    async def claim_chunks(self, terms: ClaimTerms) -> list[ClaimedChunk]:
        unit = partial(claim_chunks, terms)
        claimed = await self._writer.submit(unit)
        while claimed.is_partial:
            claimed = await self._writer.submit(unit)
        return [read_chunk(row, self._box) for row in claimed.rows]

    def claim_with_commits(self, ask: Ask, give: Give) -> AbstractContextManager[None]:
        return self._commit_claims.made_by(ask, give)

    async def renew(
        self, chunk_ids: Sequence[int], *, lease_id: int, seconds: float, now: datetime
    ) -> None:
        until = to_milliseconds(now + timedelta(seconds=seconds))
        parameters = (until, pack_ids(chunk_ids), lease_id)
        await self._writer.submit(partial(_renew, parameters), is_single=True)

    async def flush(self, flush: DeliveryFlush) -> Flushed:
        if flush.number and flush.number == self._last_flush[0]:
            return self._last_flush[1]
        return await self._writer.submit(
            partial(apply_flush, flush),
            is_urgent=True,
            then=partial(self._note_flush, flush),
        )

    def _note_flush(self, flush: DeliveryFlush, flushed: Flushed) -> None:
        self._last_flush = flush.number, flushed
        if flush.ended:
            self._control.ended([subscription_id for subscription_id, _ in flush.ended])

    async def notified(self) -> dict[AccountId, int]:
        rows = await self._readers.all(
            "SELECT id, notified FROM accounts WHERE notified > 0"
        )
        return {AccountId(account): notified for account, notified in rows}

    async def claim_retrying(self, terms: ClaimTerms) -> list[RetryingSubscription]:
        unit = partial(claim_retrying, terms)
        rows = await self._writer.submit(unit)
        return [read_retrying(row, self._box) for row in rows]

    async def next_retry(self) -> datetime | None:
        row = await self._readers.first(
            "SELECT min(due) FROM stragglers WHERE is_paused = 0"
        )
        return from_milliseconds_or_none(row[0] if row else None)

    async def retrying(
        self,
        *,
        after: SubscriptionId,
        limit: int,
        wanted: UndeliveredFilter | None = None,
    ) -> list[RetryingSubscription]:
        wanted = wanted or UndeliveredFilter()
        failures = await self._failures(wanted)
        has_few = await self._has_few(wanted, failures)
        among = _among(_RETRYING, wanted, failures, has_few)
        rows = await self._readers.all(
            f"SELECT v.* FROM {among}"
            " CROSS JOIN stored_stragglers v ON v.id = u.subscription_id"
            " WHERE u.subscription_id > :after ORDER BY u.subscription_id LIMIT :limit",
            {
                **failures.values,
                "lacking": wanted.lacking,
                "after": after,
                "limit": limit,
            },
        )
        return [read_retrying(row, self._box) for row in rows]

    async def retrying_subscription(
        self, subscription_id: SubscriptionId
    ) -> RetryingSubscription | None:
        row = await self._readers.first(
            "SELECT * FROM stored_stragglers WHERE id = ?", (subscription_id,)
        )
        return None if row is None else read_retrying(row, self._box)

    async def lag(self, subscription_id: SubscriptionId, most: int) -> DeliveryLag:
        parameters = {
            "subscription": subscription_id,
            "pending": PENDING,
            "wanted": _WANTED,
            "most": most,
        }
        row = await self._readers.first(_LAG, parameters)
        records, oldest = row or (0, None)
        return DeliveryLag(records=records, oldest=from_milliseconds_or_none(oldest))

    async def dead_letters(
        self, *, after: int, limit: int, wanted: UndeliveredFilter | None = None
    ) -> list[DeadLetter]:
        wanted = wanted or UndeliveredFilter()
        failures = await self._failures(wanted)
        has_few = await self._has_few(wanted, failures)
        among = _among(_DEAD, wanted, failures, has_few)
        rows = await self._readers.all(
            f"SELECT v.* FROM {among} CROSS JOIN stored_dead v ON v.id = u.id"
            " WHERE u.id > :after ORDER BY u.id LIMIT :limit",
            {
                **failures.values,
                "lacking": wanted.lacking,
                "after": after,
                "limit": limit,
            },
        )
        return [read_dead_letter(row) for row in rows]

    async def dead_letters_of(
        self, ids: Sequence[SubscriptionId], positions: Sequence[Position]
    ) -> list[DeadLetter]:
        rows = await self._readers.all(
            "SELECT v.* FROM json_each(:ids) w"
            " CROSS JOIN dead d ON d.subscription_id = w.value"
            " CROSS JOIN stored_dead v ON v.id = d.id"
            " WHERE EXISTS (SELECT 1 FROM json_each(:positions) p"
            "  WHERE p.value BETWEEN d.first AND d.last) ORDER BY d.id",
            {"ids": pack_ids(ids), "positions": pack_ids(positions)},
        )
        return [read_dead_letter(row) for row in rows]

    async def count_undelivered(self, wanted: UndeliveredFilter, most: int) -> int:
        failures = await self._failures(wanted)
        has_few = await self._has_few(wanted, failures)
        retrying = _among(_RETRYING, wanted, failures, has_few)
        dead = _among(_DEAD, wanted, failures, has_few)
        row = await self._readers.first(
            f"SELECT count(*) FROM (SELECT 1 FROM {retrying}"
            f" UNION ALL SELECT 1 FROM {dead} LIMIT :most)",
            {**failures.values, "lacking": wanted.lacking, "most": most},
        )
        return int(row[0]) if row else 0

    async def retry_now(self, subscription_id: SubscriptionId, now: datetime) -> bool:
        unit = partial(_retry_now, subscription_id, to_milliseconds(now))
        return await self._writer.submit(unit)

    async def retry_dead_letter(self, dead_id: int, now: datetime) -> None:
        await self._writer.submit(
            partial(retry_dead_letter, dead_id, to_milliseconds(now))
        )

    async def replay(
        self, subscription_id: SubscriptionId, after: Position, now: datetime
    ) -> None:
        unit = partial(replay, subscription_id, after, to_milliseconds(now))
        await self._writer.submit(unit)

    async def discard_retry(
        self, subscription_id: SubscriptionId, now: datetime
    ) -> None:
        unit = partial(discard_retry, subscription_id, to_milliseconds(now))
        if not await self._writer.submit(unit):
            raise NotFound("delivery to be retried of subscription", subscription_id)

    async def discard_dead_letter(self, dead_id: int) -> None:
        unit = partial(_discard_dead_letter, dead_id)
        if not await self._writer.submit(unit, is_single=True):
            raise NotFound("dead letter", dead_id)

    async def attempts(
        self,
        subscription_id: SubscriptionId,
        limit: int,
        wanted: AttemptRange | None = None,
    ) -> list[Attempt]:
        wanted = wanted or AttemptRange()
        parameters = {
            "subscription": subscription_id,
            "limit": limit,
            **_range_parameters(wanted),
        }
        noted = await self._readers.all(_NOTED, parameters)
        straight = []
        if wanted.is_delivered is not False:
            straight = await self._readers.all(_STRAIGHT, parameters)
        found = [read_attempt(row) for row in noted]
        found += [read_chunk_attempt(subscription_id, row) for row in straight]
        found.sort(key=lambda each: (each.at, each.position), reverse=True)
        return found[:limit]

    async def first_successes(
        self, records: Sequence[tuple[FeedId, Position]]
    ) -> dict[Position, datetime | None]:
        rows = await self._readers.all(
            _FIRST_SUCCESSES, {"records": msgspec.json.encode(records).decode()}
        )
        return read_first_successes(rows)

    async def failed_attempt(self, attempt_id: int) -> FailedAttempt | None:
        row = await self._readers.first(
            f"SELECT {ATTEMPT}, a.details, {_WHOSE} WHERE a.id = ? AND a.error <> ''",
            (attempt_id,),
        )
        return None if row is None else read_failed_attempt(row)

    async def failed_attempts(
        self,
        wanted: AttemptFilter,
        *,
        limit: int,
        before: tuple[datetime, int] | None = None,
    ) -> list[FailedAttempt]:
        failures = await self._failures(wanted)
        condition, values = failures.condition, dict(failures.values)
        if before is not None:
            condition += " AND a.at <= :at AND (a.at < :at OR a.id < :id)"
            values |= {"at": to_milliseconds(before[0]), "id": before[1]}
        rows = await self._readers.all(
            f"SELECT {ATTEMPT}, NULL, {_WHOSE} WHERE {condition}"
            " ORDER BY a.at DESC, a.id DESC LIMIT :limit",
            {**values, "limit": limit},
        )
        return [read_failed_attempt(row) for row in rows]

    async def count_failed_attempts(self, wanted: AttemptFilter, most: int) -> int:
        return await self._count(await self._failures(wanted), most)

    async def _count(self, failures: _Failures, most: int) -> int:
        row = await self._readers.first(
            "SELECT count(*) FROM"
            f" (SELECT 1 FROM attempts a WHERE {failures.condition} LIMIT :most)",
            {**failures.values, "most": most},
        )
        return int(row[0]) if row else 0

    async def _has_few(self, wanted: UndeliveredFilter, failures: _Failures) -> bool:
        """Whether so few attempts are wanted that all of them are looked at."""
        return (
            not wanted.names_failures
            or await self._count(failures, MOST_LOOKED_AT + 1) <= MOST_LOOKED_AT
        )

    async def _failures(self, wanted: AttemptFilter) -> _Failures:
        condition, values = _conditions(wanted)
        if wanted.topic is not None:
            spelled = await topics_of(self._readers, wanted.topic)
            topics = {"topics": pack_ids(spelled), "most": MOST_NAMED + 1}
            named = [id for (id,) in await self._readers.all(_OF_TOPICS, topics)]
            if len(named) <= MOST_NAMED:
                condition += _OF_THESE
                values["named"] = pack_ids(named)
            else:
                condition += _OF_THE_TOPICS
                values["topics"] = pack_ids(spelled)
        return _Failures(condition=condition, values=values)

    async def sent_chunks(
        self,
        *,
        limit: int,
        before: int | None = None,
        feed_id: FeedId | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[SentChunk]:
        key = "at, id" if feed_id is None else "position, first_id"
        conditions = ["at >= :since", "at < :until"]
        if feed_id is not None:
            conditions.append("feed_id = :feed")
        if before is not None:
            conditions.append(
                f"({key}) < (SELECT {key} FROM deliveries WHERE id = :before)"
            )
        rows = await self._readers.all(
            f"SELECT {SENT_CHUNK} FROM deliveries WHERE {' AND '.join(conditions)}"
            f" ORDER BY {key.replace(',', ' DESC,')} DESC LIMIT :limit",
            {
                "since": 0 if since is None else to_milliseconds(since),
                "until": END if until is None else to_milliseconds(until),
                "feed": feed_id,
                "before": before,
                "limit": limit,
            },
        )
        return [read_sent_chunk(row) for row in rows]

    async def attempts_kept_from(
        self, subscription_id: SubscriptionId
    ) -> datetime | None:
        row = await self._readers.first(
            _KEPT_FROM, {"subscription": subscription_id, "kept": ATTEMPTS_KEPT}
        )
        return from_milliseconds_or_none(row[0]) if row else None

    async def latest_requests(
        self, until: datetime, *, chunks: int, attempts: int
    ) -> LatestRequests:
        before = to_milliseconds(until)
        sent = await self._readers.all(
            "SELECT at, members, outcomes FROM deliveries WHERE at < ?"
            " ORDER BY at DESC LIMIT ?",
            (before, chunks),
        )
        noted = await self._readers.all(
            "SELECT at, subscription_id, milliseconds, error = '' FROM attempts"
            " WHERE at < ? ORDER BY at DESC LIMIT ?",
            (before, attempts),
        )
        return read_latest_requests(
            [(at, _ids.decode(members), outcomes) for at, members, outcomes in sent],
            noted,
            is_cut=(len(sent) == chunks, len(noted) == attempts),
        )

    async def trim_attempts(self, before: datetime, limit: int, *, kept: int) -> int:
        row = await self._readers.first(_LAST_BEYOND, {"kept": kept})
        last = row[0] if row else 0
        unit = partial(_trim_attempts, to_milliseconds(before), last, limit)
        return await self._writer.submit(unit)


_ids = msgspec.json.Decoder(list[int])

MOST_LOOKED_AT = 500
"""Up to so many matching attempts, each of them is looked at."""
MOST_NAMED = 500
"""Up to so many subscriptions to a topic, they are listed; with more, all attempts are
looked at."""
_OF_TOPICS = (
    "SELECT id FROM subscriptions"
    " WHERE topic_id IN (SELECT value FROM json_each(:topics)) LIMIT :most"
)
_OF_THESE = " AND a.subscription_id IN (SELECT value FROM json_each(:named))"
_OF_THE_TOPICS = (
    " AND EXISTS (SELECT 1 FROM subscriptions s WHERE s.id = a.subscription_id"
    " AND s.topic_id IN (SELECT value FROM json_each(:topics)))"
)

_LAG = """
WITH stand AS (
    SELECT s.feed_id, s.format || '/' || s.updates AS taker, g.skip_after, g.skip_to,
        coalesce(g.position, max(s.from_position, coalesce(
            (SELECT min(c.position) - 1 FROM chunks c CROSS JOIN json_each(c.members) m
                WHERE c.feed_id = s.feed_id AND m.value = s.id
                AND substr(c.outcomes, m.key * 4 + 1, 4) = :pending),
            (SELECT min(f.position) - 1 FROM fanouts f
                WHERE f.feed_id = s.feed_id AND f.after_id < s.id),
            (SELECT head FROM meta)))) AS position
    FROM subscriptions s LEFT JOIN stragglers g ON g.subscription_id = s.id
    WHERE s.id = :subscription AND s.state = 'active'
)
SELECT count(*), min(at) FROM (
    SELECT r.at FROM stand d CROSS JOIN records r
    WHERE r.feed_id = d.feed_id AND r.position > d.position
        AND NOT (r.position > coalesce(d.skip_after, r.position)
            AND r.position <= coalesce(d.skip_to, 0))
        AND d.taker || ' ' || r.news IN (SELECT value FROM json_each(:wanted))
    ORDER BY r.position LIMIT :most)
"""
_WANTED = msgspec.json.encode([" ".join(each) for each in wanted_news()]).decode()

_NOTED = f"""
SELECT {ATTEMPT}, a.details FROM attempts a
WHERE a.subscription_id = :subscription AND a.at >= :since AND a.at < :until
    AND (a.at, a.position) < (:at, :position)
    AND a.position BETWEEN :first AND :last
    AND (a.error = '') IS coalesce(:is_delivered, a.error = '')
ORDER BY a.id DESC LIMIT :limit
"""
_KEPT_FROM = """
WITH own AS (
    SELECT number, at FROM attempts
    WHERE subscription_id = :subscription AND number > (SELECT number - :kept
        FROM attempts WHERE subscription_id = :subscription ORDER BY id DESC LIMIT 1)
    ORDER BY id LIMIT 1
), oldest AS (SELECT id, at FROM attempts ORDER BY id LIMIT 1)
SELECT coalesce((SELECT at FROM own WHERE number <> 1),
    (SELECT o.at FROM oldest o JOIN subscriptions s ON s.created_at < o.at
        WHERE o.id > 1 AND s.id = :subscription))
"""
"""Its numbers begin anew once none of its attempts is left. Then it has all since the
oldest of any subscription."""
_LAST_BEYOND = """
SELECT id FROM attempts
WHERE (SELECT max(id) FROM attempts) - (SELECT min(id) FROM attempts) >= :kept
ORDER BY id DESC LIMIT 1 OFFSET :kept
"""
"""The newest attempt beyond so many. They are counted only if there may be as many."""
_STRAIGHT = """
WITH straight AS (
    SELECT position, at, members, outcomes, times FROM deliveries
    WHERE feed_id = (SELECT feed_id FROM subscriptions WHERE id = :subscription)
        AND first_id <= :subscription AND last_id >= :subscription
    UNION ALL
    SELECT position, at, members, outcomes, times FROM chunks
    WHERE feed_id = (SELECT feed_id FROM subscriptions WHERE id = :subscription)
), taken AS (
    SELECT d.position, d.at AS settled, answer_time(d.at, d.times, m.key) AS answered,
        substr(d.outcomes, m.key * 4 + 1, 4) AS outcome
    FROM straight d CROSS JOIN json_each(d.members) m
    WHERE m.value = :subscription AND d.at >= :since
        AND d.position BETWEEN :first AND :last
        AND hex(substr(d.outcomes, m.key * 4 + 1, 2)) BETWEEN '00C8' AND '012B'
), dated AS (
    SELECT position, coalesce(answered, settled) AS at, outcome,
        answered IS NOT NULL AS is_exact
    FROM taken
)
SELECT * FROM dated
WHERE at >= :since AND at < :until AND (at, position) < (:at, :position)
ORDER BY position DESC LIMIT :limit
"""
"""Members of chunks that were answered with a 2xx (C8 to 12B, hexadecimal)."""
_SENT = """
SELECT c.position, {first_id} AS first_id, c.id AS {table}_id, EXISTS (
    SELECT 1 FROM json_each(c.members) m
    WHERE hex(substr(c.outcomes, m.key * 4 + 1, 2)) BETWEEN '00C8' AND '012B'
) AS is_taken
FROM json_each(:records) wanted CROSS JOIN {table} c
    ON c.feed_id = wanted.value ->> 0 AND c.position = wanted.value ->> 1
"""
_FIRST_SUCCESSES = f"""
WITH sent AS (
    SELECT *, NULL AS chunks_id
    FROM ({_SENT.format(table="deliveries", first_id="c.first_id")})
    UNION ALL SELECT position, first_id, NULL, is_taken, chunks_id
    FROM ({_SENT.format(table="chunks", first_id="json_extract(c.members, '$[0]')")})
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY position, is_taken ORDER BY first_id)
        AS place
    FROM sent
)
SELECT r.position, iif(r.is_taken, coalesce(d.at, c.at), NULL),
    coalesce(d.outcomes, c.outcomes), coalesce(d.times, c.times)
FROM ranked r LEFT JOIN deliveries d ON d.id = r.deliveries_id
    LEFT JOIN chunks c ON c.id = r.chunks_id
WHERE r.place <= iif(r.is_taken, {MOST_OF_ONE_FEED}, 1)
"""
"""Of each record the first chunks that a callback accepted it from. More than these are
not under way at once, so one of them has the first success."""


_WHOSE = (
    "a.host, t.url, s.callback FROM attempts a"
    " CROSS JOIN subscriptions s ON s.id = a.subscription_id"
    " CROSS JOIN topics t ON t.id = s.topic_id"
)


def _range_parameters(wanted: AttemptRange) -> dict[str, int | bool | None]:
    since, until = wanted.since, wanted.until
    at, position = wanted.before or (None, END)
    return {
        "is_delivered": wanted.is_delivered,
        "since": 0 if since is None else to_milliseconds(since),
        "until": END if until is None else to_milliseconds(until),
        "at": END if at is None else to_milliseconds(at),
        "position": position,
        "first": 0 if wanted.position is None else wanted.position,
        "last": END if wanted.position is None else wanted.position,
    }


def _conditions(wanted: AttemptFilter) -> tuple[str, dict[str, int | str]]:
    """SQL for the condition on attempts, and its values.

    Each filter is an equality or a range of one of the indexes of failures, or is
    checked on the columns in the index. The topic is left out.
    """
    conditions, values = ["a.error <> ''"], dict[str, int | str]()
    if wanted.subscription_id is not None:
        conditions.append("a.subscription_id = :subscription")
        values["subscription"] = wanted.subscription_id
    if wanted.host:
        conditions.append("a.host = :host")
        values["host"] = wanted.host
    if wanted.statuses is not None:
        first, last = wanted.statuses
        conditions.append("a.status BETWEEN :first AND :last")
        values |= {"first": first, "last": last}
        if first // 100 == last // 100:
            conditions.append("a.status / 100 = :hundred")
            values["hundred"] = first // 100
    if wanted.since is not None:
        conditions.append("a.at >= :since")
        values["since"] = to_milliseconds(wanted.since)
    if wanted.until is not None:
        conditions.append("a.at < :until")
        values["until"] = to_milliseconds(wanted.until)
    return " AND ".join(conditions), values


class UndeliveredRows(msgspec.Struct, frozen=True, kw_only=True):
    """A table whose rows ``g`` say what callbacks lack, and what came of that.

    ``told_of``: whether an attempt ``a`` was to deliver what is in a row; ``lacks``:
    whether that row lacks a record of so early.
    """

    table: str
    key: str
    outcome: UndeliveredOutcome
    told_of: str
    lacks: str


_RETRYING: Final = UndeliveredRows(
    table="stragglers",
    key="subscription_id",
    outcome=UndeliveredOutcome.RETRIED,
    told_of="a.position > g.position",
    lacks="g.position < :lacking",
)
_DEAD: Final = UndeliveredRows(
    table="dead",
    key="id",
    outcome=UndeliveredOutcome.GIVEN_UP,
    told_of="a.position BETWEEN g.first AND g.last",
    lacks="g.first <= :lacking",
)


def _among(
    rows: UndeliveredRows, wanted: UndeliveredFilter, failures: _Failures, has_few: bool
) -> str:
    """SQL for the wanted of these rows, as ``u``.

    If few attempts match, they are read first and lead to the rows. If many match, each
    row is checked, which finds a matching attempt soon.
    """
    if wanted.outcome not in (None, rows.outcome):
        return f"(SELECT * FROM {rows.table} WHERE FALSE) u"
    condition = failures.condition
    if not wanted.names_failures:
        is_wanted = "TRUE"
        if wanted.subscription_id is not None:
            is_wanted = "subscription_id = :subscription"
    elif has_few:
        is_wanted = (
            f"{rows.key} IN (SELECT g.{rows.key} FROM attempts a"
            f" CROSS JOIN {rows.table} g"
            f" ON g.subscription_id = a.subscription_id AND {rows.told_of}"
            f" WHERE {condition})"
        )
    else:
        is_wanted = (
            "EXISTS (SELECT 1 FROM attempts a INDEXED BY attempts_by_subscription"
            f" WHERE a.subscription_id = g.subscription_id AND {rows.told_of}"
            f" AND {condition})"
        )
    if wanted.lacking is not None:
        is_wanted += f" AND {rows.lacks}"
    return f"(SELECT * FROM {rows.table} g WHERE {is_wanted}) u"


# --- units of work ---


def _renew(parameters: tuple[int, str, int], connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE chunks SET due = ?"
        " WHERE id IN (SELECT value FROM json_each(?)) AND lease_id = ?",
        parameters,
    )


def _retry_now(subscription_id: int, now: int, connection: sqlite3.Connection) -> bool:
    refuse_if_paused(subscription_id, connection)
    found = connection.execute(
        "UPDATE stragglers SET due = iif(lease_id, due, min(due, :now))"
        " WHERE subscription_id = :subscription RETURNING lease_id",
        {"subscription": subscription_id, "now": now},
    ).fetchall()
    if not found:
        raise NotFound("delivery to be retried of subscription", subscription_id)
    return not found[0][0]


def _discard_dead_letter(dead_id: int, connection: sqlite3.Connection) -> int:
    return connection.execute("DELETE FROM dead WHERE id = ?", (dead_id,)).rowcount


def _trim_attempts(
    before: int, last: int, limit: int, connection: sqlite3.Connection
) -> int:
    """``last``: the newest of those that are too many, also if they are not so old."""
    aged = connection.execute(
        "DELETE FROM attempts WHERE id IN"
        " (SELECT id FROM attempts WHERE at < ? ORDER BY at LIMIT ?)",
        (before, limit),
    )
    crowded = connection.execute(
        "DELETE FROM attempts WHERE id IN"
        " (SELECT id FROM attempts WHERE id <= ? ORDER BY id LIMIT ?)",
        (last, limit - aged.rowcount),
    )
    straight = connection.execute(
        "DELETE FROM deliveries WHERE id IN"
        " (SELECT id FROM deliveries WHERE at < ? ORDER BY at LIMIT ?)",
        (before, limit),
    )
    return aged.rowcount + crowded.rowcount + straight.rowcount
