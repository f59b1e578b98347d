"""Who is subscribed to what: they come, go, come back, and so do the feeds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hub.services.account_subscriptions import SubscriptionRequest
from hub.services.feed_requests import AddFeed
from protocols.websub.websub_parameters import SubscribeRequest
from storage.records import Format, SubscriptionId
from tests.simulation.pauses import Pauses
from tests.simulation.simulated_hub import SimulatedHub
from tests.simulation.world import Presence
from tests.support.subscribers import Subscriber

NEVER_PUBLISHED = 10**9
"""The first entry of one of whom nobody knows whether it has subscribed."""


@dataclass(frozen=True, slots=True)
class Members:
    """As it was at a moment, for as far as the hub has stored it.

    ``left``: who had gone by then, and when.
    """

    active: frozenset[str]  # callbacks
    ids: dict[str, SubscriptionId]
    left: tuple[tuple[str, float], ...]
    presence: dict[str, Presence]
    paused: frozenset[str]  # callbacks


class Membership:
    def __init__(self, simulated: SimulatedHub, pauses: Pauses) -> None:
        self._simulated = simulated
        self._pauses = pauses
        self._ids: dict[str, SubscriptionId] = {}  # by callback
        self._left: list[tuple[str, float]] = []

    @property
    def left(self) -> list[tuple[Subscriber, float]]:
        """Those who have gone, and when that was heard."""
        by_callback = self._simulated.world.subscribers
        return [(by_callback[callback], at) for callback, at in self._left]

    async def pause_or_resume(self) -> None:
        await self._pauses.turn_one(self._ids)

    async def resume_all(self) -> None:
        await self._pauses.resume_all(self._ids)

    # --- subscribers ---------------------------------------------------------------

    async def subscribe(self, subscriber: Subscriber) -> None:
        """As the operator does, or as strangers do who are asked if they mean it."""
        simulated = self._simulated
        services, storage = simulated.process.hub.services, simulated.process.storage
        is_stranger = subscriber.format == "as-is" and simulated.random.random() < 0.7
        if not is_stranger:
            await self._add(subscriber)
            return
        subscriber.algorithm = "sha256"
        await services.websub.request(
            SubscribeRequest(
                topic=subscriber.topic,
                callback=subscriber.url,
                secret=subscriber.secret,
                algorithm="sha256",
                lease_seconds=864_000,
            )
        )
        feed_id = simulated.feed_ids[subscriber.topic]
        before = await storage.subscriptions.count(feed_id)
        while True:
            if await storage.subscriptions.count(feed_id) > before:
                return
            await asyncio.sleep(1)

    async def churn(self) -> None:
        """A subscriber goes, or another comes, or one comes back."""
        throw, random = self._simulated.random.random(), self._simulated.random
        if self._ids and throw < 0.4:
            await self._unsubscribe(random.choice(list(self._ids)))
            return
        gone = self._gone()
        if gone and throw < 0.7:
            await self._return(random.choice(gone))
            return
        await self._join()

    async def _join(self) -> None:
        world = self._simulated.world
        url, feed = self._simulated.random.choice(list(world.feeds.items()))
        if not world.is_there(url):
            return
        self._simulated.count("subscribed meanwhile")
        index = len(world.subscribers) + 100
        subscriber = world.add_subscriber(feed, url, index)
        subscriber.first, subscriber.has_left = NEVER_PUBLISHED, True
        await self._add(subscriber)
        subscriber.first, subscriber.has_left = feed.count + 1, False

    async def _add(self, subscriber: Subscriber) -> None:
        self._pauses.note_end(subscriber.url)
        subscriptions = self._simulated.process.hub.services.subscriptions
        added = await subscriptions.add(
            SubscriptionRequest(
                callback=subscriber.url,
                topic=subscriber.topic,
                secret=subscriber.secret,
                format=Format(subscriber.format),
            )
        )
        self._ids[subscriber.url] = added.subscription.id

    async def _unsubscribe(self, callback: str) -> None:
        """What it is owed from now on is nothing, whether that is heard of or not."""
        self._simulated.count("unsubscribed meanwhile")
        self._simulated.world.subscribers[callback].has_left = True
        subscriptions = self._simulated.process.hub.services.subscriptions
        await subscriptions.remove(
            self._ids[callback], tell=self._simulated.random.random() < 0.5
        )
        self._note_left([callback])

    def _gone(self) -> list[Subscriber]:
        """Those who may come back: their feed is there."""
        world = self._simulated.world
        return [
            each
            for each in world.subscribers.values()
            if each.has_left and world.is_there(each.topic) and each.receipts
        ]

    async def _return(self, subscriber: Subscriber) -> None:
        """What came meanwhile may be told or not. What had come by then has no holes,
        and nothing of it comes again."""
        self._simulated.count("came back")
        subscriber.returns.append(asyncio.get_running_loop().time())
        await self._add(subscriber)
        feed = self._simulated.world.feeds[subscriber.topic]
        history = self._simulated.branch.history(subscriber)
        hubs = self._simulated.world.other_hubs.values()
        is_gapped = any(feed.number in each.gapped for each in hubs)
        had = 0 if is_gapped else max(history.numbers, default=0)
        subscriber.excused |= set(range(had + 1, feed.count + 1))
        subscriber.has_left = False
        self._left = [it for it in self._left if it[0] != subscriber.url]

    def _note_left(self, callbacks: list[str]) -> None:
        now = asyncio.get_running_loop().time()
        for callback in callbacks:
            self._left.append((callback, now))
            self._ids.pop(callback, None)
            self._pauses.note_end(callback)

    # --- feeds ---------------------------------------------------------------------

    async def take_out_or_return(self) -> None:
        world = self._simulated.world
        url = self._simulated.random.choice(list(world.feeds))
        if world.is_there(url):
            await self._take_out(url)
        else:
            await self.put_back(url)

    async def put_all_back(self) -> None:
        world = self._simulated.world
        for url in world.feeds:
            if not world.is_there(url):
                await self.put_back(url)

    async def _take_out(self, url: str) -> None:
        """All of its subscribers go with it."""
        world = self._simulated.world
        self._simulated.count("feeds removed")
        world.take_out(url, Presence.IN_DOUBT)
        active = [
            each
            for each in world.subscribers.values()
            if each.topic == url and not each.has_left
        ]
        for subscriber in active:
            subscriber.has_left = True
        await self._simulated.process.hub.services.feeds.remove(
            self._simulated.feed_ids[url]
        )
        world.take_out(url, Presence.REMOVED)
        self._note_left([each.url for each in active])

    async def put_back(self, url: str) -> None:
        """The same feed, with what it knew; who was subscribed to it is not."""
        world = self._simulated.world
        self._simulated.count("feeds put back")
        world.take_out(url, Presence.IN_DOUBT)
        services = self._simulated.process.hub.services
        added = await services.feeds.add(AddFeed(url=url, wait=1))
        if added.feed.id != self._simulated.feed_ids[url]:
            self._simulated.outcome.complaints.append(
                f"{url} came back as another feed"
            )
        world.put_back(url)
        for subscriber in self._gone():
            if subscriber.topic == url and self._simulated.random.random() < 0.5:
                await self._return(subscriber)

    # --- backups -------------------------------------------------------------------

    def remember(self) -> Members:
        world = self._simulated.world
        return Members(
            active=frozenset(
                callback
                for callback, each in world.subscribers.items()
                if not each.has_left
            ),
            ids=dict(self._ids),
            left=tuple(self._left),
            presence=dict(world.presence),
            paused=self._pauses.paused,
        )

    def relive(self, members: Members) -> None:
        """The hub knows what it knew then: who came since is unknown to it, and who
        went since is there again, and owed nothing."""
        world, now = self._simulated.world, asyncio.get_running_loop().time()
        self._ids, self._left = dict(members.ids), list(members.left)
        self._pauses.relive(members.paused)
        for callback, subscriber in world.subscribers.items():
            if not subscriber.has_left and callback not in members.active:
                subscriber.has_left = True
                if all(callback != known for known, _at in self._left):
                    self._left.append((callback, now))
        for url, presence in members.presence.items():
            world.relive(url, presence)
