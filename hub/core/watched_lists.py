"""Watched lists of feeds elsewhere: what has changed, and when to read them again.

A feed is taken to have left only if a list that was read as a whole lacks it. A list
without any feed is taken for broken; so is one that has lost more than half of its
feeds, until the next reading says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hub.core.fetched import Fetched
from hub.core.schedule.next_request import fresh_until, retry_after
from hub.core.schedule.poll_period import JITTER, PollingRules, backoff
from protocols.opml import ListedFeed
from protocols.urls import resource_url
from storage.records import Polling, WatchedFate, WatchedFeed

_RULES: Final = PollingRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListChanges:
    """``added``: feeds to add, including those whose adding was refused or interrupted;
    ``moved``: feeds as they were, with their new category; ``left``: feeds no longer on
    the list. ``doubt``: why none is believed to have left, or ""."""

    added: tuple[ListedFeed, ...] = ()
    moved: tuple[tuple[WatchedFeed, str], ...] = ()
    left: tuple[WatchedFeed, ...] = ()
    doubt: str = ""


def changes_of(
    known: Sequence[WatchedFeed],
    listed: Iterable[ListedFeed],
    *,
    is_whole: bool,
    is_confirmed: bool,
) -> ListChanges:
    """What to do about a list that was read, ``is_whole``: without any gap.

    ``is_confirmed``: the previous reading had lost more than half of it, too.
    """
    before = {resource_url(each.url): each for each in known}
    now = {resource_url(each.url): each for each in listed}
    left = tuple(feed for key, feed in before.items() if key not in now and is_whole)
    doubt = ""
    if not is_confirmed and len(left) > len(before) / 2:
        doubt = f"{len(left):,} of its {len(before):,} feeds are missing"
    return ListChanges(
        added=tuple(feed for key, feed in now.items() if _is_new(before.get(key))),
        moved=tuple(
            (feed, now[key].category)
            for key, feed in before.items()
            if key in now and not _is_new(feed) and now[key].category != feed.category
        ),
        left=() if doubt else left,
        doubt=doubt,
    )


def _is_new(known: WatchedFeed | None) -> bool:
    return known is None or known.fate in (WatchedFate.PENDING, WatchedFate.REFUSED)


def next_reading(
    fetched: Fetched, failures: int, every: float, jitter: float
) -> datetime:
    """When to read a list again: after ``every`` seconds, less often while it fails,
    and not before the time that its server names. ``jitter`` is -1 to 1."""
    wait = every
    if failures:
        wait = max(every, backoff(fetched.status, failures, every).longest)
    due = fetched.at + timedelta(seconds=wait * (1 + JITTER * (1 + jitter) / 2))
    for until, longest in (
        (retry_after(fetched), _RULES.longest_retry_after),
        (fresh_until(Polling(), fetched), _RULES.longest_freshness),
    ):
        if until is not None:
            due = max(due, min(until, fetched.at + timedelta(seconds=longest)))
    return due
