"""What a feed's history keeps of a poll: its outcome, its findings, and its reason."""

from __future__ import annotations

from datetime import timedelta

from hub.core.news.decision import Decision
from storage.records import FetchCommit, Poll, PollOutcome, PollReason, RecordKind

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
        outcome, entries = _found(commit, _new(commit) if new is None else new)
    spent = (fetched.at - fetched.started) // _MILLISECOND
    return Poll(
        at=fetched.at,
        reason=_reason(decision),
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


def _found(commit: FetchCommit, new: int) -> tuple[PollOutcome, int]:
    if new:
        return PollOutcome.NEW, new
    changed = len(commit.entries) + len(commit.deletions)
    if changed or any(each.kind is RecordKind.CONTENT for each in commit.records):
        return PollOutcome.CHANGED, changed
    return PollOutcome.UNCHANGED, 0


def _new(commit: FetchCommit) -> int:
    told = (each for each in commit.records if each.kind is RecordKind.ENTRIES)
    return sum(len(each.entries) for each in told)


def _reason(decision: Decision) -> PollReason:
    """Why the poll was made; pushed or published content has its own reason."""
    if decision.fetched.is_pushed:
        return PollReason.PUSHED
    if decision.fetched.is_partial:
        return PollReason.PUBLISHED
    is_first = decision.polling.last_fetch is None
    return PollReason.FIRST_FETCH if is_first else decision.reason
