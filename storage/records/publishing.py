"""What everybody may see: feeds that are not private, and their entries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from storage.records.identities import FeedId
from storage.records.log import StoredEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFeed:
    """A feed that is neither private nor removed, as far as readers need it."""

    id: FeedId
    url: str
    title: str
    section: str
    created_at: datetime
    head: bytes | None  # packed protocols.model.Feed; None before the first document


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEntry:
    """``dated``: its place in the list: its own date, or when it was first stored."""

    entry: StoredEntry
    dated: datetime
