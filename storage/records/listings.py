"""Listing an account's subscriptions: what is searched for, and what is found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from storage.records.feeds import StoredFeed
from storage.records.standings import Standing
from storage.records.subscriptions import Format, Subscription


class Comparison(StrEnum):
    EQUAL = "="
    ABOVE = ">"
    FROM = ">="
    BELOW = "<"
    UP_TO = "<="


@dataclass(frozen=True, slots=True)
class Bound:
    """A number of a feed's status, compared: ``> 0.5``."""

    comparison: Comparison
    number: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingSearch:
    """All that is set must hold; empty texts and None ask for nothing.

    Hosts are in lower case. ``callback_like``: with ``%`` for whatever. An index leads
    to what formats, topics, callbacks and hosts select; the rest is looked for among
    the account's subscriptions.
    """

    format: Format | None = None
    topic: str = ""  # in any spelling
    topic_contains: str = ""
    topic_host: str = ""
    callback: str = ""
    callback_contains: str = ""
    callback_host: str = ""
    callback_like: str = ""
    velocity: Bound | None = None
    popularity: Bound | None = None
    bozo_rank: Bound | None = None
    porn_rank: Bound | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A subscription with its feed."""

    subscription: Subscription
    feed: StoredFeed
    standing: Standing | None = None  # None before the first maintenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page, oldest first, of ``total`` that were found."""

    items: tuple[Listed, ...]
    total: int
