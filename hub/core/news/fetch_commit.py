"""The part of a fetch's commit that does not depend on entries.

After a good answer, what is stored even if nothing is new; after a failed one, the
error, the pause it causes, and the record that reports it. What the fetch says about a
push by the feed's hub is part of both, and so is the poll in the feed's history.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from msgspec.structs import replace

from hub.core.fetched import Fetched, ParseOutcome, body_hash
from hub.core.news.decision import Decision
from hub.core.push.hub_offers import hubs_of_header, offer_of, validator_of_header
from hub.core.push.hub_trust import (
    NOTHING,
    after_useless,
    hint_time,
    push_change,
    write_of,
)
from hub.core.schedule.feed_retirement import (
    Absence,
    absence_after,
    state_after_absence,
)
from hub.core.schedule.next_request import (
    fresh_until,
    next_request_after_failure,
    next_request_after_success,
    next_validators,
    retry_after,
)
from hub.core.schedule.poll_period import is_settled
from hub.core.schedule.posting_profile import velocity
from hub.core.status.feed_health import condition_after, events_of_fetch
from hub.core.status.feed_status import failure_line, success_line
from protocols.model import FeedFormat
from protocols.protocol_errors import UnsupportedVersion
from storage.records import (
    FeedState,
    FetchCommit,
    Poll,
    Polling,
    PollOutcome,
    PollReason,
    PushOffer,
    RecordKind,
    RecordWrite,
    Validators,
)


def fetch_error(polling: Polling, fetched: Fetched, understood: ParseOutcome) -> str:
    """Why this fetch failed, or "".

    A document that is not a feed remains one when a 304 says that it is unchanged.
    """
    if fetched.error:
        return fetched.error
    if understood.error is not None:
        return str(understood.error)
    if understood.feed is not None:
        return ""
    return polling.body_error


def is_known_body(polling: Polling, body_hash: str) -> bool:
    """Whether a body need not be parsed: it is the last one, and that was a feed."""
    return body_hash == polling.body_hash and not polling.body_error


def with_turn(decision: Decision, commit: FetchCommit) -> FetchCommit:
    """The commit, with the feed's condition if that has changed, and the events that
    the operator may want to know of."""
    target = decision.target
    push = target.push if commit.push is None else commit.push.push
    before = target.feed.condition
    condition = condition_after(before, commit.polling, decision.fetched, push)
    events = events_of_fetch(target.feed, commit)
    if condition is before and not events:
        return commit
    turned = None if condition is before else condition
    return replace(commit, condition=turned, events=events)


def after_unchanged(decision: Decision) -> FetchCommit:
    """The commit of a 304, or of a 200 with the bytes that are known: all is well,
    nothing is new."""
    return quiet_commit(decision, succeeded(decision, 0))


def succeeded(decision: Decision, new: int) -> Polling:
    """The state after a good answer, as if it had changed nothing."""
    before, fetched = decision.polling, decision.fetched
    if fetched.is_partial:  # what a publisher brings says nothing of its server
        return replace(
            before,
            last_parse=fetched.at,
            entries_since_maintenance=before.entries_since_maintenance + new,
        )
    course = next_request_after_success(before, fetched)
    validators = next_validators(before, fetched)
    is_304 = fetched.status == 304
    settling = fetched.at if before.last_success is None else before.settling_since
    if settling is not None and is_settled(settling, fetched.at):
        settling = None
    # The first fetch counts as maintenance: clients want a time.
    statistics = decision.target.statistics
    maintained_at = before.last_maintenance_at or fetched.at
    if statistics is not None:
        maintained_at = statistics.maintained_at
    is_maintained = maintained_at != before.last_maintenance_at
    return replace(
        before,
        last_fetch=fetched.at,
        last_success=fetched.at,
        settling_since=settling,
        last_parse=fetched.at,
        code=fetched.status,
        error="",
        failures=0,
        failing_since=None,
        gone_sightings=0,
        missing_sightings=0,
        missing_since=None,
        validators=validators,
        body_bytes=len(fetched.body) or before.body_bytes,
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


def quiet_commit(
    decision: Decision,
    polling: Polling,
    *,
    new: int = 0,
    title: str | None = None,
    remarks: Sequence[str] = (),
) -> FetchCommit:
    """The commit of a good answer, as if it had brought nothing.

    ``new`` entries and ``remarks`` are for the status line; ``title`` is the feed's,
    None if it is unchanged.
    """
    target, fetched = decision.target, decision.fetched
    change = None
    if decision.rules.push_url:
        offer = _offer(decision, polling)
        change = push_change(target.push, offer, fetched, new)
    planned = decision.plan(polling, change.push if change else None)
    polling = replace(
        polling,
        period=planned.period,
        next_reason=polling.next_reason if fetched.is_partial else planned.reason,
        price=decision.planning_context.price,
        velocity=velocity(polling.posting, fetched.at),
        message=success_line(
            fetched,
            decision.occasion,
            planned.period,
            new,
            polling.entry_count,
            remarks,
        ),
    )
    records: tuple[RecordWrite, ...] = ()
    is_recovered = decision.polling.failures and not polling.failures
    if is_recovered:
        status = decision.status(polling, planned.next_fetch, title)
        records = (RecordWrite(kind=RecordKind.RECOVERED, status=status),)
    returns = target.feed.state.is_stopped and not fetched.is_partial
    return FetchCommit(
        feed_id=target.feed.id,
        at=fetched.at,
        next_fetch=planned.next_fetch,
        polling=polling,
        state=FeedState.ACTIVE if returns else None,
        records=records,
        push=write_of(target.push, change, fetched) if change else None,
    )


def after_failure(decision: Decision, error: str) -> FetchCommit:
    """The commit of a failed fetch.

    An error is logged when it begins, and again only if somebody has subscribed
    meanwhile whom the log could not tell of it.
    """
    feed, fetched = decision.target.feed, decision.fetched
    absence = absence_after(feed, fetched, decision.rules)
    polling = _failed(decision, error, absence)
    planned = decision.plan(polling)
    line = failure_line(fetched, decision.occasion, planned.period, error)
    polling = replace(
        polling,
        period=planned.period,
        next_reason=planned.reason,
        price=decision.planning_context.price,
        message=line,
    )
    records: tuple[RecordWrite, ...] = ()
    if not feed.polling.failures or decision.target.is_error_awaited:
        status = decision.status(polling, planned.next_fetch)
        records = (RecordWrite(kind=RecordKind.ERROR, status=status),)
    return FetchCommit(
        feed_id=feed.id,
        at=fetched.at,
        next_fetch=planned.next_fetch,
        polling=polling,
        state=state_after_absence(feed.state, absence, fetched.at, decision.rules),
        records=records,
    )


def _failed(decision: Decision, error: str, absence: Absence) -> Polling:
    before, fetched = decision.polling, decision.fetched
    course = next_request_after_failure(before, fetched)
    polling = replace(
        before,
        last_fetch=fetched.at,
        code=fetched.status,
        error=error,
        failures=before.failures + 1,
        failing_since=before.failing_since or fetched.at,
        gone_sightings=absence.gone,
        missing_sightings=absence.missing,
        missing_since=absence.since,
        validators=_validators(decision),
        retry_after=retry_after(fetched),
        fetch_url=course.fetch_url,
        redirect=course.redirect,
        subscribers=decision.target.subscribers,
    )
    if decision.understood.error is None:
        return polling
    return replace(
        polling,
        body_hash=body_hash(fetched.body),
        body_error=error,
        fresh_until=fresh_until(before, fetched),
    )


def _validators(decision: Decision) -> Validators | None:
    """The validators from now on; None after a document of an unreadable version.

    The server may come to offer an older version, which a 304 would hide.
    """
    if isinstance(decision.understood.error, UnsupportedVersion):
        return None
    return next_validators(decision.polling, decision.fetched)


def after_unreadable(decision: Decision, error: str) -> FetchCommit:
    """The commit of a publisher's push that cannot be read: a remark, but not a failure
    of the feed."""
    planned = decision.plan(decision.polling)
    line = failure_line(decision.fetched, decision.occasion, planned.period, error)
    return FetchCommit(
        feed_id=decision.target.feed.id,
        at=decision.fetched.at,
        next_fetch=planned.next_fetch,
        polling=replace(decision.polling, message=line),
    )


def _offer(decision: Decision, polling: Polling) -> PushOffer | None:
    """The offer of the document; if none was read whole, the offer known before.

    Parts of pages, sites, and feeds with credentials cannot be pushed.
    """
    target, fetched = decision.target, decision.fetched
    document = decision.understood.feed
    if document is None or fetched.is_partial:
        return target.push.offer if target.push else None
    is_part = document.format is FeedFormat.PART
    if is_part or document.format.is_site or target.credentials is not None:
        return None
    url = polling.fetch_url or target.feed.url
    return offer_of(fetched, document.feed, url, decision.rules.push_url)


def after_useless_push(decision: Decision, error: str) -> FetchCommit:
    """The commit of a push that is not the feed's document: the feed itself is polled
    soon."""
    target, fetched = decision.target, decision.fetched
    change = after_useless(target.push or NOTHING, fetched.at)
    planned = decision.plan(decision.polling)
    why = error or "its hub pushed a document of another feed"
    line = failure_line(fetched, decision.occasion, planned.period, why)
    soon = hint_time(fetched, decision.polling)
    polling = replace(decision.polling, message=line)
    if soon < planned.next_fetch:
        polling = replace(polling, next_reason=PollReason.WOKEN_BY_PUSH)
    return FetchCommit(
        feed_id=target.feed.id,
        at=fetched.at,
        next_fetch=min(soon, planned.next_fetch),
        polling=polling,
        push=write_of(target.push, change, fetched),
    )


# --- the poll in the feed's history --------------------------------------------------

_MILLISECOND = timedelta(milliseconds=1)


def poll_of(decision: Decision, commit: FetchCommit, new: int | None = None) -> Poll:
    """The poll that ends with a commit.

    ``new``: how many entries subscribers were notified of; None: those that the commit
    itself brings.
    """
    fetched = decision.fetched
    outcome = _outcome(decision, commit)
    entries = 0
    if outcome is PollOutcome.FIRST:
        entries = commit.polling.entry_count
    elif outcome is PollOutcome.UNCHANGED:
        outcome, entries = _found(commit, new)
    reason = decision.reason  # unless the content was pushed or published
    if fetched.is_pushed:
        reason = PollReason.PUSHED
    elif fetched.is_partial:
        reason = PollReason.PUBLISHED
    elif decision.polling.last_fetch is None:
        reason = PollReason.FIRST_FETCH
    spent = (fetched.at - fetched.started) // _MILLISECOND
    return Poll(
        at=fetched.at,
        reason=reason,
        outcome=outcome,
        code=fetched.status,
        milliseconds=max(0, spent),
        entries=entries,
    )


def _outcome(decision: Decision, commit: FetchCommit) -> PollOutcome:
    """The outcome of a poll, as if it had brought nothing new."""
    before, fetched = decision.polling, decision.fetched
    if fetched.error:
        return PollOutcome.FAILED
    if fetched.is_partial:
        is_read = commit.polling.last_parse == fetched.at
        return PollOutcome.UNCHANGED if is_read else PollOutcome.UNREADABLE
    if commit.polling.error:
        return PollOutcome.UNREADABLE
    is_first = before.last_success is None
    return PollOutcome.FIRST if is_first else PollOutcome.UNCHANGED


def _found(commit: FetchCommit, new: int | None) -> tuple[PollOutcome, int]:
    if new is None:
        news = [each for each in commit.records if each.kind is RecordKind.ENTRIES]
        new = sum([len(each.entries) for each in news])
    if new:
        return PollOutcome.NEW, new
    changed = len(commit.entries) + len(commit.deletions)
    if changed or any(each.kind is RecordKind.CONTENT for each in commit.records):
        return PollOutcome.CHANGED, changed
    return PollOutcome.UNCHANGED, 0
