"""From a finished fetch to everything it changes, as one commit.

Pure: the poller fetches and parses before, and applies the result after.

The number and the bytes of a feed's new entries in a day (UTC) are limited: a feed
whose ids change with every poll would never end, and one with huge entries would fill
the disk. Entries beyond the limit wait: they stay unknown or unchanged, and are sent
the next day if they are still there.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from msgspec import structs
from msgspec.structs import replace

from hub.core.fetched import body_hash, news_body, raw_body
from hub.core.news.decision import Decision
from hub.core.news.entry_diff import (
    EntryDiff,
    EntryQuota,
    detect,
    has_news,
    news_records,
    written_entries,
)
from hub.core.news.entry_identity import without_shared_ids
from hub.core.news.feed_quality import feed_quality, remarks
from hub.core.news.fetch_commit import (
    after_failure,
    after_unchanged,
    after_unreadable,
    after_useless_push,
    fetch_error,
    poll_of,
    quiet_commit,
    succeeded,
    with_turn,
)
from hub.core.news.inventory import compare_inventory
from hub.core.news.known_slices import remember
from hub.core.news.part_changes import after_content, as_news, is_content, state_of
from hub.core.news.seen_set import day_of, shared_marks
from hub.core.push.hub_trust import is_useless
from hub.core.schedule.next_request import source_resource
from hub.core.schedule.poll_period import PollingRules
from hub.core.schedule.posting_profile import count_posts, posting_history
from hub.core.status.freshness import with_delays
from protocols.model import FeedFormat, ParsedFeed
from storage.records import FetchCommit, Polling


def decide(decision: Decision) -> FetchCommit:
    """The whole commit of one fetch."""
    commit = with_turn(decision, _decided(decision))
    commit = with_delays(decision.polling, commit)
    return replace(commit, poll=poll_of(decision, commit))


def _decided(decision: Decision) -> FetchCommit:
    fetched, understood = decision.fetched, decision.understood
    if is_content(decision.target, fetched, understood):
        return after_content(decision)
    error = fetch_error(decision.polling, fetched, understood)
    if fetched.is_pushed and is_useless(decision.target.push, understood):
        return after_useless_push(decision, error)
    if error and fetched.is_partial:
        return after_unreadable(decision, error)
    if error:
        return after_failure(decision, error)
    if understood.feed is None:
        return after_unchanged(decision)
    return after_document(decision, understood.feed)


def after_document(decision: Decision, read: ParsedFeed) -> FetchCommit:
    is_part = read.format is FeedFormat.PART
    part_state = state_of(read) if is_part else ""
    if is_part and part_state == decision.polling.part_state:
        return _same_part(decision)
    compared = compare_inventory(_as_read(decision, read), decision.target.inventory)
    document = compared.document
    news = _news(decision, document)
    polling = _polling(decision, document, news, part_state)
    if compared.is_doubted or news.waiting:  # the same bytes are to be read again
        polling = replace(polling, body_hash="", validators=None)
    commit = _news_commit(decision, polling, document, news)
    commit = replace(commit, inventory=compared.inventory)
    if decision.is_addition:  # the feed's own document says what it is
        return replace(commit, title=None, format=None, head=None, slices=None)
    raw = None if decision.fetched.is_partial else raw_body(decision.fetched, document)
    return replace(commit, raw=raw)


def _same_part(decision: Decision) -> FetchCommit:
    """The commit for a selected part that has not changed, though the rest of the
    resource has."""
    digest = decision.understood.body_hash or body_hash(decision.fetched.body)
    polling = replace(succeeded(decision, 0), body_hash=digest, body_error="")
    return quiet_commit(decision, polling)


def _as_read(decision: Decision, read: ParsedFeed) -> ParsedFeed:
    if read.format is FeedFormat.PART:
        read = as_news(read, decision.fetched.at)
    if decision.fetched.is_partial:
        read = structs.replace(read, is_complete=False)
    marks = shared_marks(decision.target.seen) | shared_marks(decision.elsewhere)
    return without_shared_ids(read, marks) if marks else read


def _news(decision: Decision, document: ParsedFeed) -> EntryDiff:
    before, feed = decision.polling, decision.target.feed
    # A document brought before the first poll was not the feed's own.
    is_first = before.last_success is None and before.last_parse is not None
    quota = quota_of_day(before, decision.rules, decision.fetched.at)
    news = detect(
        document,
        decision.target.seen,
        at=decision.fetched.at,
        last_success=before.last_success,
        is_reformatted=feed.format not in ("", document.format),
        is_addition=decision.fetched.is_partial,
        elsewhere=decision.elsewhere,
        quota=None if is_first else quota,
    )
    return replace(news, is_baseline=True) if is_first else news


def _polling(
    decision: Decision, document: ParsedFeed, news: EntryDiff, part_state: str
) -> Polling:
    before, fetched = decision.polling, decision.fetched
    is_addition = decision.is_addition
    if news.is_baseline:
        posting = posting_history(news.new, fetched.at)
    else:
        posting = count_posts(before.posting, news.new, before.last_success, fetched.at)
    return replace(
        succeeded(decision, news.notified),
        # It is there already if the document was compared with the last one.
        body_hash=decision.understood.body_hash or body_hash(fetched.body),
        body_error="",
        unchanged=0,
        hints=document.hints,
        posting=posting,
        entry_count=before.entry_count if is_addition else document.entry_count,
        found_at=source_resource(decision.target.feed.url, fetched),
        unlisted=before.unlisted if is_addition else document.feed.unlisted,
        is_resource=document.format is FeedFormat.PART,
        part_state=part_state,
        **feed_quality(before, news, document, fetched.at),
        **counts_of_day(before, news, fetched.at),
    )


def _news_commit(
    decision: Decision, polling: Polling, document: ParsedFeed, news: EntryDiff
) -> FetchCommit:
    target, title = decision.target, document.feed.title
    commit = quiet_commit(
        decision,
        polling,
        new=news.notified,
        title=title,
        remarks=remarks(news, document),
    )
    status = decision.status(commit.polling, commit.next_fetch, title)
    slices = remember(target.slices, document, news.sightings, decision.reader)
    news_of_feed = news_records(
        news,
        status,
        tells_unlisted=decision.rules.tells_unlisted,
        is_unlisted=commit.polling.unlisted,
    )
    keeps_body = target.keeps_body and has_news(news)
    return replace(
        commit,
        title=title,
        format=document.format,
        head=document.feed,
        seen=news.seen if news.seen != target.seen else None,
        slices=slices if slices != target.slices else None,
        entries=written_entries(news),
        deletions=news.deletions,
        records=commit.records + news_of_feed,
        body=news_body(decision.fetched, document) if keeps_body else None,
    )


# --- a day's quota -------------------------------------------------------------------


class DayCounts(TypedDict):
    """Members of `storage.records.Polling`."""

    told_on: int
    told_of_day: int
    bytes_of_day: int
    waiting: int


def quota_of_day(before: Polling, rules: PollingRules, at: datetime) -> EntryQuota:
    """What is left of the day's quota; the entry that uses up the bytes is whole."""
    notified, kept = _used(before, at)
    return EntryQuota(
        entries=max(0, rules.entries_of_day - notified),
        bytes=max(0, rules.bytes_of_day - kept),
    )


def counts_of_day(before: Polling, news: EntryDiff, at: datetime) -> DayCounts:
    """The day's counts with those of a document; a first document counts none."""
    notified, kept = _used(before, at)
    return DayCounts(
        told_on=day_of(at),
        told_of_day=notified + (0 if news.is_baseline else len(news.new)),
        bytes_of_day=kept + news.bytes,
        waiting=news.waiting,
    )


def _used(before: Polling, at: datetime) -> tuple[int, int]:
    """The new entries and bytes that the day has had."""
    if before.told_on != day_of(at):
        return 0, 0
    return before.told_of_day, before.bytes_of_day
