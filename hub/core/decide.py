"""From a finished fetch to everything it changes, as one commit.

Pure: the poller fetches and parses before, and applies the result after.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hub.core.cadence import Plan, PollingRules, plan
from hub.core.content import is_content
from hub.core.detect import News, detect
from hub.core.fetched import Fetched, Occasion, Understood
from hub.core.freshness import fresh_until, retry_after
from hub.core.hubs import hubs_of_header, validator_of_header
from hub.core.news_writes import entry_writes, has_news, news_records
from hub.core.oddities import oddities, remarks
from hub.core.outlook import Outlook
from hub.core.posting import count_change, count_posts, posting_history, velocity
from hub.core.redirects import course_after_failure, course_after_success, landing
from hub.core.remembered import UNNAMED, remember
from hub.core.status import failure_line, status_of, success_line
from hub.core.stopping import absence_after, state_after_absence
from hub.core.trouble import diagnose
from hub.core.validators import next_validators
from protocols.checksum import checksum
from protocols.http import OCTET_STREAM, sendable_content_type
from protocols.model import ParsedFeed
from protocols.quick import quick_init
from storage.packing import pack, pack_bytes
from storage.records import (
    FeedState,
    FetchCommit,
    FetchTarget,
    Polling,
    Posting,
    RecordKind,
    RecordWrite,
    StoredBody,
)

MAINTENANCE = timedelta(hours=24)


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What all parts of a decision start from."""

    target: FetchTarget
    fetched: Fetched
    understood: Understood
    rules: PollingRules
    jitter: float
    occasion: Occasion
    reader: bytes  # the name of the program that understood the document
    elsewhere: bytes  # the seen-set of the feed that it was redirected to
    outlook: Outlook

    @property
    def polling(self) -> Polling:
        return self.target.feed.polling

    def plan(self, polling: Polling) -> Plan:
        """The period and next fetch that a new state implies."""
        return plan(
            polling,
            self.target.subscribers,
            self.rules,
            self.fetched.at,
            self.jitter,
            self.outlook,
        )


def decide(
    target: FetchTarget,
    fetched: Fetched,
    understood: Understood,
    *,
    rules: PollingRules,
    jitter: float,
    occasion: Occasion,
    reader: bytes = UNNAMED,
    elsewhere: bytes = b"",
    outlook: Outlook | None = None,
) -> FetchCommit:
    """The whole commit of one fetch.

    ``understood`` is empty unless the body of a 200 had to be parsed (see
    `hub.core.trouble.is_known_body`). ``jitter`` is drawn from -1 to 1. ``reader``
    names the program that understood it, as `hub.core.remembered` wants it.
    ``elsewhere`` is the seen-set of the feed that this one was redirected to, where
    `hub.core.redirects.lands_elsewhere`.
    Without an outlook a poll has the price that is the patience of the rules.
    """
    decision = Decision(
        target=target,
        fetched=fetched,
        understood=understood,
        rules=rules,
        jitter=jitter,
        occasion=occasion,
        reader=reader,
        elsewhere=elsewhere,
        outlook=outlook or Outlook(price=rules.patience),
    )
    if is_content(target, fetched, understood):
        return _after_content(decision)
    trouble = diagnose(decision.polling, fetched, understood)
    if trouble:
        return _after_failure(decision, trouble)
    if understood.feed is None:
        return _after_sameness(decision)
    return _after_document(decision, understood.feed)


def body_hash(body: bytes) -> str:
    """The identity of a document's bytes, in hex."""
    return checksum(body).hex()


def _after_failure(decision: Decision, trouble: str) -> FetchCommit:
    before, fetched = decision.polling, decision.fetched
    course = course_after_failure(before, fetched)
    absence = absence_after(decision.target.feed, fetched, decision.rules)
    polling = replace(
        before,
        last_fetch=fetched.at,
        code=fetched.status,
        error=trouble,
        failures=before.failures + 1,
        failing_since=before.failing_since or fetched.at,
        gone_sightings=absence.gone,
        missing_sightings=absence.missing,
        missing_since=absence.since,
        validators=next_validators(before, fetched),
        retry_after=retry_after(fetched),
        fetch_url=course.fetch_url,
        redirect=course.redirect,
        subscribers=decision.target.subscribers,
    )
    if decision.understood.error is not None:
        polling = replace(
            polling,
            body_hash=body_hash(fetched.body),
            body_error=trouble,
            fresh_until=fresh_until(before, fetched),
        )
    planned = decision.plan(polling)
    line = failure_line(fetched, decision.occasion, planned.period, trouble)
    price = decision.outlook.price
    polling = replace(polling, period=planned.period, price=price, message=line)
    status = status_of(polling, planned.next_fetch, decision.target.feed.title)
    begins = not before.failures
    return FetchCommit(
        feed_id=decision.target.feed.id,
        at=fetched.at,
        next_fetch=planned.next_fetch,
        polling=polling,
        state=state_after_absence(
            decision.target.feed.state, absence, fetched.at, decision.rules
        ),
        records=(RecordWrite(kind=RecordKind.ERROR, status=status),) if begins else (),
    )


def _after_sameness(decision: Decision) -> FetchCommit:
    """A 304, or a 200 with the bytes that are known: all is well, nothing is new."""
    return _commit(decision, _succeeded(decision, 0))


