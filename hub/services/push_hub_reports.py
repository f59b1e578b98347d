"""Reports on other people's hubs: what each has done for the feeds that name it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hub.core.push.used_hubs import UsedHubs
from storage.contract import PushStore
from storage.records import PushCount, PushHub


@dataclass(frozen=True, slots=True, kw_only=True)
class PushHubReport:
    """A hub of other people, and counts of what it did, by `PushCount`.

    ``is_used`` False: feeds are not subscribed there, as it is set.
    """

    hub: str
    is_used: bool
    counts: Mapping[str, int]

    @property
    def first_share(self) -> float | None:
        """The share of the feeds' new entries that the hub brought before a poll found
        them, from 0 to 1; None if there were none."""
        brought = self.counts[PushCount.BROUGHT]
        news = brought + self.counts[PushCount.MISSED]
        return brought / news if news else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PushHubList:
    """The ``hubs`` with the most subscriptions, of which there may be more. ``sums``:
    those over all hubs, whose name is ""; None if there is no hub. ``is_any_used``
    False: feeds are subscribed to none of them."""

    sums: PushHubReport | None
    hubs: tuple[PushHubReport, ...]
    has_more: bool
    is_any_used: bool


class PushHubReportService:
    def __init__(self, pushes: PushStore, used: UsedHubs) -> None:
        self._pushes = pushes
        self._used = used

    async def most_subscribed(self, limit: int) -> PushHubList:
        """So many hubs, by name: those at which the most feeds are subscribed."""
        found = await self._pushes.hubs(limit + 1)
        reports = [self._report(each) for each in found]
        hubs = reports[1:]  # the sums come first, then hubs by name
        if has_more := len(hubs) > limit:
            hubs.remove(min(hubs, key=lambda it: it.counts[PushCount.CONFIRMED]))
        return PushHubList(
            sums=reports[0] if reports else None,
            hubs=tuple(hubs),
            has_more=has_more,
            is_any_used=self._used.is_on,
        )

    def _report(self, found: PushHub) -> PushHubReport:
        given = {what.value: count for what, count in found.counts}
        return PushHubReport(
            hub=found.hub,
            is_used=self._used.include(found.hub),
            counts={each.value: 0 for each in PushCount} | given,
        )
