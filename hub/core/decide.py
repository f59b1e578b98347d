"""From a finished fetch to everything it changes, as one commit.

Pure: the poller fetches and parses before, and applies the result after.
"""

from __future__ import annotations

from hub.core.content import after_content, is_content
from hub.core.decision import Decision
from hub.core.document import after_document
from hub.core.failure import after_failure, after_unreadable
from hub.core.push.outcomes import after_nonsense
from hub.core.push.trust import is_useless
from hub.core.success import after_sameness
from hub.core.trouble import diagnose
from storage.records import FetchCommit


def decide(decision: Decision) -> FetchCommit:
    """The whole commit of one fetch."""
    fetched, understood = decision.fetched, decision.understood
    if is_content(decision.target, fetched, understood):
        return after_content(decision)
    trouble = diagnose(decision.polling, fetched, understood)
    if fetched.is_pushed and is_useless(decision.target.push, understood):
        return after_nonsense(decision, trouble)
    if trouble and fetched.is_partial:
        return after_unreadable(decision, trouble)
    if trouble:
        return after_failure(decision, trouble)
    if understood.feed is None:
        return after_sameness(decision)
    return after_document(decision, understood.feed)
