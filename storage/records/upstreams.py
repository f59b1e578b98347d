"""Subscriptions of this hub at hubs of others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from storage.records.feeds import FeedState
from storage.records.identities import FeedId
from storage.records.pushes import Push, PushWay


class CallbackState(StrEnum):
    ASKED = "asked"  # the hub has yet to confirm it
    ACTIVE = "active"
    ENDING = "ending"  # the hub was asked to end it


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPushCallback:
    """A callback of ours that a hub is about to be told."""

    feed_id: FeedId
    way: PushWay
    hub: str
    topic: str
    token: str  # the last part of its path; nobody can guess it
    secret: str
    asked_at: datetime
    until: datetime  # when the hub has to have confirmed it


@dataclass(frozen=True, slots=True, kw_only=True)
class PushCallback:
    """``until`` is the end of what its state says: of waiting, or of the lease."""

    id: int
    feed_id: FeedId
    way: PushWay
    hub: str
    topic: str
    token: str
    secret: str
    state: CallbackState
    asked_at: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A feed's push with all that its next step depends on."""

    feed_id: FeedId
    feed_state: FeedState
    has_credentials: bool
    push: Push
    callbacks: tuple[PushCallback, ...] = ()  # oldest first
    failures: int = 0  # requests in a row that led to no subscription
    asked_at: datetime | None = None  # the last request, of whatever hub
    retry_at: datetime | None = None  # not asked before
    trouble: str = ""  # why the last one did not; for people
