"""From a finished fetch to everything it changes, as one commit.

Pure: the poller fetches and parses before, and applies the result after.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from hub.core.cadence import Plan, PollingRules, plan
from hub.core.content import content_hash, is_content
from hub.core.detect import News, detect
from hub.core.fetched import Fetched, Occasion, Understood
from hub.core.fragments import as_news, state_of
from hub.core.freshness import fresh_until, retry_after
from hub.core.hubs import hubs_of_header, validator_of_header
from hub.core.inventory import take_stock
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
from protocols.model import Entry, FeedFormat, ParsedFeed, Status, Text
from protocols.quick import changed, quick_init
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
        planned = plan(
            polling,
            self.target.subscribers,
            self.rules,
            self.fetched.at,
            self.jitter,
            self.outlook,
        )
        if self.fetched.is_partial:  # what it lacks is still to be polled for
            sooner = min(planned.next_fetch, self.target.feed.next_fetch)
            return replace(planned, next_fetch=sooner)
        return planned

    def status(
        self, polling: Polling, next_fetch: datetime, title: str | None = None
    ) -> Status:
        """With the feed's title as it is known unless it is given."""
        known = self.target.feed.title if title is None else title
        return status_of(polling, next_fetch, known, self.target.standing)


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
    if trouble and fetched.is_partial:
        return _after_unreadable(decision, trouble)
    if trouble:
        return after_failure(decision, trouble)
    if understood.feed is None:
        return _after_sameness(decision)
    return _after_document(decision, understood.feed)


def body_hash(body: bytes) -> str:
    """The identity of a document's bytes, in hex."""
    return checksum(body).hex()


