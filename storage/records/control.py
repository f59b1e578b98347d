"""What is decided on one node and heeded on all: the events of the control log."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from storage.records.identities import FeedId, Position, SubscriptionId
from storage.records.log import TrackQuery


class SubscriptionsEnded(msgspec.Struct, frozen=True):
    """``log_end``: where the log ended then."""

    ids: tuple[SubscriptionId, ...]
    log_end: Position


class PauseChanged(msgspec.Struct, frozen=True):
    """A subscription was paused, or resumed. One that ends is told of there only."""

    id: SubscriptionId
    is_paused: bool


class QueriesCame(msgspec.Struct, frozen=True):
    """Track queries, and the version that there is with them (`Matched`)."""

    version: int
    queries: tuple[TrackQuery, ...]


class QueriesWent(msgspec.Struct, frozen=True):
    """The feeds of track queries."""

    ids: tuple[FeedId, ...]


class EpochBegan(msgspec.Struct, frozen=True):
    """The log is another one from here on: what was known of its end is over."""

    epoch: str


ControlEvent: TypeAlias = (
    SubscriptionsEnded | PauseChanged | QueriesCame | QueriesWent | EpochBegan
)
