"""`storage.contract.FeedStore` on PostgreSQL.

Of the due feeds, the one that is latest relative to its own period comes first (see
`storage.records.Pace`). The first rows of each pace's range of an index are read, and
the latest of all are chosen. So a page costs the same however many feeds are overdue.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from storage.errors import NotFound
from storage.postgres.connections import ASKED, Connections
from storage.postgres.control import PostgresControl
from storage.postgres.polling_state import turned_polls
from storage.records import (
    PACES,
    AccountId,
    Credentials,
    DueFeed,
    FeedChange,
    FeedId,
    FeedState,
    FetchTarget,
    HiddenFeeds,
    NewFeed,
    Pace,
    PlaceByPace,
    Poll,
    Posting,
    StoredFeed,
    SubscriptionId,
)
from storage.secrets import SecretBox
from storage.sqlite.columns import from_milliseconds, from_milliseconds_or_none
from storage.sqlite.feed_access import hash_page, hash_resource
from storage.sqlite.polls import last_failures, unpack_polls
from storage.sqlite.purging import ROWS_PURGED
from storage.sqlite.rows import (
    PUSH,
    encrypt_credentials,
    read_due,
    read_feed,
    read_posting,
    read_target,
)

# --- which are due ---
_OWNED: Final = "(%(owner)s = 0 OR owns_feed(%(owner)s, feed_id))"


def _range(pace: int, has_place: bool) -> str:
    """SQL for the feeds of one pace that follow its place, by (next_fetch, feed_id)."""
    behind = f" AND (next_fetch, feed_id) > (%(at_{pace})s, %(feed_{pace})s)"
    return (
        "(SELECT feed_id, next_fetch, pace FROM schedule"
        f" WHERE is_active AND pace = {pace} AND next_fetch <= %(now)s AND {_OWNED}"
        f"{behind if has_place else ''} ORDER BY next_fetch, feed_id LIMIT %(limit)s)"
    )


def _first(pace: int) -> str:
    return (
        "(SELECT next_fetch AS first FROM schedule"
        f" WHERE is_active AND pace = {pace} AND {_OWNED} ORDER BY next_fetch LIMIT 1)"
    )


def _oldest(pace: int) -> str:
    return (
        "(SELECT next_fetch AS first FROM schedule WHERE is_active"
        f" AND pace = {pace} AND feed_id <> ALL(%(without)s::bigint[])"
        " ORDER BY next_fetch LIMIT 1)"
    )


_ORDER: Final = "lateness DESC, next_fetch, feed_id"


@lru_cache(64)
def _due(places: frozenset[Pace]) -> str:
    ranges = " UNION ALL ".join(_range(pace, pace in places) for pace in range(PACES))
    return (
        "(SELECT f.id, CASE f.fetch_url WHEN '' THEN f.url ELSE f.fetch_url END,"
        " s.next_fetch, s.pace FROM (SELECT feed_id, next_fetch, pace,"
        " (%(now)s - next_fetch)::double precision / (1 << pace) AS lateness"
        f" FROM ({ranges}) r ORDER BY {_ORDER} LIMIT %(limit)s) s"
        f" JOIN feeds f ON f.id = s.feed_id ORDER BY {_ORDER})"
        f" UNION ALL SELECT NULL, '', 0, 0 WHERE NOT {_IS_WHOLE}"
    )


_IS_WHOLE: Final = "EXISTS (SELECT 1 FROM schedule WHERE feed_id = 0)"
"""False after a crash of the server, until the schedule is restored: it is no part of
what the server logs."""
_NEXT_DUE: Final = (
    f"SELECT {_IS_WHOLE}, min(first)"
    f" FROM ({' UNION ALL '.join(map(_first, range(PACES)))}) f"
)
OLDEST_DUE: Final = (
    f"(SELECT min(first) FROM ({' UNION ALL '.join(map(_oldest, range(PACES)))}) f)"
)
"""The earliest next fetch of an active feed that is not among ``without``."""

# --- the store ---

_ADD: Final = (
    "SELECT (a.feed).*, a.is_new FROM add_feed(%(url)s, %(private)s, %(as_anybody)s,"
    " %(category)s, %(sent)s, %(fingerprint)s, %(title)s, %(description)s,"
    " %(resource)s, %(page)s, %(now)s) a"
)
_EDIT: Final = (
    "SELECT (e.feed).*, e.ended FROM edit_feed(%(id)s, %(private)s, %(category)s,"
    " %(own_period)s, %(sent)s, %(fingerprint)s, %(url)s, %(resource)s, %(page)s,"
    " %(shuts_out)s, %(reason)s, %(now)s) e"
)
_TURN: Final = "SELECT (t.feed).*, t.was_query FROM turn_feed(%s, %s, %s, %s) t"
_LIKELIEST: Final = (
    "SELECT v.* FROM likely_feeds(%(resource)s, %(topic)s) WITH ORDINALITY"
    " f JOIN stored_feeds v ON v.id = f.id{where} ORDER BY f.ordinality LIMIT 1"
)
_TARGETS: Final = f"""
SELECT f.*, s.seen, p.slices, i.inventory, e.feed_id, g.maintained_at, g.popularity,
    g.porn_rank, g.is_stale,
    {", ".join("u." + each for each in PUSH.split(", "))}
