"""News as it is written: states of entries, and the records that tell of them."""

from __future__ import annotations

from collections.abc import Callable

from hub.core.detect import News
from protocols.model import Entry, Status
from storage.records import RecordKind, RecordWrite

MOST_ENTRIES = 500
"""That one record names, and so one notification brings (as Superfeedr's do)."""


def has_news(news: News) -> bool:
    """Whether readers of the document would find it changed."""
    return bool(news.new or news.updates)


def written_entries(news: News) -> tuple[Entry, ...]:
    """States to store; an update that is not logged is stored all the same."""
    return (*(update.entry for update in news.updates), *news.new)


def news_records(
    news: News, status: Status, is_told: Callable[[Entry], bool] = lambda entry: True
) -> tuple[RecordWrite, ...]:
    """Deleted, updated, entries, in this order; none that would name no entry.

    Each names at most `MOST_ENTRIES`: an import of thousands is sent in parts.
    """
    news_kind = RecordKind.BASELINE if news.is_baseline else RecordKind.ENTRIES
    told = (
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
        for kind, entries in told
        for first in range(0, len(entries), MOST_ENTRIES)
    )
