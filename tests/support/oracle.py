"""The judge of a crash test: what was published, what arrived, and what must follow.

It stands outside the hub: it knows what its publisher published, what its subscribers
received, and when the hub was killed, and believes nothing else. `judge` returns every
broken promise as a sentence; an empty list is the proof.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, pairwise

from tests.support.subscribers import Receipt, Subscriber

AS_IS = "as-is"


@dataclass(frozen=True, slots=True)
class Kill:
    """When a process was killed, and the lag of its machine then."""

    at: float
    lag: float = 0.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that the oracle knows.

    ``expected``: for each feed the first and the last number that all its subscribers
    must have. ``kills``: those of the processes, by the hub URL that each gave itself.
    ``window``: the seconds before a kill in which an acknowledgement may have been
    lost. Besides, a killed process may have left ``in_flight`` answers unread, but none
    for longer than ``reading``. ``dead``: callbacks that the hub lists as given up.
    ``gapped``: feeds of which the hub was shown documents without earlier entries; it
    may tell these entries in any order, but in the same one to all.
    """

    subscribers: Sequence[Subscriber]
    expected: Mapping[int, tuple[int, int]]
    kills: Mapping[str, Kill] = field(default_factory=dict)
    window: float = 0.0
    in_flight: int = 0
    reading: float = 0.0
    dead: frozenset[str] = frozenset()
    gapped: frozenset[int] = frozenset()


def judge(evidence: Evidence) -> list[str]:
    """Return every broken promise; none if the hub did what it says."""
    return [
        f"{subscriber.name} ({subscriber.format}): {complaint}"
        for subscriber in evidence.subscribers
        for complaint in _complaints(subscriber, evidence)
    ] + [*_too_much_in_flight(evidence), *_contradictions(evidence)]


def missing(subscriber: Subscriber, evidence: Evidence) -> set[int]:
    """Numbers that have not arrived; an as-is subscriber needs the latest document."""
    first, last = evidence.expected[subscriber.feed]
    first = max(first, subscriber.first)
    if subscriber.has_left:  # an entry told before earlier ones leaves no hole
        is_gapped = subscriber.feed in evidence.gapped
        last = 0 if is_gapped else max(subscriber.numbers, default=0)
    if subscriber.url in evidence.dead or last < first:
        return set()
    if subscriber.format == AS_IS:
        return {last} - set(subscriber.numbers) - subscriber.excused
    return set(range(first, last + 1)) - set(subscriber.numbers) - subscriber.excused


def with_news(subscriber: Subscriber) -> Subscriber:
    """The subscriber without its notifications about errors, which have no entries."""
    return replace(
        subscriber, receipts=[each for each in subscriber.receipts if each.entries]
    )


def duplicates(
    subscriber: Subscriber, kills: Mapping[str, Kill]
) -> Iterator[tuple[Receipt, Receipt]]:
    """Accepted notifications that came again, each with the one sent before it."""
    never = Kill(math.inf)
    as_sent = sorted(
        subscriber.accepted, key=lambda receipt: kills.get(receipt.hub, never).at
    )
    by_id: dict[str, list[Receipt]] = {}
    for receipt in as_sent:
        by_id.setdefault(receipt.delivery_id, []).append(receipt)
    for receipts in by_id.values():
        yield from pairwise(receipts)


def age_at_kill(
    earlier: Receipt, later: Receipt, kills: Mapping[str, Kill]
) -> float | None:
    """Seconds from the earlier answer to the kill that explains the later copy.

    None if nothing explains it. Only the death of the process that sent the earlier one
    does, and only a copy from another process. What a process had sent may be read, and
    answered, after its end.
    """
    if earlier.hub == later.hub or earlier.hub not in kills:
        return None
    return max(0.0, kills[earlier.hub].at - earlier.answered)


def _complaints(subscriber: Subscriber, evidence: Evidence) -> Iterator[str]:
    lost = missing(subscriber, evidence)
    if lost:
        yield f"never received {sorted(lost)}"
    yield from _misdirected(subscriber)
    yield from _unexplained_copies(subscriber, evidence)
    yield from _overlaps(subscriber, evidence)
    is_gapped = subscriber.feed in evidence.gapped
    if subscriber.format == AS_IS:
        yield from () if is_gapped else _older_documents(subscriber)
    else:
        yield from () if is_gapped else _disorder(subscriber)
        yield from _told_twice(subscriber)
        yield from _unstable_ids(subscriber)


def _misdirected(subscriber: Subscriber) -> Iterator[str]:
    for receipt in subscriber.receipts:
        foreign = [entry for entry in receipt.entries if entry[0] != subscriber.feed]
        if foreign:
            yield f"received entries of another feed: {foreign}"
        if not receipt.signature_valid:
            yield f"received {receipt.delivery_id} with a signature that is not its own"


