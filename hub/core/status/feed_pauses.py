"""When a feed was paused: from whom paused it and who resumed it, and from its
polls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from storage.records import (
    BulkPlan,
    FeedFilter,
    FeedState,
    PlanAction,
    Poll,
    StoredFeed,
)

UNDER_WAY: Final = timedelta(minutes=2)
"""How long a poll may still take that was under way when its feed was paused."""

NOTED_WITHIN: Final = timedelta(seconds=5)
"""How much later than a poll it may be noted that its feed was resumed before."""


class PauseChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Somebody paused a feed, or resumed it. ``is_sure`` False: a plan did that to
    feeds, this one perhaps among them."""

    at: datetime
    is_pause: bool
    by: str
    is_sure: bool = True


class FeedPause(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A time in which a feed was not polled because somebody wanted that.

    ``resumed_at`` None: it is paused. ``paused_by`` and ``resumed_by`` say who did it
    and by what means, "" if that is not known.
    """

    paused_at: datetime
    paused_by: str
    resumed_at: datetime | None
    resumed_by: str

    def overlaps(self, since: datetime | None, until: datetime | None) -> bool:
        is_over_before = (
            since is not None
            and self.resumed_at is not None
            and self.resumed_at <= since
        )
        return not is_over_before and (until is None or self.paused_at < until)


def change_of_plan(plan: BulkPlan, feed: StoredFeed, by: str) -> PauseChange | None:
    """What a plan may have done to a feed, ``by`` whom; None: nothing of this kind."""
    wanted = plan.wanted
    if (
        plan.confirmed_at is None
        or plan.action not in (PlanAction.PAUSE, PlanAction.RESUME)
        or not isinstance(wanted, FeedFilter)
        or (wanted.ids and feed.id not in wanted.ids)
        or feed.created_at > plan.created_at
    ):
        return None
    return PauseChange(
        at=plan.confirmed_at,
        is_pause=plan.action is PlanAction.PAUSE,
        by=by,
        is_sure=bool(wanted.ids),
    )


def pauses_of(
    feed: StoredFeed, changes: Iterable[PauseChange], polled: Sequence[datetime]
) -> list[FeedPause]:
    """The pauses of a feed, the earliest first.

    ``polled``: when it was polled by its schedule, in any order: it was not paused
    then, so that a pause ends before, and one that only a plan may have made was none.
    """
    return list(_pauses(feed, sorted(changes, key=lambda it: it.at), sorted(polled)))


def first_polls(
    pauses: Iterable[FeedPause], polls: Iterable[Poll]
) -> dict[datetime, FeedPause]:
    """The pauses that are over, by the times of the polls that came after them: of each
    the first by the schedule, which may see what was published in the meantime."""
    times = sorted(each.at for each in polls if each.reason.is_by_schedule)
    found = {}
    for pause in pauses:
        if pause.resumed_at is not None:
            begin = max(pause.paused_at, pause.resumed_at - NOTED_WITHIN)
            first = next((each for each in times if each > begin), None)
            if first is not None:
                found[first] = pause
    return found


def _pauses(
    feed: StoredFeed, changes: Sequence[PauseChange], polled: Sequence[datetime]
) -> Iterator[FeedPause]:
    paused: PauseChange | None = None
    for each in changes:
        if paused is None or (each.is_pause and not paused.is_sure):
            paused = each if each.is_pause else None
        elif not each.is_pause:
            first = _first_after(paused.at, polled)
            if first is None or first >= each.at:
                yield _pause(paused, each.at, each.by)
            elif paused.is_sure:
                yield _pause(paused, first, "")
            paused = None
    if feed.state is FeedState.PAUSED:
        yield FeedPause(
            paused_at=_turned(feed),
            paused_by=paused.by if paused else "",
            resumed_at=None,
            resumed_by="",
        )
    elif paused is not None and paused.is_sure:
        yield _pause(paused, _first_after(paused.at, polled) or _turned(feed), "")


def _first_after(at: datetime, polled: Sequence[datetime]) -> datetime | None:
    return next((each for each in polled if each > at + UNDER_WAY), None)


def _pause(paused: PauseChange, resumed_at: datetime, by: str) -> FeedPause:
    return FeedPause(
        paused_at=paused.at, paused_by=paused.by, resumed_at=resumed_at, resumed_by=by
    )


def _turned(feed: StoredFeed) -> datetime:
    """When the state of a feed last changed."""
    return feed.turned_at or feed.created_at
