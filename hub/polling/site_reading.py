"""One visit to a site under way: how far it has come, and what it has left to spend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hub.core.decision import Decision
from hub.core.seen import day_of
from hub.core.sites.bounds import Spent
from hub.core.sites.state import SiteState
from hub.core.sites.steps import Ask, Download
from hub.polling.fetcher import FetchRequest
from hub.polling.spool import Spool
from protocols.model import Entry
from protocols.quick import changed
from storage.records import (
    FeedId,
    FetchCommit,
    FetchTarget,
    RecordKind,
    Validators,
)


@dataclass(slots=True)
class SiteReading:
    """``decision`` starts from what was committed last."""

    decision: Decision
    state: SiteState
    spent: Spent
    request: FetchRequest  # as the front document was asked for
    is_news: Callable[[Entry], bool]
    new: int = 0
    spool: Spool | None = None  # the last collection

    @property
    def feed_id(self) -> FeedId:
        return self.decision.target.feed.id

    def request_for(self, want: Ask | Download) -> FetchRequest:
        """Credentials go to the feed's own origin only."""
        validators = None
        if want.etag or want.last_modified:
            validators = Validators(
                url=want.url, etag=want.etag, last_modified=want.last_modified
            )
        return changed(self.request, url=want.url, validators=validators)

    def count_step(self, commit: FetchCommit, state: SiteState) -> None:
        """Go on from a step that was committed."""
        told = state.entries_of_day - self.spent.entries_of_day
        self.spent.entries += max(0, told)
        self.spent.entries_of_day = state.entries_of_day
        self.new += _told(commit)
        self.state = state
        target = _after(self.decision.target, commit)
        self.decision = changed(self.decision, target=target)


def entries_of_day(state: SiteState, decision: Decision) -> int:
    """That were told of already, the day it is."""
    is_today = state.day == day_of(decision.fetched.at)
    return state.entries_of_day if is_today else 0


def _told(commit: FetchCommit) -> int:
    records = (each for each in commit.records if each.kind is RecordKind.ENTRIES)
    return sum(len(each.entries) for each in records)


def _after(target: FetchTarget, commit: FetchCommit) -> FetchTarget:
    """The feed as a step has left it."""
    feed = changed(
        target.feed,
        polling=commit.polling,
        next_fetch=commit.next_fetch,
        format=commit.format or target.feed.format,
        title=target.feed.title if commit.title is None else commit.title,
    )
    return replace(target, feed=feed)