def _unexplained_copies(subscriber: Subscriber, evidence: Evidence) -> Iterator[str]:
    for earlier, later in duplicates(subscriber, evidence.kills):
        age = age_at_kill(earlier, later, evidence.kills)
        if age is None:
            yield f"received {later.entries} twice without a kill between"
        elif age > max(evidence.window, evidence.reading) + _lag(earlier, evidence):
            yield (
                f"received {later.entries} again although it had answered"
                f" {age * 1000:.0f} ms before the kill"
            )


def _too_much_in_flight(evidence: Evidence) -> list[str]:
    """Complain of too many answers that came long before a kill, and were unread."""
    unread = Counter(
        earlier.hub
        for subscriber in evidence.subscribers
        for earlier, later in duplicates(subscriber, evidence.kills)
        if (age_at_kill(earlier, later, evidence.kills) or 0.0)
        > evidence.window + _lag(earlier, evidence)
    )
    return [
        f"{hub}: {count} notifications came again that were answered long before"
        for hub, count in unread.items()
        if count > evidence.in_flight
    ]


def _lag(receipt: Receipt, evidence: Evidence) -> float:
    kill = evidence.kills.get(receipt.hub)
    return 0.0 if kill is None else kill.lag


def _overlaps(subscriber: Subscriber, evidence: Evidence) -> Iterator[str]:
    """Complain of two notifications of a process that overlap for a subscription.

    What was sent before a process ended may still be under way when the next one sends
    another, or the same again.
    """
    by_subscription: dict[str, list[Receipt]] = {}
    for receipt in sorted(subscriber.receipts, key=lambda receipt: receipt.started):
        _, _, subscription = receipt.delivery_id.rpartition("-")
        by_subscription.setdefault(subscription, []).append(receipt)
    for earlier, later in chain.from_iterable(map(pairwise, by_subscription.values())):
        hubs = {earlier.hub, later.hub}
        was_killed = len(hubs) == 2 and not hubs.isdisjoint(evidence.kills)
        is_back = any(
            earlier.started <= moment <= later.started for moment in subscriber.returns
        )
        if later.started < earlier.answered and not (was_killed or is_back):
            yield f"received {later.entries} before it had answered {earlier.entries}"


def _disorder(subscriber: Subscriber) -> Iterator[str]:
    """Complain of entries that first arrive in another order than was published."""
    highest = 0
    known: set[int] = set()
    for receipt in subscriber.accepted:
        fresh = {number for _feed, number in receipt.entries} - known
        if fresh and min(fresh) < highest:
            yield f"received {sorted(fresh)} after {highest}"
        known |= fresh
        highest = max(known, default=0)


def _unstable_ids(subscriber: Subscriber) -> Iterator[str]:
    """Complain of a notification whose tries have different ids."""
    ids: dict[tuple[tuple[int, int], ...], str] = {}
    for receipt in subscriber.receipts:
        known = ids.setdefault(receipt.entries, receipt.delivery_id)
        if known != receipt.delivery_id:
            yield f"{receipt.entries} came as {known} and as {receipt.delivery_id}"


def _contradictions(evidence: Evidence) -> Iterator[str]:
    """Complain of subscribers of a feed that got entries in different orders."""
    ordered = [each for each in evidence.subscribers if each.format != AS_IS]
    for one, other in combinations(ordered, 2):
        if one.feed != other.feed or one.feed not in evidence.gapped:
            continue
        mine, theirs = _turns(one), _turns(other)
        common = sorted(mine.keys() & theirs.keys(), key=lambda it: (mine[it], it))
        for former, number in combinations(common, 2):
            if mine[former] < mine[number] and theirs[former] > theirs[number]:
                yield f"{one.name} was told {former} before {number}, not {other.name}"


def _turns(subscriber: Subscriber) -> dict[int, int]:
    """For each number, the accepted notification with which it first came."""
    turns: dict[int, int] = {}
    for turn, receipt in enumerate(subscriber.accepted):
        for _feed, number in receipt.entries:
            turns.setdefault(number, turn)
    return turns


def _told_twice(subscriber: Subscriber) -> Iterator[str]:
    """Complain of an entry that is news in two notifications."""
    ids: dict[tuple[int, int], str] = {}
    for receipt in subscriber.accepted:
        for entry in receipt.entries:
            known = ids.setdefault(entry, receipt.delivery_id)
            if known != receipt.delivery_id:
                yield f"was told {entry} as {known} and as {receipt.delivery_id}"


def _older_documents(subscriber: Subscriber) -> Iterator[str]:
    highest = 0
    for receipt in subscriber.accepted:
        newest = max((number for _feed, number in receipt.entries), default=0)
        if newest < highest:
            yield f"received the document of entry {newest} after that of {highest}"
        highest = max(highest, newest)
