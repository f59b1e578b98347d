"""From a step of a site's reading, and from its end, to what is committed.

Until a visit has ended nobody knows whether it goes well: its steps change entries and
what is known of pages, and leave the feed's trouble, if it has any, as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from hub.core.fetched import Fetched
from hub.core.news.bodies import body_hash
from hub.core.news.decision import Decision
from hub.core.news.entry_diff import News, news_records, written_entries
from hub.core.news.feed_quality import LONGEST_PROBLEM, MOST_PROBLEMS
from hub.core.news.fetch_commit import after_failure, quiet_commit, succeeded
from hub.core.news.seen_set import day_of
from hub.core.schedule.posting_profile import count_posts, with_posts
from hub.core.sites.comparing import Compared, compare
from hub.core.sites.state import SiteState, pack_state
from hub.core.sites.steps import Ended, Save
from hub.core.status.feed_status import success_line
from protocols.model import Entry
from protocols.quick import changed
from storage.records import FetchCommit, Polling, Posting, SiteWrite, StoredSitePage

SOON = timedelta(seconds=10)
"""After this a reading goes on that was interrupted, or has used up one visit."""


def step_commit(
    decision: Decision,
    step: Save,
    known: Mapping[str, StoredSitePage],
    state: SiteState,
    at: datetime,
    is_news: Callable[[Entry], bool] = lambda entry: False,
) -> tuple[FetchCommit, SiteState]:
    """What a step changes, and the state from then on."""
    compared = compare(
        step,
        known,
        at=at,
        is_read=state.is_read and not step.is_quiet,
        is_news=is_news,
    )
    after = _counted(state, step, compared, at)
    before, news = decision.polling, compared.news
    polling = changed(
        before,
        code=200 if before.code is None else before.code,
        posting=_posting(before, compared, at),
        entry_count=after.pages,
        entries_since_maintenance=before.entries_since_maintenance + len(news.new),
        unchanged=0,
        is_resource=False,
        part_state="",
    )
    title = None if step.head is None else step.head.title
    status = decision.status(polling, at + SOON, title)
    baseline = News(seen=b"", is_baseline=True, new=compared.baseline)
    commit = FetchCommit(
        feed_id=decision.target.feed.id,
        at=at,
        next_fetch=at + SOON,
        polling=polling,
        title=title,
        format=state.format,
        head=step.head,
        entries=(*baseline.new, *written_entries(news)),
        deletions=news.deletions,
        records=(*news_records(baseline, status), *news_records(news, status)),
        site=SiteWrite(
            state=pack_state(after),
            pages=compared.pages,
            listed=step.listed,
            walk=step.walk,
        ),
    )
    return commit, after


def _counted(
    state: SiteState, step: Save, compared: Compared, at: datetime
) -> SiteState:
    day = day_of(at)
    known = state.entries_of_day if state.day == day else 0
    news = compared.news
    return msgspec.structs.replace(
        state,
        walk=step.state,
        is_read=state.is_read or step.is_read,
        pages=state.pages + compared.growth,
        day=day,
        entries_of_day=known
        + len(compared.baseline)
        + len(news.new)
        + len(news.updates)
        + len(news.deletions),
    )


def _posting(before: Polling, compared: Compared, at: datetime) -> Posting:
    posting = before.posting
    dates = sorted(
        min(entry.published, at) for entry in compared.baseline if entry.published
    )
    if compared.baseline:
        since = min((*dates[:1], posting.since or at))
        seconds = [date.timestamp() for date in dates]
        posting = with_posts(changed(posting, since=since), seconds, at)
    if compared.news.new:
        posting = count_posts(posting, compared.news.new, before.last_success, at)
    return posting


def end_commit(
    decision: Decision,
    ended: Ended,
    *,
    at: datetime,
    new: int,
    is_unfinished: bool,
) -> FetchCommit:
    """The end of a visit, and the plan of the next one.

    ``new`` entries were told of in it. ``is_unfinished``: it goes on soon, since there
    was more than one visit may read.
    """
    decision = msgspec.structs.replace(
        decision, fetched=_representative(decision.fetched, ended, at)
    )
    if ended.trouble:
        return after_failure(decision, ended.trouble)
    front = decision.fetched
    polling = changed(
        succeeded(decision, 0),
        body_error="",
        dropped=0,
        problems=tuple(each[:LONGEST_PROBLEM] for each in ended.problems)[
            :MOST_PROBLEMS
        ],
        unchanged=decision.polling.unchanged,
    )
    if decision.understood.feed is not None:
        polling = changed(polling, body_hash=body_hash(front.body))
    commit = quiet_commit(decision, polling)
    answer = ended.answer or front
    line = success_line(
        answer, decision.occasion, commit.polling.period, new, polling.entry_count
    )
    soon = min(commit.next_fetch, at + SOON) if is_unfinished else commit.next_fetch
    return changed(
        commit, next_fetch=soon, polling=changed(commit.polling, message=line)
    )


def _representative(front: Fetched, ended: Ended, at: datetime) -> Fetched:
    """One answer for all of a visit: with the validators of the front document, and
    the freshness of what changes. A failed one stands for itself."""
    answer = ended.answer
    if answer is None:
        return replace(front, at=at)
    if ended.trouble:
        return replace(answer, at=at, error=ended.trouble, hops=())
    return replace(
        front,
        at=at,
        cache_control=answer.cache_control,
        expires=answer.expires,
        date=answer.date,
        age=answer.age,
        retry_after=answer.retry_after,
    )
