"""When entries and feeds say they changed."""

from __future__ import annotations

from datetime import UTC, datetime

from protocols.model import Entry, Notification

UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)


def updated_of(entry: Entry) -> datetime | None:
    """An entry that never changed was last changed when it was published."""
    return entry.updated or entry.published


def document_date(notification: Notification) -> datetime:
    """The date of the whole, for where Atom requires one and the feed has none."""
    if notification.feed.updated:
        return notification.feed.updated
    dates = [at for each in notification.entries or () if (at := updated_of(each))]
    status = notification.status
    return max(dates, default=None) or status.last_parse or status.last_fetch or UNKNOWN
