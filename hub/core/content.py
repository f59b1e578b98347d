"""Topics that are no feeds, for those who want a topic just as it is."""

from __future__ import annotations

from contextlib import suppress

import orjson

from hub.core.bodies import body_hash, whole_body
from hub.core.decision import Decision
from hub.core.fetched import Fetched, Understood
from hub.core.posting import count_change, posting_history
from hub.core.success import quiet_commit, succeeded
from protocols.errors import EmptyDocument, LimitExceeded
from protocols.http import OCTET_STREAM
from protocols.quick import changed
from protocols.selectors import selector_of
from storage.records import (
    FetchCommit,
    FetchTarget,
    Posting,
    RecordKind,
    RecordWrite,
)


def is_content(target: FetchTarget, fetched: Fetched, understood: Understood) -> bool:
    """Whether a good answer that is no feed is no trouble, but the topic itself.

    It takes subscriptions that are as-is, and a topic that never was a feed: a feed
    whose server answers with a page about its maintenance is in trouble.
    """
    if fetched.error or understood.feed is not None or target.feed.format:
        return False
    if selector_of(target.feed.url):
        return False  # the topic is a part, and not the whole
    is_unusable = isinstance(understood.error, EmptyDocument | LimitExceeded)
    return target.keeps_body and not is_unusable


def content_hash(body: bytes) -> str:
    """The identity of what a resource says, in hex: of JSON in any order and spacing,
    and of the bytes of all else."""
    if body[:1] in (b"{", b"["):
        with suppress(ValueError, TypeError):  # no JSON, or nested too deep
            body = orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS)
    return body_hash(body)


def after_content(decision: Decision) -> FetchCommit:
    """No feed: what it says is not understood, only that it is no longer the same."""
    before, fetched = decision.polling, decision.fetched
    digest = content_hash(fetched.body)
    is_same = before.is_resource and digest == before.body_hash
    if fetched.status == 304 or is_same:
        polling = changed(succeeded(decision, 0), unchanged=before.unchanged + 1)
        return quiet_commit(decision, changed(polling, body_error=""))
    polling = changed(
        succeeded(decision, 0),
        body_hash=digest,
        body_error="",
        is_resource=True,
        unchanged=0,
        posting=_posting(decision),
    )
    commit = quiet_commit(decision, polling)
    commit = changed(commit, body=whole_body(fetched, OCTET_STREAM))
    # While nobody wanted it as it is, it was in trouble, known by its bytes alone.
    if before.body_hash in ("", digest, body_hash(fetched.body)):
        return commit  # the first document is no news
    status = decision.status(commit.polling, commit.next_fetch)
    content = RecordWrite(kind=RecordKind.CONTENT, status=status)
    return changed(commit, records=(*commit.records, content))


def _posting(decision: Decision) -> Posting:
    """Each change counts as a post."""
    before, at = decision.polling, decision.fetched.at
    if not before.body_hash:
        return posting_history((), at)
    return count_change(before.posting, before.last_success, at)
