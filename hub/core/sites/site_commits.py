"""What is committed for a step of reading a site, and for the end of a visit.

As in `hub.core.news.entry_diff`, an unknown page is new, and other content is an
update. During the first reading of a site nothing is sent. Until a visit has ended its
success is unknown: its steps change entries and known pages, but not the feed's error,
if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from hub.core.fetched import Fetched, body_hash
from hub.core.news.decision import Decision
from hub.core.news.entry_diff import (
    FRESH_FOR,
    REBUILT_ENTRIES,
    UPDATES_A_DAY,
    EntryDiff,
    Update,
    news_records,
    written_entries,
)
from hub.core.news.feed_quality import LONGEST_PROBLEM, MOST_PROBLEMS
from hub.core.news.fetch_commit import (
    after_failure,
    poll_of,
    quiet_commit,
    succeeded,
    with_turn,
)
from hub.core.news.seen_set import day_of
from hub.core.schedule.posting_profile import count_posts, with_posts
from hub.core.sites.site_state import SiteState, pack_state
from hub.core.sites.walk_steps import CommitPages, ReadPage, WalkEnded
from hub.core.status.feed_status import success_line
from hub.core.status.freshness import with_delays
from protocols.identity import content_hash, fingerprint
from protocols.model import Deletion, Entry
from storage.records import (
    FetchCommit,
    Polling,
    PollReason,
    Posting,
    SiteWrite,
    StoredSitePage,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageComparison:
    """``baseline`` are new entries that nobody is notified of; ``pages`` are to be
    stored.

    ``growth`` is the increase in the number of pages.
    """

    news: EntryDiff
    baseline: tuple[Entry, ...]
    pages: tuple[StoredSitePage, ...]
    growth: int


def compare(
    step: CommitPages,
    known: Mapping[str, StoredSitePage],
    *,
    at: datetime,
    is_read: bool,
    is_news: Callable[[Entry], bool] = lambda entry: False,
) -> PageComparison:
    """Compare a step's pages with the ``known`` ones among them.

    Until the site was read whole (``is_read``), subscribers are notified of no update,
    and of a new entry only if it ``is_news`` all the same; deletions wait for the next
    reading.
    """
    read = {page.entry.key: page for page in reversed(step.pages)}
    day = day_of(at)
    compared = [
        _compare(page, known.get(key), step.walk, day)
        for key, page in reversed(read.items())
    ]
    new = [each.entry for each in compared if each.is_new]
    deleted = _deleted(step, known, read) if is_read else ()
    gone = tuple(replace(known[each.key], is_deleted=True) for each in deleted)
    notified = tuple(entry for entry in new if is_read or is_news(entry))
    told_keys = {entry.key for entry in notified}
    news = EntryDiff(
        seen=b"",
        is_baseline=False,
        new=notified,
        updates=_updates(compared, at, is_read=is_read),
        deletions=deleted,
    )
    return PageComparison(
        news=news,
        baseline=tuple(entry for entry in new if entry.key not in told_keys),
        pages=(*(each.page for each in compared if each.is_written), *gone),
        growth=len(new) + sum(each.is_back for each in compared) - len(gone),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    entry: Entry
    page: StoredSitePage
    is_new: bool = False
    is_back: bool = False  # after it was deleted
    is_update: bool = False
    is_written: bool = True
    changes: int = 0  # earlier changes on this day


def _compare(
    read: ReadPage, before: StoredSitePage | None, walk: int, day: int
) -> _Comparison:
    entry = read.entry
    page = StoredSitePage(
        key=entry.key,
        reference=read.reference,
        content=read.content or content_of(entry),
        stamp=read.stamp,
        walk=walk,
        day=day,
    )
    if before is None:
        return _Comparison(entry=entry, page=page, is_new=True)
    if before.content == page.content and not before.is_deleted:
        same = replace(page, day=before.day, changes=before.changes)
        return _Comparison(entry=entry, page=same, is_written=same != before)
    changes = before.changes if before.day == day else 0
    return _Comparison(
        entry=entry,
        page=replace(page, changes=changes + 1),
        is_back=before.is_deleted,
        is_update=True,
        changes=changes,
    )


def content_of(entry: Entry) -> int:
    """A hash of the page's content, for comparison."""
    return fingerprint(content_hash(entry)) >> 1


def _updates(
    compared: list[_Comparison], at: datetime, *, is_read: bool
) -> tuple[Update, ...]:
    updates = [each for each in compared if each.is_update]
    is_rebuilt = len(updates) >= REBUILT_ENTRIES and 2 * len(updates) > len(compared)
    return tuple(
        _update(each, at, is_read=is_read, is_rebuilt=is_rebuilt) for each in updates
    )


