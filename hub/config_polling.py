"""The settings of polling, and of sites that are read by many requests."""

from __future__ import annotations

from dataclasses import dataclass

from hub.config_fields import setting
from hub.config_readers import DAY, one_of, seconds, whole
from hub.core.cadence import PollingRules
from hub.core.sites.bounds import SiteBounds

_WEEK = 7 * DAY
_RULES = PollingRules()
_SITES = SiteBounds()


def _rule(default: float, low: float, high: float, help: str) -> float:
    return setting(default, seconds(low, high), help, shown=f"{default:g}")


@dataclass(frozen=True, kw_only=True)
class PollingSettings:
    """Their defaults are those of `hub.core.cadence` and `hub.core.sites.bounds`."""

    min_period: float = _rule(
        _RULES.min_period, 1, _WEEK, "seconds between two polls of a feed, at least"
    )
    max_period: float = _rule(
        _RULES.max_period,
        1,
        4 * _WEEK,
        "seconds between two polls, at most; wins over every floor",
    )
    default_floor: float = _rule(
        _RULES.default_floor,
        1,
        _WEEK,
        "the floor of the period, in seconds, of feeds that earned no lower one",
    )
    earned_floor: float = _rule(
        _RULES.earned_floor,
        1,
        _WEEK,
        "the floor, in seconds, of feeds that answer 304 and post hourly or ask for it",
    )
    patience: float = _rule(
        _RULES.patience,
        1,
        _WEEK,
        "entry-seconds of waiting that a poll is worth to begin with",
    )
    poll_budget: float = setting(
        0.0,
        seconds(0, 10_000),
        "polls a second, for all feeds; 0: 24 a day for each feed, on average",
        shown="0",
    )
    upstream: str = setting(
        "auto",
        one_of("auto", "on", "off"),
        "whether feeds are subscribed to at the hubs they name, which then push to this"
        " one; auto: if the public URL is one that they can reach",
    )
    backup_period: float = _rule(
        _RULES.backup_period,
        1,
        4 * _WEEK,
        "seconds between two polls, at least, of feeds whose hub has proved that it"
        " pushes what is new",
    )
    dead_after: float = _rule(
        _RULES.dead_after,
        1,
        52 * _WEEK,
        "seconds of nothing but 404 after which a feed is dead: no longer polled",
    )
    entries_of_day: int = setting(
        _RULES.entries_of_day,
        whole(1, 10_000_000),
        "new entries of one feed that are told in a day, UTC; what is more waits",
    )
    bytes_of_day: int = setting(
        _RULES.bytes_of_day,
        whole(1, 100 * 1024**3),
        "bytes of new and changed entries of one feed in a day, UTC, as JSON; the one"
        " that passes them is taken whole, what is more waits",
    )
    poll_concurrency: int = setting(
        64, whole(1, 1_000), "feeds fetched at the same time"
    )
    site_requests: int = setting(
        _SITES.requests,
        whole(50, 100_000),
        "requests of one visit to a site that is read by many; the rest comes after",
    )
    site_seconds: float = setting(
        _SITES.seconds,
        seconds(1, 3_600),
        "seconds of one visit to such a site",
        shown=f"{_SITES.seconds:g}",
    )
    site_bytes: int = setting(
        _SITES.bytes,
        whole(1, 100 * 1024**3),
        "bytes that one visit to such a site may read",
    )
    site_entries: int = setting(
        _SITES.entries,
        whole(1, 10_000_000),
        "new and changed entries of one visit to such a site",
    )
    site_entries_of_day: int = setting(
        _SITES.entries_of_day,
        whole(1, 10_000_000),
        "new and changed entries of such a site in a day, UTC",
    )
    site_walk_seconds: float = setting(
        _SITES.walk_every,
        seconds(1, 4 * _WEEK),
        "seconds between two looks at all that a site lists, though it reports changes",
        shown=f"{_SITES.walk_every:g}",
    )
    site_reread_seconds: float = setting(
        _SITES.reread_every,
        seconds(1, 52 * _WEEK),
        "seconds between two readings of every page, where changes may not be reported",
        shown=f"{_SITES.reread_every:g}",
    )

    @property
    def site_bounds(self) -> SiteBounds:
        return SiteBounds(
            requests=self.site_requests,
            seconds=self.site_seconds,
            bytes=self.site_bytes,
            entries=self.site_entries,
            entries_of_day=self.site_entries_of_day,
            walk_every=self.site_walk_seconds,
            reread_every=self.site_reread_seconds,
        )
