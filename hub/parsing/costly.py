"""Sources whose documents took a worker's time not long ago.

One feed must not have the workers to itself, however often its publisher says that
there is news. What took the whole time is not tried again for a while; and from then on
all documents of that owner wait in a line of their own.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeVar
from urllib.parse import urlsplit

from protocols.domains import zone_of
from protocols.feeds import ParseContext

REST: Final = 600.0
"""Seconds: sixty times what a worker gives it."""
KEPT: Final = 86_400.0
MOST_KEPT: Final = 10_000


Key = TypeVar("Key")


class CostlySources:
    """All times are monotonic seconds, given. A document of no URL has no source."""

    def __init__(self) -> None:
        self._rests: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._zones: OrderedDict[str, float] = OrderedDict()

    def was_slow(self, context: ParseContext, now: float) -> None:
        """What a path makes of a document is not the fault of who publishes it."""
        zone = _zone(context)
        if zone and not context.selector:
            _keep(self._zones, zone, now + KEPT)

    def failed(self, context: ParseContext, now: float) -> None:
        """It took all the time there is, or the worker's life."""
        self.was_slow(context, now)
        if context.url:
            _keep(self._rests, (context.url, context.selector), now + REST)

    def is_at_rest(self, context: ParseContext, now: float) -> bool:
        """Whether it is not to be tried again yet."""
        return now < self._rests.get((context.url, context.selector), now)

    def is_slow(self, context: ParseContext, now: float) -> bool:
        """Whether it is for the line of the slow, as all parts of documents are: a path
        that takes any time there is may be subscribed to."""
        return bool(context.selector) or now < self._zones.get(_zone(context), now)


def _keep(kept: OrderedDict[Key, float], key: Key, until: float) -> None:
    kept[key] = until
    kept.move_to_end(key)
    if len(kept) > MOST_KEPT:
        kept.popitem(last=False)


def _zone(context: ParseContext) -> str:
    host = urlsplit(context.url).hostname
    return zone_of(host) if host else ""