def _update(
    compared: _Comparison, at: datetime, *, is_read: bool, is_rebuilt: bool
) -> Update:
    date = compared.entry.updated
    is_fresh = date is not None and abs(at - date) < FRESH_FOR and not is_rebuilt
    is_logged = is_read and (is_fresh or compared.changes < UPDATES_A_DAY)
    return Update(entry=compared.entry, is_fresh=is_fresh, is_logged=is_logged)


def _deleted(
    step: CommitPages, known: Mapping[str, StoredSitePage], read: Mapping[str, ReadPage]
) -> tuple[Deletion, ...]:
    """Deletions, each once; a page that is there is not deleted."""
    wanted = {each.key: each for each in step.deletions if each.key not in read}
    return tuple(
        deletion
        for key, deletion in wanted.items()
        if key in known and not known[key].is_deleted
    )


SOON = timedelta(seconds=10)
"""How soon a reading continues that was interrupted, or has used up one visit."""


def step_commit(
    decision: Decision,
    step: CommitPages,
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
    polling = replace(
        before,
        code=200 if before.code is None else before.code,
        posting=_posting(before, compared, at),
        entry_count=after.pages,
        entries_since_maintenance=before.entries_since_maintenance + len(news.new),
        unchanged=0,
        is_resource=False,
        part_state="",
        next_reason=PollReason.CONTINUED,
    )
    title = None if step.head is None else step.head.title
    status = decision.status(polling, at + SOON, title)
    baseline = EntryDiff(seen=b"", is_baseline=True, new=compared.baseline)
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
    return with_delays(before, commit), after


def _counted(
    state: SiteState, step: CommitPages, compared: PageComparison, at: datetime
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


def _posting(before: Polling, compared: PageComparison, at: datetime) -> Posting:
    posting = before.posting
    dates = sorted(
        min(entry.published, at) for entry in compared.baseline if entry.published
    )
    if compared.baseline:
        since = min((*dates[:1], posting.since or at))
        seconds = [date.timestamp() for date in dates]
        posting = with_posts(replace(posting, since=since), seconds, at)
    if compared.news.new:
        posting = count_posts(posting, compared.news.new, before.last_success, at)
    return posting


def end_commit(
    decision: Decision,
    ended: WalkEnded,
    *,
    at: datetime,
    new: int,
    is_unfinished: bool,
) -> FetchCommit:
    """The end of a visit, and the plan of the next one.

    ``new``: how many entries subscribers were notified of. ``is_unfinished``: the
    reading continues soon, since there was more than one visit may read.
    """
    representative = _representative(decision.fetched, ended, at)
    visited = msgspec.structs.replace(decision, fetched=representative)
    commit = _end_of_visit(visited, ended, at, new, is_unfinished)
    commit = with_turn(decision, commit)  # judged by its front document
    return replace(commit, poll=poll_of(visited, commit, new))


def _end_of_visit(
    decision: Decision, ended: WalkEnded, at: datetime, new: int, is_unfinished: bool
) -> FetchCommit:
    if ended.error:
        return after_failure(decision, ended.error)
    front = decision.fetched
    polling = replace(
        succeeded(decision, 0),
        settling_since=None,  # its visits take many requests each
        body_error="",
        dropped=0,
        problems=tuple(each[:LONGEST_PROBLEM] for each in ended.problems)[
            :MOST_PROBLEMS
        ],
        unchanged=decision.polling.unchanged,
    )
    if decision.understood.feed is not None:
        polling = replace(polling, body_hash=body_hash(front.body))
    commit = quiet_commit(decision, polling)
    answer = ended.answer or front
    line = success_line(
        answer, decision.occasion, commit.polling.period, new, polling.entry_count
    )
    polling = replace(commit.polling, message=line)
    next_fetch = commit.next_fetch
    if is_unfinished and at + SOON < next_fetch:
        next_fetch = at + SOON
        polling = replace(polling, next_reason=PollReason.CONTINUED)
    return replace(commit, next_fetch=next_fetch, polling=polling)


def _representative(front: Fetched, ended: WalkEnded, at: datetime) -> Fetched:
    """One answer for all of a visit.

    It has the validators of the front document, and the freshness of what changes. A
    failed answer stands for itself.
    """
    answer = ended.answer
    if answer is None:
        return replace(front, at=at)
    if ended.error:
        error = ended.error
        return replace(answer, at=at, started=front.started, error=error, redirects=())
    return replace(
        front,
        at=at,
        cache_control=answer.cache_control,
        expires=answer.expires,
        date=answer.date,
        age=answer.age,
        retry_after=answer.retry_after,
    )
