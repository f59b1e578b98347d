"""`storage.contract.DeliveryStore` on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from typing import Any, Final

import msgspec

from storage.errors import NotFound, StorageBusy, StorageError, SubscriptionPaused
from storage.postgres.connections import Connections, Row
from storage.postgres.control import PostgresControl
from storage.postgres.fetch_commits import to_jsonb
from storage.postgres.rows import read_stored_record
from storage.postgres.subscriptions import OF_TOPIC, topic_keys
from storage.records import (
    AccountId,
    Attempt,
    AttemptFilter,
    AttemptRange,
    ChunkOutcome,
    ClaimedChunk,
    ClaimTerms,
    DeadLetter,
    DeliveryFlush,
    DeliveryLag,
    FailedAttempt,
    FeedId,
    Flushed,
    LatestRequests,
    NewDeadLetter,
    Position,
    RetryingSubscription,
    RetryMoved,
    RetryOpened,
    SentChunk,
    SubscriptionId,
    UndeliveredFilter,
    UndeliveredOutcome,
)
from storage.secrets import SecretBox
from storage.sqlite.columns import (
    from_milliseconds_or_none,
    pack_answer_time,
    to_milliseconds,
    to_milliseconds_or_none,
)
from storage.sqlite.deliveries import MOST_LOOKED_AT, UndeliveredRows
from storage.sqlite.flushes import ATTEMPTS_KEPT
from storage.sqlite.retries import END
from storage.sqlite.rows import (
    ATTEMPT,
    ATTEMPT_REASON_NUMBERS,
    PENDING,
    SENT_CHUNK,
    pack_details,
    pack_outcome,
    pending_indexes,
    read_attempt,
    read_chunk_attempt,
    read_dead_letter,
    read_failed_attempt,
    read_first_successes,
    read_latest_requests,
    read_retrying,
    read_sent_chunk,
    read_subscription,
)

Ask = Callable[[], ClaimTerms | None]
Give = Callable[[list[ClaimedChunk] | None], None]

_CLAIM: Final = "SELECT * FROM claim_chunks(%s, %s, %s, %s, %s, %s)"
_CLAIM_RETRYING: Final = "SELECT * FROM claim_retrying(%s, %s, %s, %s, %s)"
_FLUSH: Final = "SELECT flush_in_lane(%s, %s, %s, convert_from(%s, 'UTF8')::jsonb)"
_RENEW: Final = "SELECT renew_chunks(%s::bigint[], %s, %s, %s, %s)"
_LAG: Final = """
WITH stand AS (
    SELECT s.feed_id, s.wants, g.skip_after, g.skip_to,
        coalesce(g.position, greatest(s.from_position, coalesce(
            (SELECT min(c.position) - 1 FROM chunks c, unnest(c.members)
                WITH ORDINALITY m (id, n) WHERE c.feed_id = s.feed_id AND m.id = s.id
                AND substr(c.outcomes, (m.n * 4 - 3)::int, 4) = %(pending)s),
            (SELECT min(f.position) - 1 FROM fanouts f
                WHERE f.feed_id = s.feed_id AND f.after_id < s.id),
            (SELECT head FROM log_head)))) AS position
    FROM subscriptions s LEFT JOIN retries g ON g.subscription_id = s.id
    WHERE s.id = %(subscription)s AND s.state = 'active'
)
SELECT count(*), min(at) FROM (
    SELECT r.at FROM stand d JOIN kept_records r ON r.feed_id = d.feed_id
    WHERE r.position > d.position AND NOT (
            r.position > coalesce(d.skip_after, r.position)
            AND r.position <= coalesce(d.skip_to, 0))
        AND d.wants & r.news <> 0
    ORDER BY r.position LIMIT %(most)s) lacking
"""
_NOTED: Final = f"""
SELECT {ATTEMPT}, a.details FROM attempts a
WHERE a.subscription_id = %(subscription)s AND a.at >= %(since)s AND a.at < %(until)s
    AND (a.at, a.position) < (%(at)s, %(position)s)
    AND a.position BETWEEN %(first)s AND %(last)s
    AND (a.error = '') = coalesce(%(is_delivered)s, a.error = '')
