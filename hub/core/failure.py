"""After an answer that is trouble: what is committed of it."""

from __future__ import annotations

from hub.core.bodies import body_hash
from hub.core.decision import Decision
from hub.core.freshness import fresh_until, retry_after
from hub.core.redirects import course_after_failure
from hub.core.status import failure_line
from hub.core.stopping import Absence, absence_after, state_after_absence
from hub.core.validators import next_validators
from protocols.errors import UnsupportedVersion
from protocols.quick import changed
from storage.records import (
    FetchCommit,
    Polling,
    RecordKind,
    RecordWrite,
    Validators,
)


def after_failure(decision: Decision, trouble: str) -> FetchCommit:
    """Trouble that begins is told of; what goes on only if somebody has subscribed to
    the feed meanwhile whom the log could not tell."""
    feed, fetched = decision.target.feed, decision.fetched
    absence = absence_after(feed, fetched, decision.rules)
    polling = _failed(decision, trouble, absence)
    planned = decision.plan(polling)
    line = failure_line(fetched, decision.occasion, planned.period, trouble)
    price = decision.outlook.price
    polling = changed(polling, period=planned.period, price=price, message=line)
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


def _failed(decision: Decision, trouble: str, absence: Absence) -> Polling:
    before, fetched = decision.polling, decision.fetched
    course = course_after_failure(before, fetched)
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
        validators=_validators(decision),
        retry_after=retry_after(fetched),
        fetch_url=course.fetch_url,
        redirect=course.redirect,
        subscribers=decision.target.subscribers,
    )
    if decision.understood.error is None:
        return polling
    return changed(
        polling,
        body_hash=body_hash(fetched.body),
        body_error=trouble,
        fresh_until=fresh_until(before, fetched),
    )


def _validators(decision: Decision) -> Validators | None:
    """None for a version that nobody here reads: an older one may come to stand beside
    it, and a 304 would not have that looked for."""
    if isinstance(decision.understood.error, UnsupportedVersion):
        return None
    return next_validators(decision.polling, decision.fetched)


def after_unreadable(decision: Decision, trouble: str) -> FetchCommit:
    """What a publisher brought is no document: a remark, and no failure of its feed."""
    planned = decision.plan(decision.polling)
    line = failure_line(decision.fetched, decision.occasion, planned.period, trouble)
    return FetchCommit(
        feed_id=decision.target.feed.id,
        at=decision.fetched.at,
        next_fetch=planned.next_fetch,
        polling=changed(decision.polling, message=line),
    )
