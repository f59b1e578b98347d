"""How long the latest requests to callbacks took, of those that are not always fast.

Everything is in memory and bounded. What was before the start of the hub comes from the
requests that storage keeps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from storage.records import SubscriptionId, TimedRequest

NOTICED_MILLISECONDS: Final = 100
"""A callback is noticed with the first request that takes so long, and its requests
are remembered from then on."""
REQUESTS: Final = 16
"""The latest requests of a callback that are remembered."""
MOST_CALLBACKS: Final = 2_000
"""Callbacks that are remembered; beyond that the fastest quarter is dropped."""

EarlierRequests = dict[SubscriptionId, list[TimedRequest]]
"""The latest requests to callbacks, at most `REQUESTS` of each, the latest first; the
slowest callbacks first, by their median."""


def by_callback(requests: Sequence[TimedRequest]) -> EarlierRequests:
    """The requests, which are the latest first, by their callbacks."""
    found = EarlierRequests()
    for each in requests:
        of_it = found.setdefault(each.subscription_id, [])
        if len(of_it) < REQUESTS:
            of_it.append(each)
    slowest = sorted(found, key=lambda id: _median(found[id]), reverse=True)
    return {id: found[id] for id in slowest}


def _median(requests: Sequence[TimedRequest]) -> int:
    return sorted(each.milliseconds for each in requests)[len(requests) // 2]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackDuration:
    """The latest requests to one subscription's callback, at most `REQUESTS`; so many
    of them ``failed``. ``last``: when the latest was over."""

    subscription_id: SubscriptionId
    requests: int
    failed: int
    median_milliseconds: int
    slowest_milliseconds: int
    last: datetime


@dataclass(slots=True)
class _Recent:
    last: float = 0.0
    taken: deque[tuple[int, bool]] = field(
        default_factory=lambda: deque(maxlen=REQUESTS)
    )
    """Milliseconds, and whether it was delivered."""

    def median(self) -> int:
        return sorted(self.taken)[len(self.taken) // 2][0]


class CallbackDurations:
    def __init__(self, *, capacity: int = MOST_CALLBACKS) -> None:
        self._capacity = capacity
        self._recent = dict[SubscriptionId, _Recent]()
        self._has_dropped = False

    def note(
        self,
        subscription_id: SubscriptionId,
        milliseconds: int,
        *,
        at: float,
        is_delivered: bool,
    ) -> None:
        """Note that a request to the subscription's callback was over ``at`` that time,
        in Unix seconds. Called for each."""
        recent = self._recent.get(subscription_id)
        if recent is None:
            if milliseconds < NOTICED_MILLISECONDS:
                return
            recent = self._add(subscription_id)
        recent.taken.append((milliseconds, is_delivered))
        recent.last = at

    def add_earlier(self, requests: EarlierRequests) -> None:
        """Add requests that were over before all that were noted.

        Nothing makes room for them: of callbacks that are not remembered the slowest
        are added, and none if any was dropped, which may be the same ones.
        """
        room = 0 if self._has_dropped else self._capacity - len(self._recent)
        for id, earlier in requests.items():
            recent = self._recent.get(id)
            if recent is None:
                if room <= 0 or not _is_noticed(earlier):
                    continue
                recent = self._recent[id] = _Recent()
                room -= 1
            for each in earlier[: REQUESTS - len(recent.taken)]:
                recent.taken.appendleft((each.milliseconds, each.is_delivered))
                recent.last = max(recent.last, each.at.timestamp())

    def _add(self, subscription_id: SubscriptionId) -> _Recent:
        if len(self._recent) >= self._capacity:
            self._drop_fastest()
        recent = self._recent[subscription_id] = _Recent()
        return recent

    def forget(self, ids: Iterable[SubscriptionId]) -> None:
        for each in ids:
            self._recent.pop(each, None)

    def slowest(self, limit: int) -> list[CallbackDuration]:
        """Those whose requests typically take longest, by their median, without those
        that were noticed once and have been fast in all that are remembered."""
        found = [
            CallbackDuration(
                subscription_id=id,
                requests=len(each.taken),
                failed=sum(not is_delivered for _, is_delivered in each.taken),
                median_milliseconds=each.median(),
                slowest_milliseconds=max(each.taken)[0],
                last=datetime.fromtimestamp(each.last, UTC),
            )
            for id, each in self._recent.items()
            if max(each.taken)[0] >= NOTICED_MILLISECONDS
        ]
        found.sort(key=lambda each: each.median_milliseconds, reverse=True)
        return found[:limit]

    def _drop_fastest(self) -> None:
        by_median = sorted(self._recent, key=lambda id: self._recent[id].median())
        self.forget(by_median[: self._capacity // 4])
        self._has_dropped = True


def _is_noticed(requests: Sequence[TimedRequest]) -> bool:
    return any(each.milliseconds >= NOTICED_MILLISECONDS for each in requests)
