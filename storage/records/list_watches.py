"""Lists of feeds elsewhere that the hub keeps in step with."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from storage.records.feeds import Validators
from storage.records.identities import FeedId, ListWatchId


class NewListWatch(msgspec.Struct, frozen=True, kw_only=True):
    """``category``: of feeds that are in no folder of the list. ``private``: whether
    feeds that it adds are."""

    url: str
    category: str = ""
    private: bool = False


class ListWatch(msgspec.Struct, frozen=True, kw_only=True):
    """A list that is watched, and what came of it.

    ``due``: when it is read next. ``read_at``: when it was last read, or had not
    changed. ``error``: why that failed since, ``failures`` times in a row, or what is
    wrong with it. ``feeds``: how many it has, of which ``refused`` are not on the hub.
    At its last change, ``changed_at``, so many were ``added``, ``removed``, or ``kept``
    though it had them no more. ``is_doubted``: too many were missing at once.
    """

    id: ListWatchId
    url: str
    category: str
    private: bool
    created_at: datetime
    due: datetime
    read_at: datetime | None = None
    error: str = ""
    failures: int = 0
    validators: Validators | None = None
    is_doubted: bool = False
    feeds: int = 0
    refused: int = 0
    added: int = 0
    removed: int = 0
    kept: int = 0
    changed_at: datetime | None = None


class WatchedFate(StrEnum):
    """What became of a feed of a watched list."""

    PENDING = "pending"  # it is about to be added, as nobody had added it before
    ADDED = "added"
    KNOWN = "known"  # it was there already, or somebody has taken it on
    CATEGORIZED = "categorized"  # the same, and it has its category from the list
    REFUSED = "refused"


class WatchedFeed(msgspec.Struct, frozen=True, kw_only=True):
    """A feed of a watched list; ``category`` is the one that the list wants for it;
    of one that is about to be categorized, "".

    ``feed_id`` None: it is not on the hub.
    """

    url: str
    category: str
    fate: WatchedFate
    feed_id: FeedId | None = None
