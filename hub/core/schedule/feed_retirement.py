"""Feeds that are gone: when they are no longer polled.

410 means "gone" and is believed once it is confirmed. 404 may be a mistake that
somebody corrects: it takes many in a row, over days, until the feed counts as dead.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from hub.core.fetched import Fetched
from hub.core.schedule.poll_period import PollingRules
from storage.records import FeedState, StoredFeed


class Absence(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive answers without a feed. ``gone``: 410; ``missing``: 404 and 410."""

    gone: int = 0
    missing: int = 0
    since: datetime | None = None


def absence_after(feed: StoredFeed, fetched: Fetched, rules: PollingRules) -> Absence:
    """The consecutive absences once this fetch has failed, too.

    An absence at the target of a believed redirect says nothing of the feed. A feed
    that was given up and is active again was brought back by somebody: counting starts
    anew.
    """
    before = feed.polling
    if fetched.status not in (404, 410) or before.fetch_url:
        return Absence()
    known = Absence(
        gone=before.gone_sightings,
        missing=before.missing_sightings,
        since=before.missing_since,
    )
    is_back = feed.state is FeedState.ACTIVE and _verdict(
        known, before.last_fetch, rules
    )
    if is_back:
        known = Absence()
    return Absence(
        gone=known.gone + 1 if fetched.status == 410 else 0,
        missing=known.missing + 1,
        since=known.since or fetched.at,
    )


def state_after_absence(
    state: FeedState, absence: Absence, at: datetime, rules: PollingRules
) -> FeedState | None:
    """GONE or DEAD if an active feed is given up now; None: its state stays."""
    return _verdict(absence, at, rules) if state is FeedState.ACTIVE else None


def _verdict(
    absence: Absence, at: datetime | None, rules: PollingRules
) -> FeedState | None:
    if absence.gone >= rules.gone_sightings:
        return FeedState.GONE
    if absence.since is None or at is None:
        return None
    is_long = at - absence.since >= timedelta(seconds=rules.dead_after)
    is_dead = is_long and absence.missing >= rules.dead_sightings
    return FeedState.DEAD if is_dead else None
