"""What is new in a document, given everything its feed has ever shown.

Exactly the entries with an unknown key are new; position, date and a return do not
matter. Changed content is an update. Only an explicit deletion by the publisher is a
deletion. The records about these name at most `MOST_ENTRIES` each.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from hub.core.news.entry_identity import (
    find_continued,
    find_rekeyed,
    find_reread,
    find_unescaped,
)
from hub.core.news.seen_set import (
    DELETED,
    PRESENT,
    SeenSet,
    Sighting,
    day_of,
    mark_of,
    sight,
    sighted_again,
)
from protocols.identity import fingerprint
from protocols.model import (
    Deletion,
    Entry,
    FeedFormat,
    IdSource,
    ParsedFeed,
    SharedKey,
    Status,
)
from storage.packing import encoded_size
from storage.records import RecordKind, RecordWrite

FRESH_FOR = timedelta(minutes=3)
"""An update whose own date is younger is pushed by default (as Superfeedr does)."""
UPDATES_A_DAY = 3
"""Changes of one entry that are logged in a day, unless its own date is fresh: two
versions that alternate behind a load balancer must not cause a flood of updates."""
REBUILT_ENTRIES = 5
"""If so many entries or more, and most of them, change at once, the site was rebuilt,
and the updates are not fresh."""


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """A known entry in a new state; ``is_logged``: subscribers may be notified."""

    entry: Entry
    is_fresh: bool
    is_logged: bool


class EntryDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What a document changes. ``new`` keeps the document's order."""

    seen: bytes  # the packed seen-set from now on
    is_baseline: bool  # a first fetch: its entries are news to nobody
    new: tuple[Entry, ...] = ()
    updates: tuple[Update, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    rekeyed: int = 0  # known entries that came back under another id
    sightings: tuple[Sighting, ...] = ()  # of the document's entries, in its order
    is_gap: bool = False  # none of the document was known: some may have been missed
    waiting: int = 0  # new and changed entries beyond the quota: not known yet
    bytes: int = 0  # of new and changed entries within the quota
    is_too_large: bool = False  # whether the quota of bytes was exceeded

    @property
    def notified(self) -> int:
        """The number of entries that subscribers are notified of."""
        return 0 if self.is_baseline else len(self.new)


class EntryQuota(msgspec.Struct, frozen=True, kw_only=True):
    """How many new entries may be sent, and how many bytes of new and changed ones."""

    entries: int
    bytes: int


def detect(
    document: ParsedFeed,
    seen: bytes,
    *,
    at: datetime,
    last_success: datetime | None,
    is_reformatted: bool = False,
    is_addition: bool = False,
    elsewhere: bytes = b"",
    quota: EntryQuota | None = None,
) -> EntryDiff:
    """Compare a document with its feed's seen-set (``b""`` before the first one).

    ``last_success``: when the previous document was last read. ``is_reformatted``: the
    feed came in another format before, with other ids and other words for its entries;
    then an entry is only updated if its own date says so, too. ``is_addition``: entries
    the document lacks may still be in the feed's own document. ``elsewhere`` is the
    seen-set of another feed, if this feed has just become the same document. Entries
    beyond the ``quota`` wait, except those of a first document.
    """
    known = SeenSet.unpack(seen)
    withdrawn = _withdrawn(document) if document.deletions else {}
    current = _sightings(document, known, day_of(at), withdrawn)
    if elsewhere:
        _merge(known, elsewhere, current, last_success or at, at)
    # entries have not vanished if the document is empty
    is_successor = bool(current) and not is_addition
    if is_successor:
        known.close_document(day_of(last_success or at))
    here = {key: sighting for key, (_, sighting) in current.items()}
    taken_over = _taken_over(document, known, here) if document.shared_keys else ()
    unknown = {
        key: entry
        for key, (entry, _) in current.items()
        if entry is not None and (key not in known or key in taken_over)
    }
    is_gap = is_successor and len(known) > 0 and len(current) == len(unknown)
    # For unknown keys: what they share, if an entry was known by that.
    shared = {
        key: each
        for each in reversed(document.shared_keys)
        if (key := fingerprint(each.key)) in unknown
        and fingerprint(each.shared) in known
    }
    rekeyed = _rekey(known, here, unknown, shared, is_reformatted=is_reformatted)
    # A former version took entries with one id for one. Those that it left out are
    # stored when they are read at last, but nobody is notified.
    collapsed = {
        key: unknown[key]
        for key, each in shared.items()
        if known.is_former
        and key not in rekeyed
        and each.source is not IdSource.LINK
        and not _came_between(unknown[key], last_success or at, at)
    }
    reworded_since = (last_success or at) if is_reformatted else None
    spent = _Spent(quota if seen else None)
    new = [key for key in unknown if key not in rekeyed and key not in collapsed]
    waiting = {key for key in new if not spent.takes(unknown[key], is_new=True)}
    updates = _updates(known, current, at, reworded_since, spent)
    for entry in collapsed.values():
        updates.append(Update(entry=entry, is_fresh=False, is_logged=False))
    for key in unknown:
        if key not in waiting:
            known[key] = here[key]
    for each in document.shared_keys:
        known.mark(mark_of(each.source, fingerprint(each.shared)), day_of(at))
    deletions = _deletions(known, withdrawn)
    if is_successor:
        known.forget(day_of(at), len(current))
    return EntryDiff(
        seen=known.pack(),
        is_baseline=not seen,
        new=tuple(unknown[key] for key in new if key not in waiting),
        waiting=spent.waiting,
        bytes=spent.bytes,
        is_too_large=spent.is_too_large,
        updates=tuple(updates),
        deletions=deletions,
        rekeyed=len(rekeyed),
        sightings=tuple(here.values()),
        is_gap=is_gap
        and not (rekeyed or collapsed)
        and document.format is not FeedFormat.PART,
    )


_Current = dict[int, tuple[Entry | None, Sighting]]
"""Entries by key; ``None`` for those that were not read because they are unchanged."""


def _withdrawn(document: ParsedFeed) -> dict[int, Deletion]:
    """Deletions by key, except of entries that the document holds in a newer state."""
    updated = {entry.key: entry.updated for entry in document.entries}
    withdrawn = {}
    for deletion in document.deletions:
        last = updated.get(deletion.key)
        if deletion.key not in updated or (
            last and deletion.at and deletion.at >= last
        ):
            withdrawn[fingerprint(deletion.key)] = deletion
    return withdrawn


def _sightings(
    document: ParsedFeed, known: SeenSet, day: int, withdrawn: dict[int, Deletion]
) -> _Current:
    """Entries by key, in the document's order; of two with one key the first counts.

    One that was not read again has its last sighting.
    """
    current: _Current = {}
    entries = iter(document.entries)
    keys = document.outline.keys if document.outline else (0,) * len(document.entries)
    for key in keys:
        if key:
            entry, before = None, known[key]
            flags = before.flags | PRESENT
            sighting = before._replace(day=day, changes=0, flags=flags)
        else:
            entry = next(entries)
            sighting = sight(entry, day)
        if sighting.key not in withdrawn:
            current.setdefault(sighting.key, (entry, sighting))
    return current


def _taken_over(
    document: ParsedFeed, known: SeenSet, here: Mapping[int, Sighting]
) -> set[int]:
    """Keys by which one entry was known, and which now are another entry's link.

    Both are in the document: several shared an id that is the link of one of them.
    """
    links = {
        here[key].link
        for each in document.shared_keys
        if (key := fingerprint(each.key)) in here
    }
    ids = {fingerprint(each.shared) for each in document.shared_keys} & here.keys()
    befores = ((id, known.get(id)) for id in ids)
    return {
        id
        for id, before in befores
        if before and before.link != here[id].link and before.link in links
    }


def _rekey(
    known: SeenSet,
    here: Mapping[int, Sighting],
    unknown: Mapping[int, Entry],
    shared: Mapping[int, SharedKey],
    *,
    is_reformatted: bool,
) -> dict[int, int]:
    """New keys of known entries, each with the former key, which is then forgotten."""
    if not unknown or not known:
        return {}
    sources = {key: entry.id_source for key, entry in unknown.items()}
    rekeyed = find_continued(known, here, shared, sources) if shared else {}
    if known.is_former:
        titles = {
            key: entry.title for key, entry in unknown.items() if key not in rekeyed
        }
        rekeyed |= find_reread(known, here, titles)
        keys = {key: unknown[key].key for key in titles if key not in rekeyed}
        rekeyed |= find_unescaped(known, here, keys)
    known.remove(rekeyed.values())
    left = {key: source for key, source in sources.items() if key not in rekeyed}
    others = find_rekeyed(known, here, left, is_reformatted=is_reformatted)
    known.remove(others.values())
    return rekeyed | others


def _merge(
    known: SeenSet,
    elsewhere: bytes,
    current: _Current,
    last_success: datetime,
    at: datetime,
) -> None:
    """Take over what another feed has seen, but not what came since the last poll."""
    since = {
        key
        for key, (entry, _) in current.items()
        if entry and _came_between(entry, last_success, at)
    }
    for key, sighting in SeenSet.unpack(elsewhere).items():
        if key not in since:
            known.setdefault(key, sighting)


def _came_between(entry: Entry, start: datetime, end: datetime) -> bool:
    date = entry.published or entry.updated
    return date is not None and start < date <= end


class _Spent:
    """How much of a quota the entries of a document use up, in its order."""

    def __init__(self, quota: EntryQuota | None) -> None:
        self._quota = quota
        self._entries = 0
        self.bytes = 0
        self.waiting = 0
        self.is_too_large = False

    def takes(self, entry: Entry, *, is_new: bool) -> bool:
        """Whether one more is within the quota; otherwise it waits."""
        if self._quota is None:
            return True
        is_too_large = self.bytes >= self._quota.bytes
        self.is_too_large |= is_too_large
        if is_too_large or (is_new and self._entries >= self._quota.entries):
            self.waiting += 1
            return False
        self._entries += is_new
        self.bytes += encoded_size(entry)
        return True


def _updates(
    known: SeenSet,
    current: _Current,
    at: datetime,
    reworded_since: datetime | None,
    spent: _Spent,
) -> list[Update]:
    """Renew the sightings of known entries; return those that have changed.

    An entry that was deleted and is back has changed.
    """
    changed = []
    for key, (entry, sighting) in current.items():
        before = known.get(key)
        if before is None:
            continue
        again = sighted_again(before, sighting)
        is_changed = before.is_deleted or again.content != sighting.content
        if entry is not None and is_changed and spent.takes(entry, is_new=False):
            is_same = reworded_since is not None and not (
                before.is_deleted or _is_edited(entry, reworded_since, at)
            )
            changed.append((entry, again, is_same))
            again = (
                again._replace(content=sighting.content)
                if is_same
                else again.changed(sighting.content)
            )
        known[key] = again
    is_rebuilt = len(changed) >= REBUILT_ENTRIES and 2 * len(changed) > len(current)
    updates = []
    for entry, sighting, is_same in changed:
        is_fresh = not is_rebuilt and _is_fresh(entry, at)
        is_logged = (is_fresh or sighting.changes < UPDATES_A_DAY) and not is_same
        updates.append(Update(entry=entry, is_fresh=is_fresh, is_logged=is_logged))
    return updates


def _is_edited(entry: Entry, since: datetime, at: datetime) -> bool:
    return entry.updated is not None and since < entry.updated <= at


def _is_fresh(entry: Entry, at: datetime) -> bool:
    return entry.updated is not None and abs(at - entry.updated) < FRESH_FOR


def _deletions(known: SeenSet, withdrawn: dict[int, Deletion]) -> tuple[Deletion, ...]:
    """Deletions of known entries that were not reported before."""
    deletions = []
    for key, deletion in withdrawn.items():
        before = known.get(key)
        if before is not None and not before.is_deleted:
            known[key] = before._replace(flags=DELETED)
            deletions.append(deletion)
    return tuple(deletions)


MOST_ENTRIES = 500
"""The most entries that one record names, and so one notification brings (as in
Superfeedr)."""


def has_news(news: EntryDiff) -> bool:
    """Whether readers of the document would find it changed."""
    return bool(news.new or news.updates)


def written_entries(news: EntryDiff) -> tuple[Entry, ...]:
    """Entries to store, including updates that are not logged."""
    return (*(update.entry for update in news.updates), *news.new)


def news_records(
    news: EntryDiff,
    status: Status,
    *,
    tells_unlisted: bool = True,
    is_unlisted: bool = False,
) -> tuple[RecordWrite, ...]:
    """Records of deletions, updates and new entries, in this order; no empty ones.

    Each names at most `MOST_ENTRIES`: an import of thousands is sent in parts. Unless
    ``tells_unlisted``, subscribers are not notified of unlisted entries, nor of any
    if the whole feed ``is_unlisted``.
    """
    updates, new = [each for each in news.updates if each.is_logged], news.new
    if not tells_unlisted:
        updates = [each for each in updates if not (is_unlisted or each.entry.unlisted)]
        new = tuple([each for each in new if not (is_unlisted or each.unlisted)])
    kinds = (
        (RecordKind.DELETED, [(each.key, True) for each in news.deletions]),
        (RecordKind.UPDATED, [(each.entry.key, each.is_fresh) for each in updates]),
        (
            RecordKind.BASELINE if news.is_baseline else RecordKind.ENTRIES,
            [(entry.key, True) for entry in new],
        ),
    )
    records = []
    for kind, entries in kinds:
        for first in range(0, len(entries), MOST_ENTRIES):
            part = tuple(entries[first : first + MOST_ENTRIES])
            records.append(RecordWrite(kind=kind, status=status, entries=part))
    return tuple(records)
