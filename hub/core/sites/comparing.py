"""What is news in a step of a site's reading, given what is known of these pages.

As in `hub.core.news.entry_diff`: a page that was never known is new, another content is
an update. What is said while the site is read for the first time is news to nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from hub.core.news.entry_diff import (
    FRESH_FOR,
    REBUILT_ENTRIES,
    UPDATES_A_DAY,
    News,
    Update,
)
from hub.core.news.seen_set import day_of
from hub.core.sites.steps import ReadPage, Save
from protocols.identity import content_hash, fingerprint
from protocols.model import Deletion, Entry
from protocols.quick import changed
from storage.records import StoredSitePage


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """``baseline`` are new entries that nobody is told of; ``pages`` are to be put.

    ``growth`` is by how many pages there are more now.
    """

    news: News
    baseline: tuple[Entry, ...]
    pages: tuple[StoredSitePage, ...]
    growth: int


def compare(
    step: Save,
    known: Mapping[str, StoredSitePage],
    *,
    at: datetime,
    is_read: bool,
    is_news: Callable[[Entry], bool] = lambda entry: False,
) -> Compared:
    """``known`` has the pages of the step that are known. While the site was not
    ``is_read`` whole, no new entry is told of unless it ``is_news`` all the same, no
    update is, and deletions wait for the next reading."""
    read = {page.entry.key: page for page in reversed(step.pages)}
    day = day_of(at)
    compared = [
        _compare(page, known.get(key), step.walk, day)
        for key, page in reversed(read.items())
    ]
    new = [each.entry for each in compared if each.is_new]
    deleted = _deleted(step, known, read) if is_read else ()
    gone = tuple(changed(known[each.key], is_deleted=True) for each in deleted)
    told = tuple(entry for entry in new if is_read or is_news(entry))
    told_keys = {entry.key for entry in told}
    news = News(
        seen=b"",
        is_baseline=False,
        new=told,
        updates=_updates(compared, at, is_read=is_read),
        deletions=deleted,
    )
    return Compared(
        news=news,
        baseline=tuple(entry for entry in new if entry.key not in told_keys),
        pages=(*(each.page for each in compared if each.is_written), *gone),
        growth=len(new) + sum(each.is_back for each in compared) - len(gone),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    entry: Entry
    page: StoredSitePage
    is_new: bool = False
    is_back: bool = False  # after it was deleted
    is_update: bool = False
    is_written: bool = True
    changes: int = 0  # on this day, before this one


def _compare(
    read: ReadPage, before: StoredSitePage | None, walk: int, day: int
) -> _Comparison:
    entry = read.entry
    page = StoredSitePage(
        key=entry.key,
        reference=read.reference,
        content=read.content or content_of(entry),
        stamp=read.stamp,
        walk=walk,
        day=day,
    )
    if before is None:
        return _Comparison(entry=entry, page=page, is_new=True)
    if before.content == page.content and not before.is_deleted:
        same = changed(page, day=before.day, changes=before.changes)
        return _Comparison(entry=entry, page=same, is_written=same != before)
    changes = before.changes if before.day == day else 0
    return _Comparison(
        entry=entry,
        page=changed(page, changes=changes + 1),
        is_back=before.is_deleted,
        is_update=True,
        changes=changes,
    )


def content_of(entry: Entry) -> int:
    """What a page's content is compared by."""
    return fingerprint(content_hash(entry)) >> 1


def _updates(
    compared: list[_Comparison], at: datetime, *, is_read: bool
) -> tuple[Update, ...]:
    updates = [each for each in compared if each.is_update]
    is_rebuilt = len(updates) >= REBUILT_ENTRIES and 2 * len(updates) > len(compared)
    return tuple(
        _update(each, at, is_read=is_read, is_rebuilt=is_rebuilt) for each in updates
    )


def _update(
    compared: _Comparison, at: datetime, *, is_read: bool, is_rebuilt: bool
) -> Update:
    date = compared.entry.updated
    is_fresh = date is not None and abs(at - date) < FRESH_FOR and not is_rebuilt
    is_logged = is_read and (is_fresh or compared.changes < UPDATES_A_DAY)
    return Update(entry=compared.entry, is_fresh=is_fresh, is_logged=is_logged)


def _deleted(
    step: Save, known: Mapping[str, StoredSitePage], read: Mapping[str, ReadPage]
) -> tuple[Deletion, ...]:
    """Each once; present beats gone."""
    wanted = {each.key: each for each in step.deletions if each.key not in read}
    return tuple(
        deletion
        for key, deletion in wanted.items()
        if key in known and not known[key].is_deleted
    )
