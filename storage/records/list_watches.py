"""Lists of feeds elsewhere that the hub follows."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from storage.records.feeds import Validators
from storage.records.identities import FeedId, ListWatchId


class NewListWatch(msgspec.Struct, frozen=True, kw_only=True):
    """A list to watch. ``category``: for feeds that are in no folder of the list.
    ``private``: whether the feeds it adds are private."""

    url: str
    category: str = ""
    private: bool = False


class ListWatch(msgspec.Struct, frozen=True, kw_only=True):
    """A watched list, and what its reads found.

    ``due``: when it is read next. ``read_at``: when it was last read or found
    unchanged. ``error``: why reads have failed since, ``failures`` times in a row, or
    what is wrong with the list. ``feeds``: how many it has, of which ``refused`` are
    not on the hub. At its last change, ``changed_at``, so many feeds were ``added``,
    ``removed``, or ``kept`` though they had left the list. ``is_doubted``: too many
    were missing at once.
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
    """What the hub did with a feed of a watched list."""

    PENDING = "pending"  # it is about to be added, as nobody had added it before
    ADDED = "added"
    KNOWN = "known"  # it was there already, or somebody has taken it on
    CATEGORIZED = "categorized"  # the same, and it has its category from the list
    REFUSED = "refused"


class WatchedFeed(msgspec.Struct, frozen=True, kw_only=True):
    """A feed of a watched list. ``category`` is the one the list gives it, but "" for a
    feed that is about to be categorized.

    ``feed_id`` None: it is not on the hub.
    """

    url: str
    category: str
    fate: WatchedFate
    feed_id: FeedId | None = None
