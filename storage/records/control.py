"""The events of the control log: decisions made on one node that all nodes follow."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from storage.records.identities import FeedId, Position, SubscriptionId, TokenId
from storage.records.log import TrackQuery


class SubscriptionsEnded(msgspec.Struct, frozen=True):
    """Subscriptions have ended. ``log_end``: where the log ended then."""

    ids: tuple[SubscriptionId, ...]
    log_end: Position


class PauseChanged(msgspec.Struct, frozen=True):
    """A subscription was paused or resumed. `SubscriptionsEnded` alone reports its
    end."""

    id: SubscriptionId
    is_paused: bool


class QueriesCame(msgspec.Struct, frozen=True):
    """Track queries were added; with them, the queries have this version
    (`Matched`)."""

    version: int
    queries: tuple[TrackQuery, ...]


class QueriesWent(msgspec.Struct, frozen=True):
    """Track queries were removed; names their feeds."""

    ids: tuple[FeedId, ...]


class EpochBegan(msgspec.Struct, frozen=True):
    """A new log begins here: what was known of the former log's end no longer holds."""

    epoch: str


class AccessEnded(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody may no longer do or read what was allowed: tokens were revoked, or feeds
    were removed or may have become private for some."""

    tokens: tuple[TokenId, ...] = ()
    feeds: tuple[FeedId, ...] = ()


class DecisionsMissed(msgspec.Struct, frozen=True):
    """Something was decided that cannot be read, and ``reason`` says why: whoever heeds
    decisions reads anew what they may have changed."""

    reason: str


ControlEvent: TypeAlias = (
    SubscriptionsEnded
    | PauseChanged
    | QueriesCame
    | QueriesWent
    | AccessEnded
    | EpochBegan
    | DecisionsMissed
)
