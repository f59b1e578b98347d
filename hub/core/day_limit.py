"""How many new entries of one feed are told in a day, UTC, and how many bytes are kept.

A feed whose ids and all else change with every poll has no end, and one whose entries
are a document long each fills the disk. What is more than a day has room for waits: it
is not known yet, or as it was, and told the next day if it is still there.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from hub.core.cadence import PollingRules
from hub.core.detect import News, Room
from hub.core.seen import day_of
from storage.records import Polling


class ToldOfDay(TypedDict):
    """Members of `storage.records.Polling`."""

    told_on: int
    told_of_day: int
    bytes_of_day: int
    waiting: int


def room_of_day(before: Polling, rules: PollingRules, at: datetime) -> Room:
    """What is left of the day: the last entry that begins within it is whole."""
    told, kept = _used(before, at)
    return Room(
        entries=max(0, rules.entries_of_day - told),
        bytes=max(0, rules.bytes_of_day - kept),
    )


def told_of_day(before: Polling, news: News, at: datetime) -> ToldOfDay:
    """With a document's news. The first one's are told to nobody."""
    told, kept = _used(before, at)
    return ToldOfDay(
        told_on=day_of(at),
        told_of_day=told + (0 if news.is_baseline else len(news.new)),
        bytes_of_day=kept + news.bytes,
        waiting=news.waiting,
    )


def _used(before: Polling, at: datetime) -> tuple[int, int]:
    """New entries and bytes that the day has had."""
    if before.told_on != day_of(at):
        return 0, 0
    return before.told_of_day, before.bytes_of_day