ORDER BY a.id DESC LIMIT %(limit)s
"""
_KEPT_FROM: Final = """
WITH own AS (
    SELECT number, at FROM attempts
    WHERE subscription_id = %(subscription)s AND number > (SELECT number - %(kept)s
        FROM attempts WHERE subscription_id = %(subscription)s ORDER BY id DESC LIMIT 1)
    ORDER BY id LIMIT 1
), oldest AS (SELECT id, at FROM attempts ORDER BY id LIMIT 1)
SELECT coalesce((SELECT at FROM own WHERE number <> 1),
    (SELECT o.at FROM oldest o JOIN subscriptions s ON s.created_at < o.at
        WHERE o.id > 1 AND s.id = %(subscription)s))
"""
"""Its numbers begin anew once none of its attempts is left. Then it has all since the
oldest of any subscription."""
_STRAIGHT: Final = """
SELECT a.position, a.at, a.outcome, a.is_exact FROM (
    SELECT d.position, coalesce(answer_time(d.at, d.times, (m.n - 1)::int), d.at) AS at,
        substr(d.outcomes, (m.n * 4 - 3)::int, 4) AS outcome,
        answer_time(d.at, d.times, (m.n - 1)::int) IS NOT NULL AS is_exact
    FROM (
        SELECT position, at, members, outcomes, times FROM deliveries
        WHERE feed_id = (SELECT feed_id FROM subscriptions WHERE id = %(subscription)s)
            AND first_id <= %(subscription)s AND last_id >= %(subscription)s
        UNION ALL
        SELECT position, at, members, outcomes, times FROM chunks
        WHERE feed_id = (SELECT feed_id FROM subscriptions WHERE id = %(subscription)s)
    ) d, unnest(d.members) WITH ORDINALITY m (id, n)
    WHERE m.id = %(subscription)s AND d.at >= %(since)s
        AND d.position BETWEEN %(first)s AND %(last)s
        AND substr(d.outcomes, (m.n * 4 - 3)::int, 2) BETWEEN '\\x00c8' AND '\\x012b'
) a
WHERE a.at >= %(since)s AND a.at < %(until)s
    AND (a.at, a.position) < (%(at)s, %(position)s)
ORDER BY a.position DESC LIMIT %(limit)s
"""
"""Members of chunks that were answered with a 2xx (C8 to 12B, hexadecimal)."""
_SENT: Final = """
SELECT c.position, c.members[1] AS first_id, c.id, {is_open} AS is_open, EXISTS (
    SELECT 1 FROM generate_series(0, cardinality(c.members) - 1) i
    WHERE substr(c.outcomes, i * 4 + 1, 2) BETWEEN '\\x00c8' AND '\\x012b'
) AS is_taken
FROM unnest(%(feeds)s::bigint[], %(positions)s::bigint[]) w (feed_id, position)
JOIN {table} c ON c.feed_id = w.feed_id AND c.position = w.position
"""
_FIRST_SUCCESSES: Final = f"""
WITH sent AS (
    {_SENT.format(table="deliveries", is_open="FALSE")}
    UNION ALL {_SENT.format(table="chunks", is_open="TRUE")}
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY position, is_taken ORDER BY first_id)
        AS place
    FROM sent
)
SELECT r.position, CASE WHEN r.is_taken THEN coalesce(d.at, c.at) END,
    coalesce(d.outcomes, c.outcomes), coalesce(d.times, c.times)
FROM ranked r LEFT JOIN deliveries d ON d.id = r.id AND NOT r.is_open
    LEFT JOIN chunks c ON c.id = r.id AND r.is_open