FROM {ASKED}
JOIN stored_feeds f ON f.id = asked.id
LEFT JOIN seen_sets s ON s.feed_id = f.id
LEFT JOIN slices p ON p.feed_id = f.id
LEFT JOIN inventories i ON i.feed_id = f.id
LEFT JOIN awaited_errors e ON e.feed_id = f.id
LEFT JOIN feed_statistics g ON g.feed_id = f.id
LEFT JOIN pushes u ON u.feed_id = f.id
WHERE f.state NOT IN ('removed', 'track', 'events') ORDER BY asked.place
"""
_POSTINGS: Final = """
SELECT p.polling FROM (SELECT n, greatest(1.0, (SELECT max(id) FROM feeds)::float8
    / %(limit)s) AS step FROM generate_series(0, %(limit)s - 1) n) spread
JOIN LATERAL (SELECT f.polling FROM feeds f
    WHERE f.id > floor(n * step) AND f.id <= floor((n + 1) * step)
    AND f.state NOT IN ('removed', 'track', 'events') AND f.polling <> ''
    ORDER BY f.id LIMIT 1) p ON TRUE ORDER BY n
"""
"""Picks the first feed of each of so many equal ranges of ids."""
_POLLS: Final = """
SELECT p.feed_id, coalesce((SELECT string_agg(e.polls, ''::bytea ORDER BY e.turn)
    FROM earlier_polls e WHERE e.feed_id = p.feed_id), ''), p.recent_polls
