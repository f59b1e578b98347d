"""What a fetch, or a push taken for one, comes to for the feed's push."""

from __future__ import annotations

from hub.core.decision import Decision
from hub.core.push.offers import offer_of
from hub.core.push.trust import (
    NOTHING,
    PushChange,
    after_useless,
    hint_time,
    push_change,
    write_of,
)
from hub.core.status import failure_line
from protocols.model import FeedFormat
from protocols.quick import changed
from storage.records import FetchCommit, Polling, PushOffer


def change_of_push(decision: Decision, polling: Polling, new: int) -> PushChange | None:
    """After a good answer with ``new`` entries; None: nobody may push here."""
    if not decision.rules.push_url:
        return None
    offer = _offer(decision, polling)
    return push_change(decision.target.push, offer, decision.fetched, new)


def _offer(decision: Decision, polling: Polling) -> PushOffer | None:
    """What the document offers, if one was read; parts of pages and sites cannot be
    pushed, and what takes credentials is not for its hub."""
    target, fetched = decision.target, decision.fetched
    document = decision.understood.feed
    if document is None or fetched.is_partial:
        return target.push.offer if target.push else None
    is_part = document.format is FeedFormat.PART
    if is_part or document.format.is_site or target.credentials is not None:
        return None
    url = polling.fetch_url or target.feed.url
    return offer_of(fetched, document.feed, url, decision.rules.push_url)


def after_nonsense(decision: Decision, trouble: str) -> FetchCommit:
    """A hub signed what is not the feed's: the feed itself is asked soon instead."""
    target, fetched = decision.target, decision.fetched
    change = after_useless(target.push or NOTHING, fetched.at)
    planned = decision.plan(decision.polling)
    why = trouble or "its hub pushed a document of another feed"
    line = failure_line(fetched, decision.occasion, planned.period, why)
    soon = hint_time(fetched, decision.polling)
    return FetchCommit(
        feed_id=target.feed.id,
        at=fetched.at,
        next_fetch=min(soon, planned.next_fetch),
        polling=changed(decision.polling, message=line),
        push=write_of(target.push, change, fetched),
    )
