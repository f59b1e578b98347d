"""How much of a site is read in one visit, and what is left of that."""

from __future__ import annotations

from dataclasses import dataclass, replace

from protocols.model import FeedFormat

MEBIBYTE = 1 << 20
COLLECTION_BYTES = 1 << 30
COLLECTION_SECONDS = 600.0
"""The most seconds for downloading one collection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteBounds:
    """Bounds of one visit; what exceeds them waits.

    ``entries_of_day`` is the bound of a day. A site that reports changes is walked and
    reread as well: ``reread_every`` is for sites where changes may not show in a list.
    """

    requests: int = 100
    seconds: float = 90.0
    bytes: int = 64 * MEBIBYTE
    entries: int = 5_000
    entries_of_day: int = 100_000
    walk_every: float = 21_600.0  # seconds between two walks over all that is listed
    reread_every: float = 86_400.0  # seconds between two readings of every page

    def of(self, format: str) -> SiteBounds:
        """The bounds for a format.

        Pages that come in files are read up to a day's bound: stopping within a file
        would mean fetching it again.
        """
        if format != FeedFormat.SCP:
            return self
        return replace(
            self,
            seconds=max(self.seconds, COLLECTION_SECONDS),
            bytes=max(self.bytes, COLLECTION_BYTES),
            entries=max(self.entries, self.entries_of_day),
        )


@dataclass(slots=True)
class VisitUsage:
    """What a visit has used up. ``entries`` were new or changed."""

    bounds: SiteBounds
    until: float  # monotonic seconds
    entries_of_day: int = 0
    requests: int = 0
    bytes: int = 0
    entries: int = 0

    def may_ask(self, now: float) -> bool:
        """Whether another request is within the bounds."""
        bounds = self.bounds
        return (
            self.requests < bounds.requests
            and self.bytes < bounds.bytes
            and now < self.until
            and self.may_tell()
        )

    @property
    def has_day_left(self) -> bool:
        return self.entries_of_day < self.bounds.entries_of_day

    def may_tell(self) -> bool:
        """Whether another step may be saved."""
        return self.entries < self.bounds.entries and self.has_day_left
