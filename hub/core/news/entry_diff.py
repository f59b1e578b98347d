"""What is new in a document, given everything its feed has ever shown.

Exactly the entries with an unknown key are new; position, date and a return do not
matter. Changed content is an update. Only an explicit deletion by the publisher is a
deletion. The records about these name at most `MOST_ENTRIES` each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
    withdrawn = _withdrawn(document)
    current = _sightings(_in_order(document, known, day_of(at)), withdrawn)
    if elsewhere:
        _merge(known, elsewhere, current, last_success or at, at)
    # entries have not vanished if the document is empty
    is_successor = bool(current) and not is_addition
    if is_successor:
        known.close_document(day_of(last_success or at))
    here = {key: sighting for key, (_, sighting) in current.items()}
    taken_over = _taken_over(document, known, here)
    unknown = {
        key: entry
        for key, (entry, _) in current.items()
        if entry is not None and (known.get(key) is None or key in taken_over)
    }
    is_gap = is_successor and len(known) > 0 and len(current) == len(unknown)
    shared = _shared(document, known, unknown)
    rekeyed = _rekey(known, here, unknown, shared, is_reformatted=is_reformatted)
    collapsed = _left_out_before(known, unknown, shared, last_success or at, at)
    collapsed = {key: each for key, each in collapsed.items() if key not in rekeyed}
    reworded_since = (last_success or at) if is_reformatted else None
    spent = _Spent(quota if seen else None)
    new = [key for key in unknown if key not in rekeyed and key not in collapsed]
    waiting = {key for key in new if not spent.takes(unknown[key], is_new=True)}
    updates = _updates(known, current, at, reworded_since, spent)
    updates += tuple(_update_in_silence(entry) for entry in collapsed.values())
    for key in unknown:
        if key not in waiting:
            known.put(current[key][1])
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
        updates=updates,
        deletions=deletions,
        rekeyed=len(rekeyed),
        sightings=tuple(sighting for _, sighting in current.values()),
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


def _in_order(
    document: ParsedFeed, known: SeenSet, day: int
) -> Iterator[tuple[Entry | None, Sighting]]:
    """The document's entries; one that was not read again has its last sighting."""
    entries = iter(document.entries)
    for key in document.outline.keys if document.outline else ():
        if key:
            before = known[key]
            flags = before.flags | PRESENT
            yield None, before._replace(day=day, changes=0, flags=flags)
        else:
            entry = next(entries)
            yield entry, sight(entry, day)
    for entry in entries:
        yield entry, sight(entry, day)


def _sightings(
    entries: Iterable[tuple[Entry | None, Sighting]], withdrawn: dict[int, Deletion]
) -> _Current:
    """Entries by key, in the document's order; of two with one key the first counts."""
    current: _Current = {}
    for entry, sighting in entries:
        if sighting.key not in withdrawn:
            current.setdefault(sighting.key, (entry, sighting))
    return current


def _taken_over(
    document: ParsedFeed, known: SeenSet, here: Mapping[int, Sighting]
) -> set[int]:
    """Keys by which one entry was known, and which now are another entry's link.

    Both are in the document: several shared an id that is the link of one of them.
    """
    if not document.shared_keys:
        return set()
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


def _shared(
    document: ParsedFeed, known: SeenSet, unknown: Mapping[int, Entry]
) -> dict[int, SharedKey]:
    """For keys of unknown entries: what they share, if an entry was known by that."""
    return {
        key: shared
        for shared in reversed(document.shared_keys)
        if (key := fingerprint(shared.key)) in unknown
        and known.get(fingerprint(shared.shared)) is not None
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


def _left_out_before(
    known: SeenSet,
    unknown: Mapping[int, Entry],
    shared: Mapping[int, SharedKey],
    since: datetime,
    at: datetime,
) -> dict[int, Entry]:
    """Entries that a former version left out: it took entries with one id for one.

    When they are read at last they are stored, but nobody is notified.
    """
    if not known.is_former:
        return {}
    return {
        key: unknown[key]
        for key, each in shared.items()
        if each.source is not IdSource.LINK
        and not _came_between(unknown[key], since, at)
    }


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
    for sighting in SeenSet.unpack(elsewhere):
        if sighting.key not in since:
            known.put(known.get(sighting.key) or sighting)


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
) -> tuple[Update, ...]:
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
        known.put(again)
    is_rebuilt = len(changed) >= REBUILT_ENTRIES and 2 * len(changed) > len(current)
    return tuple(
        _update(entry, sighting, not is_rebuilt and _is_fresh(entry, at), is_same)
        for entry, sighting, is_same in changed
    )


def _update(entry: Entry, sighting: Sighting, is_fresh: bool, is_same: bool) -> Update:
    is_logged = (is_fresh or sighting.changes < UPDATES_A_DAY) and not is_same
    return Update(entry=entry, is_fresh=is_fresh, is_logged=is_logged)


def _update_in_silence(entry: Entry) -> Update:
    return Update(entry=entry, is_fresh=False, is_logged=False)


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
            known.put(before._replace(flags=DELETED))
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
    is_told: Callable[[Entry], bool] = lambda entry: True,
) -> tuple[RecordWrite, ...]:
    """Records of deletions, updates and new entries, in this order; no empty ones.

    Each names at most `MOST_ENTRIES`: an import of thousands is sent in parts.
    """
    news_kind = RecordKind.BASELINE if news.is_baseline else RecordKind.ENTRIES
    kinds = (
        (RecordKind.DELETED, tuple((each.key, True) for each in news.deletions)),
        (
            RecordKind.UPDATED,
            tuple(
                (update.entry.key, update.is_fresh)
                for update in news.updates
                if update.is_logged and is_told(update.entry)
            ),
        ),
        (
            news_kind,
            tuple((entry.key, True) for entry in news.new if is_told(entry)),
        ),
    )
    return tuple(
        RecordWrite(
            kind=kind, status=status, entries=entries[first : first + MOST_ENTRIES]
        )
        for kind, entries in kinds
        for first in range(0, len(entries), MOST_ENTRIES)
    )