WHERE r.place <= CASE WHEN r.is_taken THEN 4 ELSE 1 END
"""
"""Of each record the first chunks that a callback accepted it from. More than these are
not under way at once, so one of them has the first success."""
_WHOSE: Final = (
    "a.host, t.url, s.callback FROM attempts a"
    " JOIN subscriptions s ON s.id = a.subscription_id"
    " JOIN topics t ON t.id = s.topic_id"
)
_OF_TOPIC: Final = (
    f"a.subscription_id IN (SELECT s.id FROM subscriptions s WHERE {OF_TOPIC})"
)

_members = msgspec.json.Decoder(list[Row])


async def _claim(
    connections: Connections, box: SecretBox, terms: ClaimTerms, *, only_new: bool
) -> list[ClaimedChunk] | None:
    """Claim chunks; None if none was found so far, but more are to be looked
    through."""
    rows = await connections.write(
        _CLAIM, (*_encode_terms(terms, connections), only_new)
    )
    if rows and rows[0][0]:
        return None
    return [_read_chunk(row, box) for row in rows]


def _encode_terms(terms: ClaimTerms, connections: Connections) -> tuple[object, ...]:
    lasting = round(terms.seconds * 1_000)
    holder = connections.incarnation
    return terms.lease_id, holder, lasting, terms.now, terms.limit


def _read_chunk(row: Row, box: SecretBox) -> ClaimedChunk:
    _, chunk_id, lease_id, outcomes, members, *record = row
    pending = set(pending_indexes(outcomes))
    return ClaimedChunk(
        id=chunk_id,
        lease_id=lease_id,
        record=read_stored_record(tuple(record)),
        pending=tuple(
            (member[-1], read_subscription(member, box))
            for member in _members.decode(members)
            if member[-1] in pending
        ),
    )


class FollowingClaims:
    """Claims right after commits, on terms asked for when these were handed in."""

    def __init__(self, connections: Connections, box: SecretBox) -> None:
        self._connections = connections
        self._box = box
        self._claimer: tuple[Ask, Give] | None = None
        self._claiming: set[asyncio.Task[None]] = set()

    @contextmanager
    def made_by(self, ask: Ask, give: Give) -> Iterator[None]:
        self._claimer = ask, give
        try:
            yield
        finally:
            self._claimer = None

    def ask(self) -> ClaimTerms | None:
        """The terms for a claim with a commit that is handed in now; None: no claim."""
        return None if self._claimer is None else self._claimer[0]()

    def follow(self, terms: ClaimTerms) -> None:
        """Claim on these terms, as their commit has become durable, or failed."""
        task = asyncio.create_task(self._claim(terms), name="storage-claim")
        self._claiming.add(task)
        task.add_done_callback(self._claiming.discard)

    async def _claim(self, terms: ClaimTerms) -> None:
        chunks = None
        try:
            with suppress(StorageError):
                chunks = await _claim(
                    self._connections, self._box, terms, only_new=True
                )
        finally:  # even if a chunk cannot be read, so that its place is freed
            if self._claimer is not None:
                self._claimer[1](chunks)


class PostgresDeliveries:
    def __init__(
        self,
        connections: Connections,
        box: SecretBox,
        control: PostgresControl,
        commit_claims: FollowingClaims,
    ) -> None:
        self._commit_claims = commit_claims
        self._connections = connections
        self._box = box
        self._control = control

    async def claim_chunks(self, terms: ClaimTerms) -> list[ClaimedChunk]:
        claimed = None
        while claimed is None:
            claimed = await _claim(self._connections, self._box, terms, only_new=False)
        return claimed

    def claim_with_commits(self, ask: Ask, give: Give) -> AbstractContextManager[None]:
        return self._commit_claims.made_by(ask, give)

    async def renew(
        self, chunk_ids: Sequence[int], *, lease_id: int, seconds: float, now: datetime
    ) -> None:
        holder, lasting = self._connections.incarnation, round(seconds * 1_000)
        await self._connections.write(
            _RENEW, (list(chunk_ids), lease_id, holder, lasting, now)
        )

    async def flush(self, flush: DeliveryFlush) -> Flushed:
        gone = [subscription_id for subscription_id, _ in flush.ended]
        ((unfinished, lost),) = await self._connections.write_in_lane(
            _FLUSH,
            (to_jsonb(_encode_flush(flush)),),
            number=flush.number,
            then=(lambda _: self._control.ended(gone)) if gone else None,
        )
        return Flushed(unfinished=frozenset(unfinished), lost=frozenset(lost))

    async def notified(self) -> dict[AccountId, int]:
        rows = await self._connections.all(
            "SELECT account_id, requests FROM notified WHERE requests > 0"
        )
        return {AccountId(account): requests for account, requests in rows}

    async def claim_retrying(self, terms: ClaimTerms) -> list[RetryingSubscription]:
        rows = await self._connections.write(
            _CLAIM_RETRYING, _encode_terms(terms, self._connections)
        )
        return [read_retrying(row, self._box) for row in rows]

    async def next_retry(self) -> datetime | None:
        row = await self._connections.first(
            "SELECT min(due) FROM retries WHERE NOT is_paused"
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
        among = _among(_RETRYING, wanted, await self._has_few(wanted))
        rows = await self._connections.all(
            f"SELECT v.* FROM {among} JOIN stored_retries v ON v.id = u.subscription_id"
            " WHERE u.subscription_id > %(after)s"
            " ORDER BY u.subscription_id LIMIT %(limit)s",
            {**_undelivered(wanted), "after": after, "limit": limit},
        )
        return [read_retrying(row, self._box) for row in rows]

    async def retrying_subscription(
        self, subscription_id: SubscriptionId
    ) -> RetryingSubscription | None:
        row = await self._connections.first(
            "SELECT * FROM stored_retries WHERE id = %s", (subscription_id,)
        )
        return None if row is None else read_retrying(row, self._box)

    async def lag(self, subscription_id: SubscriptionId, most: int) -> DeliveryLag:
        row = await self._connections.first(
            _LAG, {"subscription": subscription_id, "pending": PENDING, "most": most}
        )
        records, oldest = row or (0, None)
        return DeliveryLag(records=records, oldest=from_milliseconds_or_none(oldest))

    async def dead_letters(
        self, *, after: int, limit: int, wanted: UndeliveredFilter | None = None
    ) -> list[DeadLetter]:
        wanted = wanted or UndeliveredFilter()
        among = _among(_DEAD, wanted, await self._has_few(wanted))
        rows = await self._connections.all(
            f"SELECT v.* FROM {among} JOIN stored_dead_letters v ON v.id = u.id"
            " WHERE u.id > %(after)s ORDER BY u.id LIMIT %(limit)s",
            {**_undelivered(wanted), "after": after, "limit": limit},
        )
        return [read_dead_letter(row) for row in rows]

    async def dead_letters_of(
        self, ids: Sequence[SubscriptionId], positions: Sequence[Position]
    ) -> list[DeadLetter]:
        rows = await self._connections.all(
            "SELECT v.* FROM dead_letters d JOIN stored_dead_letters v ON v.id = d.id"
            " WHERE d.subscription_id = ANY(%(ids)s::bigint[]) AND EXISTS ("
            "  SELECT 1 FROM unnest(%(positions)s::bigint[]) p"
            "  WHERE p BETWEEN d.first AND d.last) ORDER BY d.id",
            {"ids": list(ids), "positions": list(positions)},
        )
        return [read_dead_letter(row) for row in rows]

    async def count_undelivered(self, wanted: UndeliveredFilter, most: int) -> int:
        has_few = await self._has_few(wanted)
        retrying = _among(_RETRYING, wanted, has_few)
        dead = _among(_DEAD, wanted, has_few)
        row = await self._connections.first(
            f"SELECT count(*) FROM (SELECT 1 FROM {retrying}"
            f" UNION ALL SELECT 1 FROM {dead} LIMIT %(most)s) n",
            {**_undelivered(wanted), "most": most},
        )
        return int(row[0]) if row else 0

    async def retry_now(self, subscription_id: SubscriptionId, now: datetime) -> bool:
        ((outcome,),) = await self._connections.write(
            "SELECT retry_early(%s, %s)", (subscription_id, now)
        )
        if outcome == "missing":
            raise NotFound("delivery to be retried of subscription", subscription_id)
        _require_done(outcome, subscription_id)
        return bool(outcome == "done")

    async def retry_dead_letter(self, dead_id: int, now: datetime) -> None:
        ((outcome, whose),) = await self._connections.write(
            "SELECT * FROM retry_dead_letter(%s, %s)", (dead_id, now)
        )
        if outcome == "missing":
            what = "dead letter of an active subscription with the id"
            raise NotFound(what, dead_id)
        if outcome == "trimmed":
            raise NotFound("record left of the dead letter", dead_id)
        _require_done(outcome, whose)

    async def replay(
        self, subscription_id: SubscriptionId, after: Position, now: datetime
    ) -> None:
        ((outcome,),) = await self._connections.write(
            "SELECT replay(%s, %s, %s)", (subscription_id, after, now)
        )
        if outcome == "missing":
            raise NotFound("active subscription", subscription_id)
        _require_done(outcome, subscription_id)

    async def discard_retry(
        self, subscription_id: SubscriptionId, now: datetime
    ) -> None:
        ((is_done,),) = await self._connections.write(
            "SELECT discard_retry(%s, %s)", (subscription_id, now)
        )
        if not is_done:
            raise NotFound("delivery to be retried of subscription", subscription_id)

    async def discard_dead_letter(self, dead_id: int) -> None:
        if not await self._connections.change(
            "DELETE FROM dead_letters WHERE id = %s", (dead_id,)
        ):
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
        noted = await self._connections.all(_NOTED, parameters)
        straight = []
        if wanted.is_delivered is not False:
            straight = await self._connections.all(_STRAIGHT, parameters)
        found = [read_attempt(row) for row in noted]
        found += [read_chunk_attempt(subscription_id, row) for row in straight]
        found.sort(key=lambda each: (each.at, each.position), reverse=True)
        return found[:limit]

    async def failed_attempt(self, attempt_id: int) -> FailedAttempt | None:
        row = await self._connections.first(
            f"SELECT {ATTEMPT}, a.details, {_WHOSE} WHERE a.id = %s AND a.error <> ''",
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
        condition, values = _failures(wanted)
        if before is not None:
            condition += " AND (a.at, a.id) < (%(at)s, %(id)s)"
            values |= {"at": before[0], "id": before[1]}
        rows = await self._connections.all(
            f"SELECT {ATTEMPT}, NULL::bytea, {_WHOSE} WHERE {condition}"
            " ORDER BY a.at DESC, a.id DESC LIMIT %(limit)s",
            {**values, "limit": limit},
        )
        return [read_failed_attempt(row) for row in rows]

    async def count_failed_attempts(self, wanted: AttemptFilter, most: int) -> int:
        condition, values = _failures(wanted)
        row = await self._connections.first(
            "SELECT count(*) FROM"
            f" (SELECT 1 FROM attempts a WHERE {condition} LIMIT %(most)s) n",
            {**values, "most": most},
        )
        return int(row[0]) if row else 0

    async def _has_few(self, wanted: UndeliveredFilter) -> bool:
        """Whether so few attempts are wanted that all of them are looked at."""
        return (
            not wanted.names_failures
            or await self.count_failed_attempts(wanted, MOST_LOOKED_AT + 1)
            <= MOST_LOOKED_AT
        )

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
        conditions = ["at >= %(since)s", "at < %(until)s"]
        if feed_id is not None:
            conditions.append("feed_id = %(feed)s")
        if before is not None:
            conditions.append(
                f"({key}) < (SELECT {key} FROM deliveries WHERE id = %(before)s)"
            )
        rows = await self._connections.all(
            f"SELECT {SENT_CHUNK} FROM deliveries WHERE {' AND '.join(conditions)}"
            f" ORDER BY {key.replace(',', ' DESC,')} DESC LIMIT %(limit)s",
            {
                "since": since or 0,
                "until": until or END,
                "feed": feed_id,
                "before": before,
                "limit": limit,
            },
        )
        return [read_sent_chunk(row) for row in rows]

    async def first_successes(
        self, records: Sequence[tuple[FeedId, Position]]
    ) -> dict[Position, datetime | None]:
        feeds, positions = [[each[n] for each in records] for n in (0, 1)]
        rows = await self._connections.all(
            _FIRST_SUCCESSES, {"feeds": feeds, "positions": positions}
        )
        return read_first_successes(rows)

    async def attempts_kept_from(
        self, subscription_id: SubscriptionId
    ) -> datetime | None:
        row = await self._connections.first(
            _KEPT_FROM, {"subscription": subscription_id, "kept": ATTEMPTS_KEPT}
        )
        return from_milliseconds_or_none(row[0]) if row else None

    async def latest_requests(
        self, until: datetime, *, chunks: int, attempts: int
    ) -> LatestRequests:
        sent = await self._connections.all(
            "SELECT at, members, outcomes FROM deliveries WHERE at < %s"
            " ORDER BY at DESC LIMIT %s",
            (until, chunks),
        )
        noted = await self._connections.all(
            "SELECT at, subscription_id, milliseconds, error = '' FROM attempts"
            " WHERE at < %s ORDER BY at DESC LIMIT %s",
            (until, attempts),
        )
        return read_latest_requests(
            [(at, members, outcomes) for at, members, outcomes in sent],
            noted,
            is_cut=(len(sent) == chunks, len(noted) == attempts),
        )

    async def trim_attempts(self, before: datetime, limit: int, *, kept: int) -> int:
        ((trimmed,),) = await self._connections.write(
            "SELECT trim_attempts(%s, %s, %s)", (before, limit, kept)
        )
        return int(trimmed)


def _require_done(outcome: str, subscription_id: int) -> None:
    match outcome:
        case "paused":
            raise SubscriptionPaused(subscription_id)
        case "in flight":
            raise StorageBusy(
                f"a delivery to subscription {subscription_id} is in flight"
            )
        case "catching up":
            raise StorageBusy(f"subscription {subscription_id} is catching up already")


# --- flushes ---


def _encode_flush(flush: DeliveryFlush) -> dict[str, Any]:
    """Encode a flush; parts in which nothing happened are left out."""
    parts = {
        "outcomes": _encode_outcomes(flush.outcomes),
        "opened": [_encode_opened(each) for each in flush.opened],
        "moved": [_encode_moved(each) for each in flush.moved],
        "given_up": [_encode_given_up(each) for each in flush.given_up],
        "ended": flush.ended,
        "recovered": flush.recovered,
        "advanced": flush.advanced,
        "notified": flush.notified,
        "attempts": [_encode_attempt(each) for each in flush.attempts],
    }
    happened = {name: each for name, each in parts.items() if each}
    return {"at": to_milliseconds(flush.at), **happened}


def _encode_outcomes(outcomes: Sequence[ChunkOutcome]) -> list[dict[str, Any]]:
    """Outcomes by chunk, in order: locks are always taken in the same order."""
    chunks: defaultdict[tuple[int, int], dict[int, bytes]] = defaultdict(dict)
    for each in outcomes:
        packed = pack_outcome(each) + pack_answer_time(each.at)
        chunks[each.chunk_id, each.lease_id][each.index] = packed
    return [
        {
            "chunk": chunk,
            "lease": lease,
            "indexes": list(noted),
            "outcomes": list(noted.values()),
        }
        for (chunk, lease), noted in sorted(chunks.items())
    ]


def _encode_opened(opened: RetryOpened) -> dict[str, Any]:
    return {
        "id": opened.subscription_id,
        "position": opened.position,
        "attempts": opened.attempts,
        "next_try": to_milliseconds(opened.next_try),
        "failing_since": to_milliseconds(opened.failing_since),
        "last_status": opened.last_status,
        "last_error": opened.last_error,
        "lease_id": opened.lease_id,
        "tried_to": opened.tried_to,
        "news_from": to_milliseconds(opened.news_from or opened.next_try),
        "chunk": _encode_chunk(opened.chunk),
    }


def _encode_moved(moved: RetryMoved) -> dict[str, Any]:
    return {
        "id": moved.subscription_id,
        "lease_id": moved.lease_id,
        "position": moved.position,
        "attempts": moved.attempts,
        "next_try": to_milliseconds(moved.next_try),
        "due": to_milliseconds(moved.due or moved.next_try),
        "news_from": to_milliseconds(moved.news_from or moved.next_try),
        "last_status": moved.last_status,
        "last_error": moved.last_error,
        "tried_to": moved.tried_to,
        "release": moved.release,
        "finished": moved.finished,
    }


def _encode_given_up(given_up: NewDeadLetter) -> dict[str, Any]:
    return {
        "id": given_up.subscription_id,
        "lease_id": given_up.lease_id,
        "first": given_up.first,
        "last": given_up.last,
        "reason": given_up.reason,
        "at": to_milliseconds(given_up.at),
        "chunk": _encode_chunk(given_up.chunk),
        "was_untried": given_up.was_untried,
    }


def _encode_chunk(chunk: tuple[int, int] | None) -> str | None:
    return None if chunk is None else f"{chunk[0]}/{chunk[1]}"


def _encode_attempt(attempt: Attempt) -> dict[str, Any]:
    details = attempt.details
    return {
        "id": attempt.subscription_id,
        "position": attempt.position,
        "at": to_milliseconds(attempt.at),
        "status": attempt.status,
        "milliseconds": attempt.milliseconds,
        "error": attempt.error,
        "reason": ATTEMPT_REASON_NUMBERS[attempt.reason],
        "host": details.request.host if details else "",
        "details": pack_details(details),
    }


# --- filters ---


def _range_parameters(wanted: AttemptRange) -> dict[str, int | bool | None]:
    at, position = wanted.before or (None, END)
    since = to_milliseconds_or_none(wanted.since)
    until = to_milliseconds_or_none(wanted.until)
    return {
        "is_delivered": wanted.is_delivered,
        "since": since or 0,
        "until": END if until is None else until,
        "at": END if at is None else to_milliseconds(at),
        "position": position,
        "first": 0 if wanted.position is None else wanted.position,
        "last": END if wanted.position is None else wanted.position,
    }


def _failures(wanted: AttemptFilter) -> tuple[str, dict[str, object]]:
    """SQL for the condition on attempts, and its values.

    Each filter is an equality or a range of one of the indexes of failures, or is
    checked on the columns in the index.
    """
    conditions, values = ["a.error <> ''"], dict[str, object]()
    if wanted.subscription_id is not None:
        conditions.append("a.subscription_id = %(subscription)s")
        values["subscription"] = wanted.subscription_id
    if wanted.host:
        conditions.append("a.host = %(host)s")
        values["host"] = wanted.host
    if wanted.statuses is not None:
        first, last = wanted.statuses
        conditions.append("a.status BETWEEN %(first)s AND %(last)s")
        values |= {"first": first, "last": last}
        if first // 100 == last // 100:
            conditions.append("a.status / 100 = %(hundred)s")
            values["hundred"] = first // 100
    if wanted.topic is not None:
        conditions.append(_OF_TOPIC)
        values |= topic_keys(wanted.topic)
    if wanted.since is not None:
        conditions.append("a.at >= %(since)s")
        values["since"] = wanted.since
    if wanted.until is not None:
        conditions.append("a.at < %(until)s")
        values["until"] = wanted.until
    return " AND ".join(conditions), values


def _undelivered(wanted: UndeliveredFilter) -> dict[str, object]:
    """The values of the SQL that follows."""
    _, values = _failures(wanted)
    return {**values, "lacking": wanted.lacking}


_RETRYING: Final = UndeliveredRows(
    table="retries",
    key="subscription_id",
    outcome=UndeliveredOutcome.RETRIED,
    told_of="a.position > g.position",
    lacks="g.position < %(lacking)s",
)
_DEAD: Final = UndeliveredRows(
    table="dead_letters",
    key="id",
    outcome=UndeliveredOutcome.GIVEN_UP,
    told_of="a.position BETWEEN g.first AND g.last",
    lacks="g.first <= %(lacking)s",
)


def _among(rows: UndeliveredRows, wanted: UndeliveredFilter, has_few: bool) -> str:
    """SQL for the wanted of these rows, as ``u``.

    If few attempts match, they are read first and lead to the rows. If many match, each
    row is checked, which finds a matching attempt soon.
    """
    if wanted.outcome not in (None, rows.outcome):
        return f"(SELECT * FROM {rows.table} WHERE FALSE) u"
    condition, _ = _failures(wanted)
    if not wanted.names_failures:
        is_wanted = "TRUE"
        if wanted.subscription_id is not None:
            is_wanted = "subscription_id = %(subscription)s"
    elif has_few:
        is_wanted = (
            f"{rows.key} IN (SELECT w.{rows.key} FROM attempts a JOIN {rows.table} w"
            f" ON w.subscription_id = a.subscription_id"
            f" AND {rows.told_of.replace('g.', 'w.')} WHERE {condition})"
        )
    else:
        is_wanted = (
            "EXISTS (SELECT 1 FROM attempts a"
            f" WHERE a.subscription_id = g.subscription_id AND {rows.told_of}"
            f" AND {condition})"
        )
    if wanted.lacking is not None:
        is_wanted += f" AND {rows.lacks}"
    return f"(SELECT * FROM {rows.table} g WHERE {is_wanted}) u"