FROM feed_hot p WHERE p.feed_id = ANY(%s)
"""
_RESTORED_AT_ONCE: Final = 50_000
"""Feeds; so many do not keep others waiting for long."""


class PostgresFeeds:
    def __init__(
        self,
        connections: Connections,
        box: SecretBox,
        control: PostgresControl,
    ) -> None:
        self._connections = connections
        self._box = box
        self._control = control

    async def add(self, feed: NewFeed, now: datetime) -> tuple[StoredFeed, bool]:
        parameters = {
            "url": feed.url,
            "private": feed.private,
            "as_anybody": feed.as_anybody,
            "category": feed.category,
            "sent": encrypt_credentials(feed.credentials, self._box),
            "fingerprint": fingerprint_credentials(feed.credentials, self._box),
            "title": feed.title,
            "description": feed.description,
            "resource": hash_resource(feed.url),
            "page": hash_page(feed.url),
            "now": now,
        }
        ((*row, is_new),) = await self._connections.write(_ADD, parameters)
        return read_feed(tuple(row)), is_new

    async def edit(
        self, feed_id: FeedId, change: FeedChange, reason: str, now: datetime
    ) -> tuple[StoredFeed, int]:
        given = change.credentials
        used = None if given == Credentials() else given
        parameters = {
            "id": feed_id,
            "private": change.private,
            "category": change.category,
            "own_period": change.own_period,
            "sent": None if given is None else encrypt_credentials(used, self._box),
            "fingerprint": None
            if given is None
            else fingerprint_credentials(used, self._box),
            "url": change.url,
            "resource": None if change.url is None else hash_resource(change.url),
            "page": None if change.url is None else hash_page(change.url),
            "shuts_out": change.shuts_out and change.shuts_out.value,
            "reason": reason,
            "now": now,
        }
        rows = await self._connections.write(
            _EDIT,
            parameters,
            then=lambda edited: self._tell_of_edit(
                feed_id, change, [id for row in edited for id in row[-1]]
            ),
        )
        if not rows:
            raise NotFound("feed", feed_id)
        return read_feed(rows[0]), len(rows[0][-1])

    def _tell_of_edit(
        self, feed_id: FeedId, change: FeedChange, ended: Sequence[SubscriptionId]
    ) -> None:
        self._control.ended(ended)
        if change.shuts_out is not None:
            self._control.access_ended(feeds=[feed_id])

    async def get(self, feed_id: FeedId) -> StoredFeed | None:
        row = await self._connections.first(
            "SELECT * FROM stored_feeds WHERE id = %s", (feed_id,)
        )
        return None if row is None else read_feed(row)

    async def several(self, ids: Collection[FeedId]) -> dict[FeedId, StoredFeed]:
        rows = await self._connections.all(
            "SELECT * FROM stored_feeds WHERE id = ANY(%s)", (list(ids),)
        )
        return {feed.id: feed for feed in map(read_feed, rows)}

    async def find(self, topic: str) -> StoredFeed | None:
        return await self._likeliest(topic, "")

    async def find_open(self, topic: str) -> StoredFeed | None:
        return await self._likeliest(topic, " WHERE f.credentials = ''")

    async def find_readable(
        self, topic: str, viewer: AccountId | None
    ) -> StoredFeed | None:
        where = " JOIN feeds r ON r.id = f.id WHERE may_read(%(viewer)s::bigint, r)"
        return await self._likeliest(topic, where, viewer=viewer)

    async def _likeliest(
        self, topic: str, where: str, **more: object
    ) -> StoredFeed | None:
        keys = {"resource": hash_resource(topic), "topic": topic}
        row = await self._connections.first(
            _LIKELIEST.format(where=where), {**keys, **more}
        )
        return None if row is None else read_feed(row)

    async def parts(self, page: str, limit: int) -> list[StoredFeed]:
        rows = await self._connections.all(
            "SELECT v.* FROM feeds f JOIN stored_feeds v ON v.id = f.id"
            " WHERE f.page_hash = %s AND f.page_hash <> '' AND f.state <> 'removed'"
            " ORDER BY f.id LIMIT %s",
            (hash_resource(page), limit),
        )
        return [read_feed(row) for row in rows]

    async def readable(
        self, asked: Collection[tuple[AccountId | None, FeedId]]
    ) -> frozenset[tuple[AccountId | None, FeedId]]:
        pairs = list(asked)
        rows = await self._connections.all(
            "SELECT a.viewer, f.id FROM unnest(%s::bigint[], %s::bigint[])"
            " a (viewer, feed_id) JOIN feeds f ON f.id = a.feed_id"
            " WHERE may_read(a.viewer, f)",
            ([viewer for viewer, _ in pairs], [feed_id for _, feed_id in pairs]),
        )
        return frozenset((viewer, FeedId(feed_id)) for viewer, feed_id in rows)

    async def page(
        self, *, after: FeedId, limit: int, state: FeedState | None = None
    ) -> list[StoredFeed]:
        among = "state = %(state)s"
        if state is None:
            among = "state NOT IN ('removed', 'track', 'events')"
        rows = await self._connections.all(
            f"SELECT * FROM stored_feeds WHERE {among} AND id > %(after)s"
            " ORDER BY id LIMIT %(limit)s",
            {"state": state and state.value, "after": after, "limit": limit},
        )
        return [read_feed(row) for row in rows]

    async def due(
        self,
        now: datetime,
        *,
        after: PlaceByPace,
        limit: int,
    ) -> list[DueFeed]:
        owner = self._connections.owner
        parameters: dict[str, object] = {"now": now, "limit": limit, "owner": owner}
        for pace, (at, feed_id) in after.items():
            parameters |= {f"at_{pace}": at, f"feed_{pace}": feed_id}
        sql = _due(frozenset(after))
        rows = await self._connections.all(sql, parameters)
        if rows and rows[-1][0] is None:
            await self._restore_schedule()
            rows = await self._connections.all(sql, parameters)
        return [read_due(row) for row in rows]

    async def next_due(self) -> datetime | None:
        owner = {"owner": self._connections.owner}
        ((is_whole, first),) = await self._connections.all(_NEXT_DUE, owner)
        if not is_whole:
            await self._restore_schedule()
            ((_, first),) = await self._connections.all(_NEXT_DUE, owner)
        return from_milliseconds_or_none(first)

    async def _restore_schedule(self) -> None:
        after: int | None = 0
        while after is not None:
            ((after,),) = await self._connections.write(
                "SELECT restore_schedule(%s, %s)", (after, _RESTORED_AT_ONCE)
            )

    def defer(self, moves: Sequence[tuple[FeedId, datetime]]) -> Awaitable[None]:
        return self._defer(dict(moves))

    async def _defer(self, times: Mapping[FeedId, datetime]) -> None:
        await self._connections.write(
            "SELECT put_next_fetches(%s::bigint[], %s::bigint[]) FROM require_term(%s)",
            ([*times], [*times.values()], self._connections.incarnation),
        )

    async def hold_hosts(
        self, holds: Sequence[tuple[str, datetime]], now: datetime
    ) -> None:
        hosts = [host for host, _ in holds]
        await self._connections.write(
            "SELECT hold_hosts(%s::text[], %s::bigint[], %s)",
            (hosts, [until for _, until in holds], now),
        )

    async def held_hosts(self, now: datetime) -> list[tuple[str, datetime]]:
        rows = await self._connections.all(
            "SELECT host, until FROM host_holds WHERE until > %s ORDER BY host", (now,)
        )
        return [(host, from_milliseconds(until)) for host, until in rows]

    async def spread(
        self, now: datetime, *, longest: timedelta, per_second: float
    ) -> int:
        await self.next_due()  # restores the schedule, if need be
        ((number,),) = await self._connections.write(
            "SELECT spread_overdue(%s, %s, %s)",
            (now, longest.total_seconds(), float(per_second)),
        )
        return int(number)

    async def targets(self, ids: Sequence[FeedId]) -> list[FetchTarget]:
        rows = await self._connections.all(_TARGETS, (list(ids),))
        return [read_target(row, self._box) for row in rows]

    async def polls(self, feed_id: FeedId) -> list[Poll]:
        found = await self._polls([feed_id])
        return unpack_polls(found.get(feed_id, b""))

    async def last_failures(self, ids: Sequence[FeedId]) -> dict[FeedId, Poll]:
        return last_failures(await self._polls(ids))

    async def _polls(self, ids: Sequence[FeedId]) -> dict[FeedId, bytes]:
        rows = await self._connections.all(_POLLS, (list(ids),))
        return {
            FeedId(feed_id): earlier + turned_polls(latest)
            for feed_id, earlier, latest in rows
        }

    async def postings(self, limit: int) -> list[Posting]:
        rows = await self._connections.all(_POSTINGS, {"limit": limit})
        postings = (read_posting(polling) for (polling,) in rows)
        return [posting for posting in postings if posting.habits]

    async def hidden(self, ids: Sequence[FeedId]) -> HiddenFeeds:
        rows = await self._connections.all(
            "SELECT asked.id, coalesce(f.state = 'removed', TRUE)"
            " FROM unnest(%s::bigint[]) asked (id) LEFT JOIN feeds f ON f.id = asked.id"
            " WHERE f.id IS NULL OR f.state = 'removed' OR f.private",
            (list(ids),),
        )
        removed = frozenset(FeedId(each) for each, is_removed in rows if is_removed)
        return HiddenFeeds(
            removed=removed,
            private=frozenset(FeedId(each) for each, _ in rows) - removed,
        )

    async def set_state(
        self,
        feed_id: FeedId,
        state: FeedState,
        now: datetime,
        *,
        next_fetch: datetime | None = None,
    ) -> StoredFeed:
        rows = await self._connections.write(
            _TURN,
            (feed_id, state.value, now, next_fetch),
            then=lambda turned: self._tell_of_turned(
                feed_id, state, bool(turned and turned[0][-1])
            ),
        )
        if not rows:
            raise NotFound("feed", feed_id)
        return read_feed(rows[0])

    def _tell_of_turned(
        self, feed_id: FeedId, state: FeedState, was_query: bool
    ) -> None:
        if was_query:
            self._control.went([feed_id])
        if state is FeedState.REMOVED:
            self._control.access_ended(feeds=[feed_id])

    async def set_publish_secret(self, feed_id: FeedId, secret: str) -> None:
        await self._set("publish_secret", self._box.encrypt(secret), feed_id)

    async def publish_secret(self, feed_id: FeedId) -> str:
        return self._box.decrypt(await self._get("publish_secret", feed_id))

    async def set_subscription_callback(self, feed_id: FeedId, url: str) -> None:
        await self._set("subscription_callback", url, feed_id)

    async def subscription_callback(self, feed_id: FeedId) -> str:
        return await self._get("subscription_callback", feed_id)

    async def _set(self, column: str, value: str, feed_id: FeedId) -> None:
        await self._connections.write(
            f"UPDATE feeds SET {column} = %s WHERE id = %s", (value, feed_id)
        )

    async def _get(self, column: str, feed_id: FeedId) -> str:
        row = await self._connections.first(
            f"SELECT {column} FROM feeds WHERE id = %s", (feed_id,)
        )
        return row[0] if row else ""

    async def purge_removed(self, before: datetime, limit: int) -> int:
        rows = await self._connections.all(
            "SELECT id FROM feeds WHERE state = 'removed' AND removed_at < %s"
            " ORDER BY removed_at LIMIT %s",
            (before, limit),
        )
        for (feed_id,) in rows:
            is_gone = False
            while not is_gone:
                ((is_gone,),) = await self._connections.write(
                    "SELECT purge_feed(%s, %s, %s)", (before, feed_id, ROWS_PURGED)
                )
        return len(rows)


def fingerprint_credentials(credentials: Credentials | None, box: SecretBox) -> bytes:
    if credentials is None:
        return b""
    return box.fingerprint(msgspec.json.encode(credentials, order="sorted").decode())


def due_parameters(under_way: Collection[FeedId]) -> Mapping[str, object]:
    """The parameters of `OLDEST_DUE`."""
    return {"without": list(under_way)}
