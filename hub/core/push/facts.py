"""How a feed is pushed, for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from hub.core.push.steps import wanted_offer
from hub.core.push.trust import is_trusted
from storage.records import CallbackState, PushWay, Upstream


class PushState(StrEnum):
    UNWANTED = "unwanted"  # it is not polled either
    WAITING = "waiting"  # to be asked for, perhaps after failures
    ASKED = "asked"  # its hub has yet to confirm it
    SUBSCRIBED = "subscribed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PushFacts:
    """``is_trusted``: it is polled rarely, for what is new comes by itself."""

    way: PushWay
    hub: str
    topic: str
    state: PushState
    is_trusted: bool
    until: datetime | None  # the end of the lease
    asked_at: datetime | None
    retry_at: datetime | None
    trouble: str  # why the last request led to nothing
    pushed_at: datetime | None
    brought: int  # pushes of what no poll had found
    late: int
    missed: int  # polls that found what nobody had pushed
    foreign: int
    is_hinted: bool = False  # told of news that no fetch has seen yet


def push_facts(upstream: Upstream | None, now: datetime) -> PushFacts | None:
    """None for a feed that nobody could push."""
    if upstream is None or upstream.push.offer is None:
        return None
    push, record = upstream.push, upstream.push.record
    offer = upstream.push.offer
    return PushFacts(
        way=offer.way,
        hub=offer.hub,
        topic=offer.topic,
        state=_state(upstream, now),
        is_trusted=is_trusted(push, now),
        until=push.until,
        asked_at=upstream.asked_at,
        retry_at=upstream.retry_at,
        trouble=upstream.trouble,
        pushed_at=record.pushed_at,
        brought=record.brought,
        late=record.late,
        missed=record.missed,
        foreign=record.foreign,
        is_hinted=upstream.push.hinted_at is not None,
    )


def _state(upstream: Upstream, now: datetime) -> PushState:
    if wanted_offer(upstream) is None:
        return PushState.UNWANTED
    if upstream.push.until is not None and upstream.push.until > now:
        return PushState.SUBSCRIBED
    states = [each.state for each in upstream.callbacks]
    return PushState.ASKED if CallbackState.ASKED in states else PushState.WAITING
