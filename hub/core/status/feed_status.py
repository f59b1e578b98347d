"""The status that every record carries, with its line for people.

The line is in Superfeedr's terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from hub.core.fetched import Fetched, Occasion
from protocols.model import Status
from storage.records import FeedState, FeedStatistics, Polling, StoredFeed

TRACK_PERIOD = 900
"""The period in seconds that Superfeedr reported for every track feed."""


def success_line(
    fetched: Fetched,
    occasion: Occasion,
    period: float,
    new: int,
    total: int,
    remarks: Sequence[str] = (),
) -> str:
    """``Fetched (ring) 200 43200 and parsed 0/20 entries``, ``Fetched (ring) 304``.

    Remarks on the document's entries follow, if there are any.
    """
    if fetched.status == 304:
        return f"Fetched ({occasion}) 304"
    line = (
        f"Fetched ({occasion}) {fetched.status} {period:.0f}"
        f" and parsed {new}/{total} entries"
    )
    return "; ".join((line, *remarks))


def failure_line(
    fetched: Fetched, occasion: Occasion, period: float, reason: str
) -> str:
    """``Fetched (ring) 404 3600``, ``Parser Error the document is empty``.

    A reason follows if the status does not tell all of it.
    """
    if not fetched.error:
        return f"Parser Error {reason}"
    line = f"Fetched ({occasion}) {fetched.status} {period:.0f}"
    return line if fetched.status >= 400 else f"{line}: {reason}"


def status_of(
    polling: Polling,
    next_fetch: datetime,
    title: str,
    statistics: FeedStatistics | None = None,
) -> Status:
    """The status after a fetch, as it is logged: docs/reference/status.md."""
    return Status(
        code=polling.code,
        http=polling.message,
        next_fetch=next_fetch,
        period=round(polling.period),
        last_fetch=polling.last_fetch,
        last_parse=polling.last_parse,
        last_maintenance_at=polling.last_maintenance_at,
        entries_count_since_last_maintenance=polling.entries_since_maintenance,
        velocity=polling.velocity,
        popularity=statistics.popularity if statistics else None,
        porn_rank=statistics.porn_rank if statistics else None,
        bozo_rank=polling.bozo_rank,
        generated_ids=polling.generated_ids,
        title=title,
    )


def shown_status(feed: StoredFeed, statistics: FeedStatistics | None) -> Status:
    """The status as of the last fetch; ``statistics`` None: it was not maintained yet.

    Clients break if a time is missing: for what has not happened yet it is the time
    when the feed was added.
    """
    if feed.state is FeedState.TRACK:
        return track_status(feed.created_at)
    status = status_of(feed.polling, feed.next_fetch, feed.title, statistics)
    return replace(
        status,
        last_fetch=status.last_fetch or feed.created_at,
        last_parse=status.last_parse or feed.created_at,
        last_maintenance_at=status.last_maintenance_at or feed.created_at,
    )


def track_status(at: datetime) -> Status:
    """The status of a track query that found something then, in Superfeedr's words.

    It has no schedule, but some clients want all times.
    """
    return Status(
        code=200,
        http="Track feed",
        period=TRACK_PERIOD,
        next_fetch=at + timedelta(seconds=TRACK_PERIOD),
        last_fetch=at,
        last_parse=at,
        last_maintenance_at=at,
    )
