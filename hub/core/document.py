"""After a document that was understood: its news, and all that it changes."""

from __future__ import annotations

from datetime import datetime
from functools import partial

import msgspec
from msgspec import structs

from hub.core.bodies import body_hash, news_body, raw_body
from hub.core.day_limit import room_of_day, told_of_day
from hub.core.decision import Decision
from hub.core.detect import News, detect
from hub.core.fragments import as_news, state_of
from hub.core.inventory import take_stock
from hub.core.news_writes import has_news, news_records, written_entries
from hub.core.oddities import oddities, remarks
from hub.core.posting import count_posts, posting_history
from hub.core.redirects import landing
from hub.core.remembered import remember
from hub.core.seen import shared_marks
from hub.core.shared_ids import without_shared_ids
from hub.core.success import quiet_commit, succeeded
from protocols.model import Entry, FeedFormat, ParsedFeed
from protocols.quick import changed
from storage.records import FetchCommit, Polling, Posting


def after_document(decision: Decision, read: ParsedFeed) -> FetchCommit:
    is_part = read.format is FeedFormat.PART
    part_state = state_of(read) if is_part else ""
    if is_part and part_state == decision.polling.part_state:
        return _same_part(decision)
    stock = take_stock(_as_read(decision, read), decision.target.inventory)
    document = stock.document
    news = _news(decision, document)
    polling = _polling(decision, document, news, part_state)
    if stock.is_doubted or news.waiting:  # the same bytes are to be read again
        polling = changed(polling, body_hash="", validators=None)
    commit = _news_commit(decision, polling, document, news)
    commit = changed(commit, inventory=stock.inventory)
    if decision.is_addition:  # the feed's own document says what it is
        return changed(commit, title=None, format=None, head=None, slices=None)
    raw = None if decision.fetched.is_partial else raw_body(decision.fetched, document)
    return changed(commit, raw=raw)


def _same_part(decision: Decision) -> FetchCommit:
    """Of the resource something else has changed."""
    digest = body_hash(decision.fetched.body)
    polling = changed(succeeded(decision, 0), body_hash=digest, body_error="")
    return quiet_commit(decision, polling)


def _as_read(decision: Decision, read: ParsedFeed) -> ParsedFeed:
    if read.format is FeedFormat.PART:
        read = as_news(read, decision.fetched.at)
    if decision.fetched.is_partial:
        read = structs.replace(read, is_complete=False)
    marks = shared_marks(decision.target.seen) | shared_marks(decision.elsewhere)
    return without_shared_ids(read, marks) if marks else read


def _news(decision: Decision, document: ParsedFeed) -> News:
    before, feed = decision.polling, decision.target.feed
    # What was brought before the first one was no document of the feed's own.
    is_first = before.last_success is None and before.last_parse is not None
    room = room_of_day(before, decision.rules, decision.fetched.at)
    news = detect(
        document,
        decision.target.seen,
        at=decision.fetched.at,
        last_success=before.last_success,
        is_reformatted=feed.format not in ("", document.format),
        is_addition=decision.fetched.is_partial,
        elsewhere=decision.elsewhere,
        room=None if is_first else room,
    )
    return msgspec.structs.replace(news, is_baseline=True) if is_first else news


def _polling(
    decision: Decision, document: ParsedFeed, news: News, part_state: str
) -> Polling:
    before, fetched = decision.polling, decision.fetched
    is_addition = decision.is_addition
    return changed(
        succeeded(decision, _count(news)),
        body_hash=body_hash(fetched.body),
        body_error="",
        unchanged=0,
        hints=document.hints,
        posting=_posting(before, news, fetched.at),
        entry_count=before.entry_count if is_addition else document.entry_count,
        found_at=landing(decision.target.feed.url, fetched),
        unlisted=before.unlisted if is_addition else document.feed.unlisted,
        is_resource=document.format is FeedFormat.PART,
        part_state=part_state,
        **oddities(before, news, document, fetched.at),
        **told_of_day(before, news, fetched.at),
    )


def _posting(before: Polling, news: News, at: datetime) -> Posting:
    if news.is_baseline:
        return posting_history(news.new, at)
    return count_posts(before.posting, news.new, before.last_success, at)


def _count(news: News) -> int:
    """Of entries that are told as new."""
    return 0 if news.is_baseline else len(news.new)


def _news_commit(
    decision: Decision, polling: Polling, document: ParsedFeed, news: News
) -> FetchCommit:
    target, title = decision.target, document.feed.title
    commit = quiet_commit(
        decision,
        polling,
        new=_count(news),
        title=title,
        remarks=remarks(news, document),
    )
    status = decision.status(commit.polling, commit.next_fetch, title)
    slices = remember(target.slices, document, news.sightings, decision.reader)
    is_told = partial(_is_told, decision, commit.polling)
    keeps_body = target.keeps_body and has_news(news)
    return changed(
        commit,
        title=title,
        format=document.format,
        head=document.feed,
        seen=news.seen if news.seen != target.seen else None,
        slices=slices if slices != target.slices else None,
        entries=written_entries(news),
        deletions=news.deletions,
        records=commit.records + news_records(news, status, is_told),
        body=news_body(decision.fetched, document) if keeps_body else None,
    )


def _is_told(decision: Decision, polling: Polling, entry: Entry) -> bool:
    """Whether even explicit subscribers are to be told of an entry."""
    is_listed = not (polling.unlisted or entry.unlisted)
    return is_listed or decision.rules.tells_unlisted
