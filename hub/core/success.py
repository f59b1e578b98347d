"""After a good answer: what is committed even if it says nothing new."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from hub.core.decision import Decision
from hub.core.freshness import fresh_until, retry_after
from hub.core.hubs import hubs_of_header, validator_of_header
from hub.core.posting import velocity
from hub.core.push.outcomes import change_of_push
from hub.core.push.trust import write_of
from hub.core.redirects import course_after_success
from hub.core.status import success_line
from hub.core.validators import next_validators
from protocols.quick import changed
from storage.records import FeedState, FetchCommit, Polling, RecordKind, RecordWrite


def after_sameness(decision: Decision) -> FetchCommit:
    """A 304, or a 200 with the bytes that are known: all is well, nothing is new."""
    return quiet_commit(decision, succeeded(decision, 0))


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
    unless it is as it was.
    """
    target, fetched = decision.target, decision.fetched
    change = change_of_push(decision, polling, new)
    planned = decision.plan(polling, change.push if change else None)
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