def after_failure(decision: Decision, trouble: str) -> FetchCommit:
    before, fetched = decision.polling, decision.fetched
    course = course_after_failure(before, fetched)
    absence = absence_after(decision.target.feed, fetched, decision.rules)
    polling = changed(
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
        polling = changed(
            polling,
            body_hash=body_hash(fetched.body),
            body_error=trouble,
            fresh_until=fresh_until(before, fetched),
        )
    planned = decision.plan(polling)
    line = failure_line(fetched, decision.occasion, planned.period, trouble)
    price = decision.outlook.price
    polling = changed(polling, period=planned.period, price=price, message=line)
    status = decision.status(polling, planned.next_fetch)
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


def _after_unreadable(decision: Decision, trouble: str) -> FetchCommit:
    """What a publisher brought is no document: a remark, and no failure of its feed."""
    planned = decision.plan(decision.polling)
    line = failure_line(decision.fetched, decision.occasion, planned.period, trouble)
    return FetchCommit(
        feed_id=decision.target.feed.id,
        at=decision.fetched.at,
        next_fetch=planned.next_fetch,
        polling=changed(decision.polling, message=line),
    )


def _after_sameness(decision: Decision) -> FetchCommit:
    """A 304, or a 200 with the bytes that are known: all is well, nothing is new."""
    return quiet_commit(decision, succeeded(decision, 0))


def _after_content(decision: Decision) -> FetchCommit:
    """No feed: what it says is not understood, only that it is no longer the same."""
    before, fetched = decision.polling, decision.fetched
    digest = content_hash(fetched.body)
    if fetched.status == 304 or digest == before.body_hash:
        polling = changed(succeeded(decision, 0), unchanged=before.unchanged + 1)
        return quiet_commit(decision, changed(polling, body_error=""))
    is_first = not before.body_hash
    polling = changed(
        succeeded(decision, 0),
        body_hash=digest,
        body_error="",
        is_resource=True,
        unchanged=0,
        posting=posting_history((), fetched.at)
        if is_first
        else count_change(before.posting, before.last_success, fetched.at),
    )
    commit = changed(quiet_commit(decision, polling), body=_body(fetched, OCTET_STREAM))
    if is_first:
        return commit  # the first document is no news
    status = decision.status(commit.polling, commit.next_fetch)
    content = RecordWrite(kind=RecordKind.CONTENT, status=status)
    return changed(commit, records=(*commit.records, content))


def _after_document(decision: Decision, read: ParsedFeed) -> FetchCommit:
    before, fetched, feed = decision.polling, decision.fetched, decision.target.feed
    is_part = read.format is FeedFormat.PART
    state = state_of(read) if is_part else ""
    if is_part and state == before.part_state:
        same = succeeded(decision, 0)
        return quiet_commit(
            decision, changed(same, body_hash=body_hash(fetched.body), body_error="")
        )
    read = as_news(read, fetched.at) if is_part else read
    if fetched.is_partial:
        read = replace(read, is_complete=False)
    stock = take_stock(read, decision.target.inventory)
    document = stock.document
    news = detect(
        document,
        decision.target.seen,
        at=fetched.at,
        last_success=before.last_success,
        is_reformatted=feed.format not in ("", document.format),
        is_addition=fetched.is_partial,
        elsewhere=decision.elsewhere,
    )
    is_first = before.last_success is None and before.last_parse is not None
    if is_first:  # what was brought before it was no document of the feed's own
        news = replace(news, is_baseline=True)
    new = 0 if news.is_baseline else len(news.new)
    is_addition = fetched.is_partial and bool(feed.format)
    polling = changed(
        succeeded(decision, new),
        body_hash=body_hash(fetched.body),
        body_error="",
        unchanged=0,
        hints=document.hints,
        posting=_posting(before, news, fetched.at),
        entry_count=before.entry_count if is_addition else document.entry_count,
        found_at=landing(feed.url, fetched),
        unlisted=before.unlisted if is_addition else document.feed.unlisted,
        is_resource=is_part,
        part_state=state,
        **oddities(before, news, document, fetched.at),
    )
    if stock.is_doubted:  # the same bytes are to be read again
        polling = changed(polling, body_hash="", validators=None)
    commit = quiet_commit(decision, polling, document, news)
    commit = changed(commit, inventory=stock.inventory)
    if is_addition:  # the feed's own document says what it is
        return changed(commit, title=None, format=None, head=None, slices=None)
    return changed(commit, raw=None if fetched.is_partial else _raw(fetched, document))


def _raw(fetched: Fetched, document: ParsedFeed) -> StoredBody | None:
    """The document itself, of formats that may say more than entries can hold."""
    if not document.format.lists_all:
        return None
    return StoredBody(
        content_type=document.format.media_type, body=pack_bytes(fetched.body)
    )


def succeeded(decision: Decision, new: int) -> Polling:
    """The state after a good answer, as if it had changed nothing."""
    before, fetched = decision.polling, decision.fetched
    if fetched.is_partial:  # what a publisher brings says nothing of its server
        return changed(
            before,
            last_parse=fetched.at,
            entries_since_maintenance=before.entries_since_maintenance + new,
        )
    course = course_after_success(before, fetched)
    validators = next_validators(before, fetched)
    is_304 = fetched.status == 304
    maintained_at = _maintained_at(decision)
    is_maintained = maintained_at != before.last_maintenance_at
    return changed(
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
        fetch_url=fetched.url if fetched.instead_of else course.fetch_url,
        redirect=course.redirect,
        retry_after=retry_after(fetched),
        fresh_until=fresh_until(before, fetched),
        hubs=hubs_of_header(fetched) or (before.hubs if is_304 else ()),
        validator=validator_of_header(fetched) or (before.validator if is_304 else ""),
        entries_since_maintenance=new
        + (0 if is_maintained else before.entries_since_maintenance),
        last_maintenance_at=maintained_at,
        subscribers=decision.target.subscribers,
        unchanged=before.unchanged + 1,
    )


def _maintained_at(decision: Decision) -> datetime:
    """The first fetch counts for it: clients want to be told some time."""
    standing = decision.target.standing
    if standing is not None:
        return standing.maintained_at
    return decision.polling.last_maintenance_at or decision.fetched.at


def _posting(before: Polling, news: News, at: datetime) -> Posting:
    if news.is_baseline:
        return posting_history(news.new, at)
    return count_posts(before.posting, news.new, before.last_success, at)


def quiet_commit(
    decision: Decision,
    polling: Polling,
    document: ParsedFeed | None = None,
    news: News | None = None,
) -> FetchCommit:
    """The commit of a good answer; without a document, of one that changed nothing."""
    target, fetched = decision.target, decision.fetched
    planned = decision.plan(polling)
    new = len(news.new) if news and not news.is_baseline else 0
    polling = changed(
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
    is_recovered = decision.polling.failures and not polling.failures
    if is_recovered:
        status = decision.status(polling, planned.next_fetch, title)
        records = (RecordWrite(kind=RecordKind.RECOVERED, status=status),)
    commit = FetchCommit(
        feed_id=target.feed.id,
        at=fetched.at,
        next_fetch=planned.next_fetch,
        polling=polling,
        state=FeedState.ACTIVE
        if target.feed.state.is_stopped and not fetched.is_partial
        else None,
        records=records,
    )
    if document is None or news is None:
        return commit
    status = decision.status(polling, planned.next_fetch, title)
    slices = remember(target.slices, document, news.sightings, decision.reader)
    return changed(
        commit,
        title=title,
        format=document.format,
        head=pack(document.feed),
        seen=news.seen if news.seen != target.seen else None,
        slices=slices if slices != target.slices else None,
        entries=entry_writes(news),
        records=records
        + news_records(news, status, partial(_is_told, decision, polling)),
        body=_kept_body(decision, document, news),
    )


def _is_told(decision: Decision, polling: Polling, entry: Entry) -> bool:
    """Whether even explicit subscribers are to be told of an entry."""
    is_listed = not (polling.unlisted or entry.unlisted)
    return is_listed or decision.rules.tells_unlisted


def _kept_body(
    decision: Decision, document: ParsedFeed, news: News
) -> StoredBody | None:
    """The document itself, for those who get it as it is, whenever it has news."""
    if not decision.target.keeps_body or not has_news(news):
        return None
    if document.format is FeedFormat.PART:
        return _part(document)
    return _body(decision.fetched, document.format.media_type)


def _part(document: ParsedFeed) -> StoredBody:
    """As it is: what was selected, and nothing around it."""
    content = document.entries[0].content or Text(value="")
    is_page = content.type == "html"
    content_type = "text/html; charset=utf-8" if is_page else content.type
    return StoredBody(
        content_type=content_type, body=pack_bytes(content.value.encode())
    )


def _body(fetched: Fetched, type_of_it: str) -> StoredBody:
    """With its type, for origins that do not send one."""
    content_type = sendable_content_type(fetched.content_type, type_of_it)
    return StoredBody(content_type=content_type, body=pack_bytes(fetched.body))
