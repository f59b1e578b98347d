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
