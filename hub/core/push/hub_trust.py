"""Whether a feed's hub is trusted to push everything new, so that polls are rare.

A hub earns trust by consecutive pushes of entries that no poll had found. A poll that
finds entries first counts against the hub, unless the push follows soon and was only
slower; then twice as much proof is needed. All of this is stored with the fetch in
which it happened.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from hub.core.fetched import Fetched, ParseOutcome
from hub.core.push.hub_offers import marks_of
from storage.records import Polling, Push, PushCount, PushOffer, PushWrite

GRACE = timedelta(minutes=10)
"""How long after the poll that found its news first a push may still come."""
MOST_NEEDED = 16
NOTHING = Push(offer=None)
HINT_PAUSE = timedelta(minutes=1)
"""The shortest time between a fetch and the next one that useless pushes can cause."""


class PushChange(msgspec.Struct, frozen=True, kw_only=True):
    """The changes by a fetch to a feed's push."""

    push: Push
    counted: tuple[PushCount, ...] = ()
    is_useless: bool = False  # the feed has yet to be polled for the news


def is_trusted(push: Push | None, at: datetime) -> bool:
    """Whether polls may be rare: not while something missed is yet to be judged, nor
    without a subscription that lasts."""
    if push is None or push.offer is None or push.until is None or push.until <= at:
        return False
    return push.record.missed_at is None and push.record.proofs >= push.record.needed


def is_useless(push: Push | None, understood: ParseOutcome) -> bool:
    """Whether a push is empty, or not a document of the feed: a hub may sign and send
    another feed's document. A document is not believed if it names neither the feed's
    id nor its address nor its site, or names only another id and address."""
    if push is None or push.offer is None or understood.error is not None:
        return True
    document = understood.feed
    if document is None:  # the bytes are known
        return False
    known = {*push.offer.marks, f"https://{push.offer.topic.partition('://')[2]}"}
    return document.format.is_site or known.isdisjoint(marks_of(document.feed))


def push_change(
    before: Push | None, offer: PushOffer | None, fetched: Fetched, new: int
) -> PushChange:
    """The change by a good answer. ``new``: how many of its entries were unknown;
    ``offer``: what the feed offers now."""
    push = before or NOTHING
    if _target(offer) != _target(push.offer):  # of another hub nothing is known
        record = replace(push.record, proofs=0, needed=2, missed_at=None)
        return PushChange(push=replace(push, offer=offer, record=record))
    return _after_news(replace(push, offer=offer), fetched, new)


def _after_news(push: Push, fetched: Fetched, new: int) -> PushChange:
    push = _judged(push, fetched.at)
    if fetched.is_pushed:
        return _after_push(push, fetched.at, new)
    if fetched.is_partial or push.until is None:
        return PushChange(push=push)  # brought by its publisher, or no subscription
    if _is_hinted(push, fetched):
        return _after_push(push, fetched.at, new)
    return _after_miss(push, fetched.at) if new else PushChange(push=push)


def after_useless(push: Push, at: datetime) -> PushChange:
    """The change after a push that was of no use, but may mean that there is something
    new."""
    record = replace(push.record, foreign=push.record.foreign + 1, proofs=0)
    hinted = replace(push, record=record, hinted_at=push.hinted_at or at)
    return PushChange(push=hinted, counted=(PushCount.FOREIGN,), is_useless=True)


def write_of(
    before: Push | None, after: PushChange, fetched: Fetched
) -> PushWrite | None:
    """What is to be stored of a change; None if nothing is."""
    was, push = before or NOTHING, after.push
    until = None if after.is_useless else _heeded_until(fetched)
    heeds = until and push.hinted_at is not None and push.hinted_at <= until
    if push == was and not heeds:
        return None
    is_doubted = push.record.missed > was.record.missed and is_trusted(was, fetched.at)
    return PushWrite(
        push=push,
        is_turned=is_doubted or _target(push.offer) != _target(was.offer),
        heeded_until=until if heeds else None,
        counted=after.counted,
    )


def _heeded_until(fetched: Fetched) -> datetime | None:
    """Up to when this fetch takes up hints.

    A push says nothing of hints that came after it; an answer of the feed itself has
    everything that there was when it was asked.
    """
    if fetched.is_pushed:
        return fetched.heeds_until
    return None if fetched.is_partial else fetched.started


def _target(offer: PushOffer | None) -> tuple[str, str] | None:
    return (offer.hub, offer.topic) if offer else None


def _is_hinted(push: Push, fetched: Fetched) -> bool:
    return push.hinted_at is not None and push.hinted_at <= fetched.started


def _judged(push: Push, at: datetime) -> Push:
    """A missed entry counts against the hub once no push has followed in time."""
    record = push.record
    if record.missed_at is None or at - record.missed_at <= GRACE:
        return push
    stricter = min(2 * record.needed, MOST_NEEDED)
    return replace(
        push, record=replace(record, proofs=0, needed=stricter, missed_at=None)
    )


def _after_push(push: Push, at: datetime, new: int) -> PushChange:
    record = replace(push.record, pushed_at=at)
    if new:
        proofs = min(record.proofs + 1, MOST_NEEDED)
        brought = replace(record, proofs=proofs, brought=record.brought + 1)
        return PushChange(
            push=replace(push, record=brought), counted=(PushCount.BROUGHT,)
        )
    if record.missed_at is not None:
        late = replace(record, missed_at=None, late=record.late + 1)
        return PushChange(push=replace(push, record=late), counted=(PushCount.LATE,))
    return PushChange(push=replace(push, record=record))


def _after_miss(push: Push, at: datetime) -> PushChange:
    record = replace(
        push.record,
        missed=push.record.missed + 1,
        missed_at=push.record.missed_at or at,
    )
    return PushChange(push=replace(push, record=record), counted=(PushCount.MISSED,))


def hint_time(fetched: Fetched, polling: Polling) -> datetime:
    """When a feed is polled because a push was useless."""
    allowed = [fetched.at]
    if polling.last_fetch is not None:
        allowed.append(polling.last_fetch + HINT_PAUSE)
    if polling.retry_after is not None:
        allowed.append(polling.retry_after)
    return max(allowed)
