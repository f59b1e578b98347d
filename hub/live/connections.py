"""One live connection: what it listens to, and what it is still to be caught up with.

A subscription that begins in the past is replayed from the log, and joins the others
when it has all that they have. Topics that were asked for together are replayed
together, in the order of the log, so that one cursor serves them all.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Sequence, Set
from dataclasses import dataclass
from operator import itemgetter
from typing import Protocol

from hub.live.outlet import Outlet
from hub.live.shares import Holder
from hub.live.subscriptions import LiveSubscription
from protocols.cursor import turn_of
from storage.records import BEFORE_ALL, NOBODY, AccountId, FeedId, TokenId

Group = Sequence[LiveSubscription]
"""In the order of their turns."""


class CatchUp(Protocol):
    """Brings subscriptions up to date and lets them join; see `hub.live.replay`."""

    def is_current(self, group: Group) -> bool:
        """Whether they have joined, because there is nothing to replay."""
        ...

    def replay(
        self, connection: Connection, group: Group
    ) -> Coroutine[None, None, None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """What somebody was let in with. ``token`` None: none that could end.

    ``viewer``: as whom it reads, see `storage.contract.FeedStore.find_readable`.
    ``holder``: among whose connections it counts; None: it may have all there are.
    ``may_ask``: it can subscribe to other topics on the same connection.
    """

    token: TokenId | None = None
    holder: Holder | None = None
    viewer: AccountId | None = NOBODY
    may_ask: bool = True


STRANGER = Guest()


class Connection:
    """``tasks`` owns the replays; it ends with the connection.

    ``furthest`` is where the one of its subscriptions began that began last.
    """

    __slots__ = (
        "_catch_up",
        "_replaying",
        "_tasks",
        "_waiting",
        "furthest",
        "guest",
        "outlet",
        "subscriptions",
    )

    def __init__(
        self,
        outlet: Outlet,
        catch_up: CatchUp,
        tasks: asyncio.TaskGroup,
        guest: Guest = STRANGER,
    ) -> None:
        self.outlet = outlet
        self.guest = guest
        self.furthest = BEFORE_ALL
        self.subscriptions: dict[str, LiveSubscription] = {}
        self._catch_up = catch_up
        self._tasks = tasks
        self._waiting: list[LiveSubscription] = []
        self._replaying: asyncio.Task[None] | None = None

    @property
    def is_behind(self) -> bool:
        """Whether records that were asked for are still to be replayed."""
        return self._replaying is not None

    def follow(self, group: Group) -> None:
        """Send what came after the group's positions, and then what comes."""
        for subscription in group:
            self.subscriptions[subscription.key.topic] = subscription
            self.furthest = max(self.furthest, subscription.position)
        self._find_followers({each.key.feed_id for each in group})
        if self._catch_up.is_current(group):
            return
        self._waiting += group
        if self._replaying is None:
            self._replaying = self._tasks.create_task(self._replay_waiting())

    def _find_followers(self, feeds: Set[FeedId]) -> None:
        """Who stays one that has, when the others leave, is none the worse for it."""
        turns = defaultdict(list)
        for each in self.subscriptions.values():
            if each.key.feed_id in feeds:
                turns[each.key.feed_id].append((turn_of(each.key.topic), each))
        for of_feed in turns.values():
            last, _subscription = max(of_feed, key=itemgetter(0))
            for turn, each in of_feed:
                each.has_followers = turn < last

    async def _replay_waiting(self) -> None:
        """All that wait go through the log together, in its order: so those who come
        back with many topics each, in whatever order they ask for them, want the same
        records at about the same time."""
        while self._waiting:
            together = sorted(self._waiting, key=lambda each: turn_of(each.key.topic))
            self._waiting.clear()
            await self._catch_up.replay(self, together)
        self._replaying = None

    def end(self) -> None:
        """Stop replaying: there is nobody to send it to."""
        self._waiting.clear()
        if self._replaying is not None:
            self._replaying.cancel()
