"""`storage.contract.PushStore` on SQLite.

Also what a fetch writes about its feed's push.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial

import msgspec

from storage.records import (
    CallbackState,
    FeedId,
    FeedPush,
    NewPushCallback,
    PushCallback,
    PushCount,
    PushHub,
    WorkKind,
)
from storage.secrets import SecretBox
from storage.sqlite.claims import holds_claim, unclaimed
from storage.sqlite.columns import pack_ids, to_milliseconds, to_milliseconds_or_none
from storage.sqlite.readers import Readers, Row
from storage.sqlite.rows import (
    CALLBACK,
    PUSH,
    hash_token,
    read_callback,
    read_feed_push,
)
from storage.sqlite.writer import Unit, Writer


class EncodedPush(msgspec.Struct, frozen=True, kw_only=True):
    row: dict[str, object]
    counted: tuple[PushCount, ...]


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
    """Store a push, within the unit of work that commits a fetch."""
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
    """Delete a push, and the counts of its hub if no feed names that any more."""
    hub = _hub_of(feed_id, connection)
    connection.execute(
        "DELETE FROM pushes WHERE feed_id = ? AND (way = '' OR NOT EXISTS"
        " (SELECT 1 FROM feeds WHERE id = pushes.feed_id AND state <> 'removed'))",
        (feed_id,),
    )
    _forget_hub(hub, connection)


def count_of_hub(hub: str, what: PushCount, connection: sqlite3.Connection) -> None:
    """Count for one hub, and for all hubs under ""."""
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
    """Delete the counts of a hub that no feed names any more.

    Feeds may name any number of hubs.
    """
    connection.execute(
        "DELETE FROM push_hubs WHERE hub = :hub AND hub <> ''"
        " AND NOT EXISTS (SELECT 1 FROM pushes WHERE hub = :hub)",
        {"hub": hub},
    )


_UPSTREAM = (
    "SELECT p.feed_id, coalesce(f.state, 'removed'),"
    " coalesce(f.credentials, ''), p.failures, p.asked_at, p.retry_at,"
    " p.trouble,"
    f" {', '.join('p.' + each for each in PUSH.split(', '))}"
    " FROM {asked} CROSS JOIN pushes p ON {which}"
    " LEFT JOIN stored_feeds f ON f.id = p.feed_id"
)
_OF = _UPSTREAM.format(asked="json_each(?) asked", which="p.feed_id = asked.value")
_DUE = (
    _UPSTREAM.format(asked="(SELECT 1)", which="TRUE")
    + " WHERE p.due <= ? AND p.feed_id NOT IN (SELECT value FROM json_each(?))"
    f" AND {unclaimed(WorkKind.PUSHES, 'p.feed_id')} ORDER BY p.due LIMIT ?"
)

_SWITCH_ON = (
    "UPDATE pushes SET due = 0 WHERE due IS NULL AND way <> ''"
    " AND feed_id IN (SELECT id FROM feeds WHERE state = 'active')"
    " AND hub NOT IN (SELECT value FROM json_each(?))"
)
_SWITCH_OFF = (
    "UPDATE pushes SET due = 0, until = NULL WHERE feed_id IN"
    " (SELECT feed_id FROM push_callbacks WHERE state <> 'ending')"
)
_NAMED_HUBS = "SELECT DISTINCT hub FROM pushes WHERE hub <> ''"


class SqlitePushes:
    def __init__(self, writer: Writer, readers: Readers, box: SecretBox) -> None:
        self._writer = writer
        self._readers = readers
        self._box = box

    async def get(self, feed_id: FeedId) -> FeedPush | None:
        found = await self.of([feed_id])
        return found[0] if found else None

    async def of(self, ids: Sequence[FeedId]) -> list[FeedPush]:
        return await self._read(await self._readers.all(_OF, (pack_ids(ids),)))

    async def due(
        self,
        now: datetime,
        *,
        limit: int,
        without: Collection[FeedId] = (),
    ) -> list[FeedPush]:
        at = to_milliseconds(now)
        rows = await self._readers.all(_DUE, (at, pack_ids(list(without)), at, limit))
        return await self._read(rows)

    async def _read(self, rows: Sequence[Row]) -> list[FeedPush]:
        if not rows:
            return []
        callbacks: defaultdict[int, list[PushCallback]] = defaultdict(list)
        found = await self._readers.all(
            f"SELECT {CALLBACK} FROM push_callbacks"
            " WHERE feed_id IN (SELECT value FROM json_each(?)) ORDER BY id",
            (pack_ids([row[0] for row in rows]),),
        )
        for each in found:
            callback = read_callback(each, self._box)
            callbacks[callback.feed_id].append(callback)
        return [read_feed_push(row, tuple(callbacks[row[0]])) for row in rows]

    async def _step(
        self, feed_id: FeedId, lease_id: int | None, unit: Unit[None]
    ) -> bool:
        """Do it if the push is held under this lease, None: in any case."""
        return await self._writer.submit(partial(_take_step, feed_id, lease_id, unit))

    async def postpone(
        self, feed_id: FeedId, due: datetime | None, *, lease_id: int
    ) -> bool:
        unit = partial(_postpone, feed_id, to_milliseconds_or_none(due))
        return await self._step(feed_id, lease_id, unit)

    async def named_hubs(self) -> list[str]:
        rows = await self._readers.all(_NAMED_HUBS, ())
        return [hub for (hub,) in rows]

    async def switch(self, *, is_on: bool, unused: Collection[str] = ()) -> None:
        if not is_on:
            await self._writer.execute(_SWITCH_OFF, ())
            return
        packed = (msgspec.json.encode([*unused]).decode(),)
        await self._writer.execute(_SWITCH_ON, packed)
        if unused:
            of_hubs = f"{_SWITCH_OFF} AND hub IN (SELECT value FROM json_each(?))"
            await self._writer.execute(of_hubs, packed)

    async def ask(self, new: NewPushCallback, *, lease_id: int) -> bool:
        row = (
            *(new.feed_id, new.way, new.hub, new.topic, hash_token(new.token)),
            *(self._box.encrypt(new.token), self._box.encrypt(new.secret)),
            *(to_milliseconds(new.asked_at), to_milliseconds(new.until)),
        )
        return await self._step(new.feed_id, lease_id, partial(_ask, new, row))

    async def fail(
        self,
        callback: PushCallback,
        what: PushCount,
        *,
        error: str,
        retry_at: datetime,
        lease_id: int | None = None,
    ) -> bool:
        failure = (error, to_milliseconds(retry_at), callback.feed_id)
        unit = partial(_fail, callback, what, failure)
        return await self._step(callback.feed_id, lease_id, unit)

    async def confirm(
        self, callback: PushCallback, until: datetime, *, lease_id: int | None = None
    ) -> bool:
        unit = partial(_confirm, callback, to_milliseconds(until))
        return await self._step(callback.feed_id, lease_id, unit)

    async def leave(
        self, callback: PushCallback, until: datetime, *, lease_id: int
    ) -> bool:
        unit = partial(_leave, callback, to_milliseconds(until))
        return await self._step(callback.feed_id, lease_id, unit)

    async def drop(
        self, callback: PushCallback, *, lease_id: int | None = None
    ) -> bool:
        unit = partial(drop_callback, callback)
        return await self._step(callback.feed_id, lease_id, unit)

    async def forget(self, feed_id: FeedId, *, lease_id: int) -> bool:
        return await self._step(feed_id, lease_id, partial(forget_push, feed_id))

    async def find(self, token: str) -> PushCallback | None:
        row = await self._readers.first(
            f"SELECT {CALLBACK} FROM push_callbacks WHERE token_hash = ?",
            (hash_token(token),),
        )
        return None if row is None else read_callback(row, self._box)

    async def hint(self, callback: PushCallback, at: datetime) -> None:
        await self._writer.submit(partial(_hint, callback, to_milliseconds(at)))

    async def hinted(self, *, after: FeedId, limit: int) -> list[FeedId]:
        rows = await self._readers.all(
            "SELECT feed_id FROM pushes WHERE hinted_at IS NOT NULL AND feed_id > ?"
            " ORDER BY feed_id LIMIT ?",
            (after, limit),
        )
        return [FeedId(feed_id) for (feed_id,) in rows]

    async def count(self, hub: str, what: PushCount) -> None:
        await self._writer.submit(partial(count_of_hub, hub, what))

    async def hubs(self, limit: int) -> list[PushHub]:
        rows = await self._readers.all(
            "SELECT hub, what, count FROM push_hubs WHERE hub = '' OR hub IN"
            " (SELECT hub FROM push_hubs WHERE what = ? AND hub <> ''"
            "  ORDER BY count DESC LIMIT ?) ORDER BY hub",
            (PushCount.CONFIRMED, limit),
        )
        counts: defaultdict[str, list[tuple[PushCount, int]]] = defaultdict(list)
        for hub, what, count in rows:
            counts[hub].append((PushCount(what), count))
        return [PushHub(hub=hub, counts=tuple(all)) for hub, all in counts.items()]


def _take_step(
    feed_id: FeedId,
    lease_id: int | None,
    unit: Unit[None],
    connection: sqlite3.Connection,
) -> bool:
    kind = WorkKind.PUSHES
    is_held = lease_id is None or holds_claim(kind, feed_id, lease_id, connection)
    if is_held:
        unit(connection)
    return is_held


def _postpone(feed_id: FeedId, due: int | None, connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE pushes SET due = ? WHERE feed_id = ?", (due, feed_id))


def _hint(callback: PushCallback, at: int, connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE pushes SET hinted_at = max(coalesce(hinted_at, 0), ?)"
        " WHERE feed_id = ?",
        (at, callback.feed_id),
    )
    count_of_hub(callback.hub, PushCount.DELIVERED, connection)


def _ask(
    new: NewPushCallback, row: tuple[object, ...], connection: sqlite3.Connection
) -> None:
    connection.execute(
        "INSERT INTO push_callbacks (feed_id, way, hub, topic, token_hash, token,"
        " secret, state, asked_at, until) VALUES (?, ?, ?, ?, ?, ?, ?, 'asked', ?, ?)",
        row,
    )
    connection.execute(
        "UPDATE pushes SET asked_at = ? WHERE feed_id = ?",
        (to_milliseconds(new.asked_at), new.feed_id),
    )
    count_of_hub(new.hub, PushCount.REQUESTED, connection)


def _fail(
    callback: PushCallback,
    what: PushCount,
    failure: tuple[object, ...],
    connection: sqlite3.Connection,
) -> None:
    connection.execute(
        "UPDATE pushes SET failures = failures + 1, trouble = ?, retry_at = ?"
        " WHERE feed_id = ?",
        failure,
    )
    drop_callback(callback, connection)
    count_of_hub(callback.hub, what, connection)


def _confirm(
    callback: PushCallback, until: int, connection: sqlite3.Connection
) -> None:
    changed = connection.execute(
        "UPDATE push_callbacks SET state = 'active', until = ? WHERE id = ?",
        (until, callback.id),
    )
    if not changed.rowcount:
        return
    connection.execute(
        "UPDATE pushes SET failures = 0, trouble = '', retry_at = NULL, due = 0,"
        " until = ? WHERE feed_id = ?",
        (until, callback.feed_id),
    )
    if callback.state is CallbackState.ASKED:
        count_of_hub(callback.hub, PushCount.CONFIRMED, connection)


def _leave(callback: PushCallback, until: int, connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE push_callbacks SET state = 'ending', until = min(until, ?)"
        " WHERE id = ?",
        (until, callback.id),
    )
    connection.execute(
        "UPDATE pushes SET until = (SELECT max(until) FROM push_callbacks"
        " WHERE feed_id = :feed AND state = 'active') WHERE feed_id = :feed",
        {"feed": callback.feed_id},
    )
