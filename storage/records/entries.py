"""Entries read newest first, and what they are found by."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from storage.records.feeds import StoredFeed
from storage.records.identities import EntryId
from storage.records.log import StoredEntry
from storage.records.standings import Standing


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """Where an entry stands among others, newest first.

    ``at``: its own date, or when it was first stored. Of the same moment the lower id
    comes first: a document has its newest entry first.
    """

    at: datetime
    id: EntryId


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySource:
    """The feed that entries come from, with the packed head of its last document."""

    feed: StoredFeed
    head: bytes | None
    standing: Standing | None = None  # None before the first maintenance


# --- search ---


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDocument:
    """What an entry is found by: ``words`` between single blanks, and ``places``,

    names without blanks.
    """

    entry_id: EntryId
    words: str
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words in a row."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    name: str


@dataclass(frozen=True, slots=True)
class Both:
    """Every member is there."""

    members: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """At least one member is there."""

    members: tuple[Term, ...]


Term: TypeAlias = Phrase | Place | Both | Either


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """A page of matches, newest first; ``next``: what to go on with, None at the end.

    A page may be empty and not the last one: what must not be seen is left out.
    """

    entries: tuple[StoredEntry, ...]
    next: int | None
