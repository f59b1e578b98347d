"""Topics that are not feeds, or parts of a resource: each new state is an entry.

A part has one state at a time, and states have no names. So each gets an id when it is
first seen, and a state that returns after another is new again. A document that is not
a feed is sent unchanged to as-is subscriptions: its content is not parsed, only
compared.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

import orjson
from msgspec.structs import replace

from hub.core.fetched import Fetched, ParseOutcome, body_hash, whole_body
from hub.core.news.decision import Decision
from hub.core.news.fetch_commit import quiet_commit, succeeded
from hub.core.schedule.posting_profile import count_change, posting_history
from protocols.http import OCTET_STREAM
from protocols.identity import content_hash
from protocols.model import Entry, ParsedFeed
from protocols.protocol_errors import EmptyDocument, LimitExceeded
from protocols.urls import selector_of
from storage.records import FetchCommit, FetchTarget, Posting, RecordKind, RecordWrite


def state_of(document: ParsedFeed) -> str:
    """A hash of a part's content, whatever its markup does to blanks and counters."""
    return content_hash(document.entries[0])


def as_news(document: ParsedFeed, at: datetime) -> ParsedFeed:
    """The part as an entry of its own, first seen at that time."""
    return replace(document, entries=(_dated(document.entries[0], at),))


def _dated(entry: Entry, at: datetime) -> Entry:
    id = f"{entry.id}:{at:%Y%m%dT%H%M%S%f}"
    return replace(entry, key=id, id=id, published=at, updated=at)


def is_content(target: FetchTarget, fetched: Fetched, understood: ParseOutcome) -> bool:
    """Whether a good answer that is no feed is the topic's content, and no error.

    That requires as-is subscriptions, and a topic that never was a feed: a feed whose
    server answers with a page about its maintenance has failed.
    """
    if fetched.error or understood.feed is not None or target.feed.format:
        return False
    if selector_of(target.feed.url):
        return False  # the topic is a part, and not the whole
    is_unusable = isinstance(understood.error, EmptyDocument | LimitExceeded)
    return target.keeps_body and not is_unusable


def resource_hash(body: bytes) -> str:
    """The identity of a resource's content, in hex.

    JSON is the same in any order and spacing; everything else is compared by its bytes.
    """
    if body[:1] in (b"{", b"["):
        with suppress(ValueError, TypeError):  # no JSON, or nested too deep
            body = orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS)
    return body_hash(body)


def after_content(decision: Decision) -> FetchCommit:
    """The commit of an answer that is no feed: it is compared, not understood."""
    before, fetched = decision.polling, decision.fetched
    digest = resource_hash(fetched.body)
    is_same = before.is_resource and digest == before.body_hash
    if fetched.status == 304 or is_same:
        polling = replace(succeeded(decision, 0), unchanged=before.unchanged + 1)
        return quiet_commit(decision, replace(polling, body_error=""))
    polling = replace(
        succeeded(decision, 0),
        body_hash=digest,
        body_error="",
        is_resource=True,
        unchanged=0,
        posting=_change_posting(decision),
    )
    commit = quiet_commit(decision, polling)
    commit = replace(commit, body=whole_body(fetched, OCTET_STREAM))
    # Before anybody wanted it unparsed, it was an error, known by its bytes alone.
    if before.body_hash in ("", digest, body_hash(fetched.body)):
        return commit  # the first document is no news
    status = decision.status(commit.polling, commit.next_fetch)
    content = RecordWrite(kind=RecordKind.CONTENT, status=status)
    return replace(commit, records=(*commit.records, content))


def _change_posting(decision: Decision) -> Posting:
    """Count each change as a post."""
    before, at = decision.polling, decision.fetched.at
    if not before.body_hash:
        return posting_history((), at)
    return count_change(before.posting, before.last_success, at)
