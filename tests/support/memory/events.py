"""Operational events of the model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from protocols.model import Status
from protocols.operational_events import takes
from storage.records import (
    FeedId,
    FeedState,
    OperationalEvent,
    Polling,
    Position,
    Record,
    RecordKind,
    StoredFeed,
)

from .state import ModelFeed, State, milliseconds

MOST_WAITING = 50


class MemoryEvents:
    def __init__(self, state: State) -> None:
        self._state = state

    async def topic(self, name: str, now: datetime) -> StoredFeed:
        feeds = self._state.feeds
        known = next((it for it in feeds.values() if it.stored.url == name), None)
        if known is not None:
            known.stored = replace(
                known.stored, state=FeedState.EVENTS, removed_at=None
            )
            return known.stored
        feed_id = FeedId(self._state.next_id("feed"))
        stored = StoredFeed(
            id=feed_id,
            url=name,
            state=FeedState.EVENTS,
            private=True,
            category="",
            title="",
            format="",
            next_fetch=milliseconds(now),
            created_at=milliseconds(now),
            removed_at=None,
            polling=Polling(),
        )
        feeds[feed_id] = ModelFeed(stored)
        return stored

    async def publish(self, now: datetime, limit: int) -> int:
        state = self._state
        topics = {
            feed_id: each.stored.url
            for feed_id, each in sorted(state.feeds.items())
            if each.stored.state is FeedState.EVENTS and state.active(feed_id)
        }
        waiting = sum(state.records[each].feed_id in topics for each in state.fanouts)
        room = max(0, min((limit + 1) // 2, 2 * MOST_WAITING - waiting))
        queued = [each for each in state.event_queue if each.condition][:room]
        taken = {id(each) for each in queued}
        others = [each for each in state.event_queue if id(each) not in taken]
        room = max(0, min(limit, MOST_WAITING - waiting) - len(queued))
        queued, state.event_queue = queued + others[:room], others[room:]
        for event in queued:
            for feed_id, topic in topics.items():
                if takes(topic, event.type):
                    self._append(event, feed_id, now)
        if queued:
            state.claim_after_commit()
        return len(queued)

    def _append(self, event: OperationalEvent, feed_id: FeedId, now: datetime) -> None:
        self._state.log_end += 1
        position = Position(self._state.log_end)
        self._state.records[position] = Record(
            position=position,
            at=milliseconds(now),
            feed_id=feed_id,
            kind=RecordKind.EVENT,
            status=Status(),
            event=event,
        )
        self._state.fan_out(position)

    async def note_conditions(
        self, holding: Sequence[OperationalEvent], now: datetime
    ) -> None:
        state, by_name = self._state, {each.condition: each for each in holding}
        known = state.hub_conditions
        over = sorted(known.keys() - by_name.keys())
        begun = sorted(by_name.keys() - known.keys())
        if state.are_events_wanted:
            state.event_queue += [
                replace(known[each], at=now, is_over=True) for each in over
            ]
            state.event_queue += [by_name[each] for each in begun]
            known |= {each: by_name[each] for each in begun}
        for each in over:
            del known[each]
