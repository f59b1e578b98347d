"""What the status block says of the entries that come with it."""

from __future__ import annotations

from protocols.model import IdSource, Notification


def has_generated_ids(notification: Notification) -> bool:
    """Whether any id shown was made up, now or, by the feed's status, before."""
    return notification.status.generated_ids or any(
        entry.id_source is not IdSource.FEED for entry in notification.entries or ()
    )
