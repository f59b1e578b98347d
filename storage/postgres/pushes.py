"""`storage.contract.PushStore` on PostgreSQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from storage.postgres.claims import unclaimed
from storage.postgres.connections import Connections, Row
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
from storage.sqlite.rows import (
    CALLBACK,
    PUSH,
    hash_token,
    read_callback,
    read_feed_push,
)

_PUSHES: Final = (
    "SELECT p.feed_id, coalesce(f.state, 'removed'), coalesce(f.credentials, ''),"
    " p.failures, p.asked_at, p.retry_at, p.error,"
    f" {', '.join('p.' + each for each in PUSH.split(', '))}"
    " FROM pushes p LEFT JOIN feeds f ON f.id = p.feed_id"
)
_DUE: Final = (
    f"{_PUSHES} WHERE p.due <= %(now)s AND p.feed_id <> ALL(%(without)s::bigint[])"
    " AND (%(owner)s = 0 OR owns_feed(%(owner)s, p.feed_id))"
    f" AND {unclaimed(WorkKind.PUSHES, 'p.feed_id')}"
    " ORDER BY p.due LIMIT %(limit)s"
)
_SWITCH_ON: Final = (
    "UPDATE pushes SET due = 0 WHERE due IS NULL AND way <> ''"
    " AND feed_id IN (SELECT id FROM feeds WHERE state = 'active')"
    " AND hub <> ALL(%s::text[])"
)
_SWITCH_OFF: Final = (
    "UPDATE pushes SET due = 0, until = NULL WHERE feed_id IN"
    " (SELECT feed_id FROM push_callbacks WHERE state <> 'ending')"
)
_NAMED_HUBS: Final = "SELECT DISTINCT hub FROM pushes WHERE hub <> ''"
_HUBS: Final = (
    "SELECT hub, what, count FROM push_hubs WHERE hub = '' OR hub IN"
    " (SELECT hub FROM push_hubs WHERE what = %s AND hub <> ''"
    "  ORDER BY count DESC LIMIT %s) ORDER BY hub, what"
)


class PostgresPushes:
    def __init__(self, connections: Connections, box: SecretBox) -> None:
        self._connections = connections
        self._box = box

    async def get(self, feed_id: FeedId) -> FeedPush | None:
        found = await self.of([feed_id])
        return found[0] if found else None

    async def of(self, ids: Sequence[FeedId]) -> list[FeedPush]:
        rows = await self._connections.all(
            f"{_PUSHES} WHERE p.feed_id = ANY(%s::bigint[])", (list(ids),)
        )
        return await self._read(rows)

    async def due(
        self,
        now: datetime,
        *,
        limit: int,
        without: Collection[FeedId] = (),
    ) -> list[FeedPush]:
        parameters = {
            "now": now,
            "without": list(without),
            "owner": self._connections.owner,
            "limit": limit,
        }
        rows = await self._connections.all(_DUE, parameters)
        return await self._read(rows)

    async def _read(self, rows: Sequence[Row]) -> list[FeedPush]:
        callbacks: defaultdict[int, list[PushCallback]] = defaultdict(list)
        found = await self._connections.all(
            f"SELECT {CALLBACK} FROM push_callbacks"
            " WHERE feed_id = ANY(%s::bigint[]) ORDER BY id",
            ([row[0] for row in rows],),
        )
        for each in found:
            callback = read_callback(each, self._box)
            callbacks[callback.feed_id].append(callback)
        return [read_feed_push(row, tuple(callbacks[row[0]])) for row in rows]

    async def _step(
        self,
        feed_id: FeedId,
        lease_id: int | None,
        call: str,
        parameters: Sequence[object],
    ) -> bool:
        """Do it if the push is held under this lease, None: in any case."""
        ((is_held, _),) = await self._connections.write(
            "WITH held AS (SELECT holds_claim('pushes', %s, %s, %s) it)"
            f" SELECT it, CASE WHEN it THEN {call} END FROM held",
            (feed_id, lease_id, self._connections.incarnation, *parameters),
        )
        return bool(is_held)

    async def postpone(
        self, feed_id: FeedId, due: datetime | None, *, lease_id: int
    ) -> bool:
        return await self._step(
            feed_id, lease_id, "put_off_push(%s, %s)", (feed_id, due)
        )

    async def named_hubs(self) -> list[str]:
        rows = await self._connections.all(_NAMED_HUBS)
        return [hub for (hub,) in rows]

    async def switch(self, *, is_on: bool, unused: Collection[str] = ()) -> None:
        if not is_on:
            await self._connections.write(_SWITCH_OFF)
            return
        await self._connections.write(_SWITCH_ON, ([*unused],))
        if unused:
            of_hubs = f"{_SWITCH_OFF} AND hub = ANY(%s::text[])"
            await self._connections.write(of_hubs, ([*unused],))

    async def ask(self, new: NewPushCallback, *, lease_id: int) -> bool:
        return await self._step(
            new.feed_id,
            lease_id,
            "ask_hub(%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                *(new.feed_id, new.way.value, new.hub, new.topic),
                *(hash_token(new.token), self._box.encrypt(new.token)),
                *(self._box.encrypt(new.secret), new.asked_at, new.until),
            ),
        )

    async def fail(
        self,
        callback: PushCallback,
        what: PushCount,
        *,
        error: str,
        retry_at: datetime,
        lease_id: int | None = None,
    ) -> bool:
        return await self._step(
            callback.feed_id,
            lease_id,
            "fail_push(%s, %s, %s, %s, %s, %s)",
            (
                *(callback.id, callback.feed_id, callback.hub, what.value),
                *(error, retry_at),
            ),
        )

    async def confirm(
        self, callback: PushCallback, until: datetime, *, lease_id: int | None = None
    ) -> bool:
        was_asked = callback.state is CallbackState.ASKED
        return await self._step(
            callback.feed_id,
            lease_id,
            "confirm_push(%s, %s, %s, %s, %s)",
            (callback.id, callback.feed_id, callback.hub, until, was_asked),
        )

    async def leave(
        self, callback: PushCallback, until: datetime, *, lease_id: int
    ) -> bool:
        given = (callback.id, callback.feed_id, until)
        return await self._step(
            callback.feed_id, lease_id, "leave_hub(%s, %s, %s)", given
        )

    async def drop(
        self, callback: PushCallback, *, lease_id: int | None = None
    ) -> bool:
        given = (callback.id, callback.feed_id)
        return await self._step(
            callback.feed_id, lease_id, "drop_callback(%s, %s)", given
        )

    async def forget(self, feed_id: FeedId, *, lease_id: int) -> bool:
        return await self._step(feed_id, lease_id, "forget_push(%s)", (feed_id,))

    async def find(self, token: str) -> PushCallback | None:
        row = await self._connections.first(
            f"SELECT {CALLBACK} FROM push_callbacks WHERE token_hash = %s",
            (hash_token(token),),
        )
        return None if row is None else read_callback(row, self._box)

    async def hint(self, callback: PushCallback, at: datetime) -> None:
        await self._connections.write(
            "SELECT hint_push(%s, %s, %s)", (callback.feed_id, callback.hub, at)
        )

    async def hinted(self, *, after: FeedId, limit: int) -> list[FeedId]:
        rows = await self._connections.all(
            "SELECT feed_id FROM pushes WHERE hinted_at IS NOT NULL AND feed_id > %s"
            " ORDER BY feed_id LIMIT %s",
            (after, limit),
        )
        return [FeedId(feed_id) for (feed_id,) in rows]

    async def count(self, hub: str, what: PushCount) -> None:
        await self._connections.write("SELECT count_of_hub(%s, %s)", (hub, what.value))

    async def hubs(self, limit: int) -> list[PushHub]:
        rows = await self._connections.all(_HUBS, (PushCount.CONFIRMED.value, limit))
        counts: defaultdict[str, list[tuple[PushCount, int]]] = defaultdict(list)
        for hub, what, count in rows:
            counts[hub].append((PushCount(what), count))
        return [PushHub(hub=hub, counts=tuple(all)) for hub, all in counts.items()]
