"""How many new entries of one feed are told in a day, UTC.

A feed whose ids and all else change with every poll has no end. What is more than a day
has room for waits: it is not known yet, and told the next day if it is still there.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from hub.core.cadence import PollingRules
from hub.core.detect import News
from hub.core.seen import day_of
from storage.records import Polling


class ToldOfDay(TypedDict):
    """Members of `storage.records.Polling`."""

    told_on: int
    told_of_day: int
    waiting: int


def room_of_day(before: Polling, rules: PollingRules, at: datetime) -> int:
    """New entries that may still be told."""
    return max(0, rules.entries_of_day - _told(before, at))


def told_of_day(before: Polling, news: News, at: datetime) -> ToldOfDay:
    """With a document's news. The first one's are told to nobody."""
    new = 0 if news.is_baseline else len(news.new)
    return ToldOfDay(
        told_on=day_of(at), told_of_day=_told(before, at) + new, waiting=news.waiting
    )


def _told(before: Polling, at: datetime) -> int:
    return before.told_of_day if before.told_on == day_of(at) else 0
