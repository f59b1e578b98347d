"""What is news in a document, given all that its feed has ever shown.

A new key is news, and nothing else is: not a position, not a date, not a return.
Changed content is an update. Only a publisher's own word makes a deletion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from hub.core.seen import (
    DELETED,
    PRESENT,
    SeenSet,
    Sighting,
    day_of,
    sight,
    sighted_again,
)
from protocols.identity import fingerprint
from protocols.model import Deletion, Entry, ParsedFeed

FRESH_FOR = timedelta(minutes=3)
"""An update whose own date is younger is pushed by default (as Superfeedr does)."""
UPDATES_A_DAY = 3
"""Changes of one entry that are logged in a day, unless its own date is fresh: two
versions that alternate behind a load balancer are no flood of updates."""
REBUILT_ENTRIES = 5
"""From so many on, a change of most entries at once is a rebuilt site, not fresh."""
REKEYED_ENTRIES = 2
"""A single entry with a new id and a known link is news."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """A known entry in a new state; ``is_logged``: readers of the log are told."""

    entry: Entry
    is_fresh: bool
    is_logged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What a document changes. ``new`` keeps the document's order."""

    seen: bytes  # the packed seen-set from now on
    is_baseline: bool  # a first fetch: its entries are news to nobody
    new: tuple[Entry, ...] = ()
    updates: tuple[Update, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    rekeyed: int = 0  # known entries that came back under another id
    sightings: tuple[Sighting, ...] = ()  # of the document's entries, in its order


def detect(
    document: ParsedFeed,
    seen: bytes,
    *,
    at: datetime,
    last_success: datetime | None,
    is_reformatted: bool = False,
) -> News:
    """Compare a document with its feed's seen-set (``b""`` before the first one).

    ``last_success`` is when the previous document was last there. ``is_reformatted``
    says that the feed came in another format before, with other ids for what it had.
    """
    known = SeenSet.unpack(seen)
    withdrawn = _withdrawn(document)
    current = _sightings(_in_order(document, known, day_of(at)), withdrawn)
    if current:  # an empty document has lost its entries, they have not vanished
        known.close_document(day_of(last_success or at))
    unknown = {key: None for key in current if known.get(key) is None}
    rekeyed = _rekey(known, current, unknown, is_reformatted)
    updates = _updates(known, current, at)
    new = tuple(
        entry
        for key in unknown
        if key not in rekeyed and (entry := current[key][0]) is not None
    )
    for key in unknown:
        known.put(current[key][1])
    deletions = _deletions(known, withdrawn)
    known.forget(day_of(at), len(current))
    return News(
        seen=known.pack(),
        is_baseline=not seen,
        new=new,
        updates=updates,
        deletions=deletions,
        rekeyed=len(rekeyed),
        sightings=tuple(sighting for _, sighting in current.values()),
    )


_Current = dict[int, tuple[Entry | None, Sighting]]
"""By key; entries that were not read, since they are as they were, are ``None``."""


def _withdrawn(document: ParsedFeed) -> dict[int, Deletion]:
    """Deletions by key, but for entries that the document holds in a newer state."""
    updated = {entry.key: entry.updated for entry in document.entries}
    withdrawn = {}
    for deletion in document.deletions:
        last = updated.get(deletion.key)
        if deletion.key not in updated or (
            last and deletion.at and deletion.at >= last
        ):
            withdrawn[fingerprint(deletion.key)] = deletion
    return withdrawn


def _in_order(
    document: ParsedFeed, known: SeenSet, day: int
) -> Iterator[tuple[Entry | None, Sighting]]:
    """The document's entries; one that was not read again is as it was last seen."""
    entries = iter(document.entries)
    for key in document.outline.keys if document.outline else ():
        if key:
            yield None, known[key]._replace(day=day, changes=0, flags=PRESENT)
        else:
            entry = next(entries)
            yield entry, sight(entry, day)
    for entry in entries:
        yield entry, sight(entry, day)


def _sightings(
    entries: Iterable[tuple[Entry | None, Sighting]], withdrawn: dict[int, Deletion]
) -> _Current:
    """By key, in the document's order; of two with the same key the first counts."""
    current: _Current = {}
    for entry, sighting in entries:
        if sighting.key not in withdrawn:
            current.setdefault(sighting.key, (entry, sighting))
    return current


def _rekey(
    known: SeenSet, current: _Current, unknown: dict[int, None], is_reformatted: bool
) -> set[int]:
    """Find known entries under new keys; their old keys are forgotten.

    That is a site's move or redesign, a change of format, or ids that change with
    each request. Links and titles count only where one entry alone has them.
    """
    if not is_reformatted and 2 * len(unknown) <= len(current):
        return set()
    vanished = [sighting for sighting in known if sighting.key not in current]
    matches: dict[int, int] = {}
    for attribute in (_link, _title):
        old = _unique(attribute, vanished)
        new = _unique(attribute, (sighting for _, sighting in current.values()))
        for value, key in new.items():
            if value in old and key in unknown:
                matches.setdefault(key, old[value])
    is_mass = 2 * len(matches) > len(current) and len(matches) >= REKEYED_ENTRIES
    if not is_mass and not is_reformatted:
        return set()
    for old_key in set(matches.values()):
        known.remove(old_key)
    return set(matches)


def _link(sighting: Sighting) -> int:
    return sighting.link


def _title(sighting: Sighting) -> int:
    return sighting.title


def _unique(
    attribute: Callable[[Sighting], int], sightings: Iterable[Sighting]
) -> dict[int, int]:
    """Keys by the attribute, where it is there and belongs to one sighting only."""
    sightings = list(sightings)
    counts = Counter(map(attribute, sightings))
    return {
        value: each.key
        for each in sightings
        if (value := attribute(each)) and counts[value] == 1
    }


def _updates(known: SeenSet, current: _Current, at: datetime) -> tuple[Update, ...]:
    """Sight known entries again; those with other content, or undeleted, changed."""
    changed = []
    for key, (entry, sighting) in current.items():
        before = known.get(key)
        if before is None:
            continue
        again = sighted_again(before, sighting)
        is_changed = before.is_deleted or again.content != sighting.content
        if entry is not None and is_changed:
            changed.append((entry, again))
            again = again.changed(sighting.content)
        known.put(again)
    is_rebuilt = len(changed) >= REBUILT_ENTRIES and 2 * len(changed) > len(current)
    return tuple(
        _update(entry, sighting, not is_rebuilt and _is_fresh(entry, at))
        for entry, sighting in changed
    )


def _update(entry: Entry, sighting: Sighting, is_fresh: bool) -> Update:
    is_logged = is_fresh or sighting.changes < UPDATES_A_DAY
    return Update(entry=entry, is_fresh=is_fresh, is_logged=is_logged)


def _is_fresh(entry: Entry, at: datetime) -> bool:
    return entry.updated is not None and abs(at - entry.updated) < FRESH_FOR


def _deletions(known: SeenSet, withdrawn: dict[int, Deletion]) -> tuple[Deletion, ...]:
    """Deletions of known entries that were not told before."""
    told = []
    for key, deletion in withdrawn.items():
        before = known.get(key)
        if before is not None and not before.is_deleted:
            known.put(before._replace(flags=DELETED))
            told.append(deletion)
    return tuple(told)