def _after_content(decision: Decision) -> FetchCommit:
    """No feed: what it says is not understood, only that it is no longer the same."""
    before, fetched = decision.polling, decision.fetched
    digest = body_hash(fetched.body)
    if fetched.status == 304 or digest == before.body_hash:
        polling = replace(_succeeded(decision, 0), unchanged=before.unchanged + 1)
        return _commit(decision, replace(polling, body_error=""))
    is_first = not before.body_hash
    polling = replace(
        _succeeded(decision, 0),
        body_hash=digest,
        body_error="",
        unchanged=0,
        posting=posting_history((), fetched.at)
        if is_first
        else count_change(before.posting, before.last_success, fetched.at),
    )
    commit = replace(_commit(decision, polling), body=_body(fetched, OCTET_STREAM))
    if is_first:
        return commit  # the first document is no news
    status = status_of(commit.polling, commit.next_fetch, decision.target.feed.title)
    content = RecordWrite(kind=RecordKind.CONTENT, status=status)
    return replace(commit, records=(*commit.records, content))


def _after_document(decision: Decision, document: ParsedFeed) -> FetchCommit:
    before, fetched, feed = decision.polling, decision.fetched, decision.target.feed
    news = detect(
        document,
        decision.target.seen,
        at=fetched.at,
        last_success=before.last_success,
        is_reformatted=feed.format not in ("", document.format),
        elsewhere=decision.elsewhere,
    )
    if fetched.is_partial:
        news = replace(news, is_gap=False)
    new = 0 if news.is_baseline else len(news.new)
    polling = replace(
        _succeeded(decision, new),
        body_hash=body_hash(fetched.body),
        body_error="",
        unchanged=0,
        hints=document.hints,
        posting=_posting(before, news, fetched.at),
        entry_count=document.entry_count,
        found_at=landing(feed.url, fetched),
        **oddities(before, news, document, fetched.at),
    )
    return _commit(decision, polling, document, news)


def _succeeded(decision: Decision, new: int) -> Polling:
    """The state after a good answer, as if it had changed nothing."""
    before, fetched = decision.polling, decision.fetched
    course = course_after_success(before, fetched)
    validators = next_validators(before, fetched)
    is_304 = fetched.status == 304
    is_due = (
        before.last_maintenance_at is None
        or fetched.at - before.last_maintenance_at >= MAINTENANCE
    )
    return replace(
        before,
        last_fetch=fetched.at,
        last_success=fetched.at,
        last_parse=fetched.at,
        code=fetched.status,
        error="",
        failures=0,
        failing_since=None,
        gone_sightings=0,
        missing_sightings=0,
        missing_since=None,
        validators=validators,
        answers_304=is_304 or (before.answers_304 and validators is not None),
        fetch_url=course.fetch_url,
        redirect=course.redirect,
        retry_after=retry_after(fetched),
        fresh_until=fresh_until(before, fetched),
        hubs=hubs_of_header(fetched) or (before.hubs if is_304 else ()),
        validator=validator_of_header(fetched) or (before.validator if is_304 else ""),
        entries_since_maintenance=new
        + (0 if is_due else before.entries_since_maintenance),
        last_maintenance_at=fetched.at if is_due else before.last_maintenance_at,
        subscribers=decision.target.subscribers,
        unchanged=before.unchanged + 1,
    )


def _posting(before: Polling, news: News, at: datetime) -> Posting:
    if news.is_baseline:
        return posting_history(news.new, at)
    return count_posts(before.posting, news.new, before.last_success, at)


def _commit(
    decision: Decision,
    polling: Polling,
    document: ParsedFeed | None = None,
    news: News | None = None,
) -> FetchCommit:
    """The commit of a good answer; without a document, of one that changed nothing."""
    target, fetched = decision.target, decision.fetched
    planned = decision.plan(polling)
    new = len(news.new) if news and not news.is_baseline else 0
    polling = replace(
        polling,
        period=planned.period,
        price=decision.outlook.price,
        velocity=velocity(polling.posting, fetched.at),
        message=success_line(
            fetched,
            decision.occasion,
            planned.period,
            new,
            polling.entry_count,
            remarks(news, document) if news and document else (),
        ),
    )
    title = document.feed.title if document else target.feed.title
    records: tuple[RecordWrite, ...] = ()
    if decision.polling.failures:
        status = status_of(polling, planned.next_fetch, title)
        records = (RecordWrite(kind=RecordKind.RECOVERED, status=status),)
    commit = FetchCommit(
        feed_id=target.feed.id,
        at=fetched.at,
        next_fetch=planned.next_fetch,
        polling=polling,
        state=FeedState.ACTIVE if target.feed.state.is_stopped else None,
        records=records,
    )
    if document is None or news is None:
        return commit
    status = status_of(polling, planned.next_fetch, title)
    slices = remember(target.slices, document, news.sightings, decision.reader)
    return replace(
        commit,
        title=title,
        format=document.format,
        head=pack(document.feed),
        seen=news.seen if news.seen != target.seen else None,
        slices=slices if slices != target.slices else None,
        entries=entry_writes(news),
        records=records + news_records(news, status),
        body=_kept_body(decision, document, news),
    )


def _kept_body(
    decision: Decision, document: ParsedFeed, news: News
) -> StoredBody | None:
    """The document itself, for those who get it as it is, whenever it has news."""
    if not decision.target.keeps_body or not has_news(news):
        return None
    return _body(decision.fetched, document.format.media_type)


def _body(fetched: Fetched, type_of_it: str) -> StoredBody:
    """With its type, for origins that do not send one."""
    content_type = sendable_content_type(fetched.content_type, type_of_it)
    return StoredBody(content_type=content_type, body=pack_bytes(fetched.body))
