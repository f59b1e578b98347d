"""Subscribers and live readers: some leave, and others come in their place."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from time import monotonic

from tests.simulation.listeners import Listener
from tests.soak.hostile import HOSTILE
from tests.soak.members import Member, Members, Membership
from tests.soak.readers import LiveReader
from tests.support.crash_campaign import moody
from tests.support.http_server import ServerRequest
from tests.support.hub_process import HubApi
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.subscribers import Receipt, Subscriber, Subscribers

FEEDS, SUBSCRIBERS_EACH, READERS_EACH = 4, 8, 3
LISTED = 100
"""Entries in a document: many more than are published while a hub is away."""
CHURN = 0.01
"""The share of all subscribers, and of all readers, that is replaced each second."""
LATE = 5.0
"""Seconds after the end of a subscription in which pending requests may still come."""
_NOT_KNOWN = 10**9  # an entry that is never published: nothing is owed


class ShortMemories(Subscribers):
    """Subscribers that keep of their many requests only what the judge needs."""

    @property
    def told(self) -> Counter[str]:
        """How many notifications came, by name of the subscriber."""
        return Counter({name: len(one.receipts) for name, one in self.all.items()})

    def _remember(self, one: Subscriber, request: ServerRequest) -> Receipt:
        receipt = super()._remember(one, request)
        self.requests.clear()
        if one.format == "as-is":  # of each feed the newest
            receipt.entries = tuple(dict(sorted(receipt.entries)).items())
        receipt.request = _from_hub(request.headers.get("link", ""))
        return receipt


@cache
def _from_hub(link: str) -> ServerRequest:
    return ServerRequest(method="POST", target="", headers={"link": link}, body=b"")


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A subscriber that is or was subscribed, or would be but for a 503 of the hub."""

    subscriber: Subscriber
    feed: PublishedFeed
    index: int
    member: Member

    def be_owed(self) -> None:
        """Note that it is owed all that is published from now on; or nothing any more.

        One that has been subscribed is owed all since then.
        """
        one, is_in = self.subscriber, self.member.membership is Membership.IN
        one.has_left = not is_in
        if is_in and one.first == _NOT_KNOWN:
            one.first = self.feed.count + 1


class Population:
    """All subscribers and readers that there are and ever were.

    Feeds are kept with the hub's id of them.
    """

    def __init__(
        self,
        random: Random,
        publisher: Publisher,
        subscribers: Subscribers,
        hostile: ShortMemories,
        hub_url: str,
    ) -> None:
        self.feeds: list[tuple[int, PublishedFeed]] = []
        self.members = Members()
        self.subscribed: list[Subscribed] = []  # ever
        self.readers: list[LiveReader] = []
        self.complaints: list[str] = []  # of what the hub listed
        self.all = subscribers
        self._random = random
        self._publisher = publisher
        self._hostile = hostile
        self._hub_url = hub_url
        self._reading: dict[LiveReader, asyncio.Task[None]] = {}
        self._named = 0
        self._churned_at = monotonic()

    async def settle(self, api: HubApi, tasks: asyncio.TaskGroup) -> None:
        for _ in range(FEEDS):
            feed = self._publisher.add_feed()
            feed.most = LISTED
            topic = self._publisher.url(feed)
            self.feeds.append((await api.add_feed(topic), feed))
            for index in range(SUBSCRIBERS_EACH):
                await self._subscribe(api, feed, index)
            for index in range(READERS_EACH):
                await self._come_to_read(tasks, feed, index)
        await self.let_in_hostile(api)

    async def let_in_hostile(self, api: HubApi) -> None:
        for number, (_id, feed) in enumerate(self.feeds):
            for name in list(HOSTILE)[number::FEEDS]:
                self._hostile[name].answer(*HOSTILE[name])
                member = self.members.add(self._hostile[name].url)
                topic = self._publisher.url(feed)
                with member.becoming(Membership.IN):
                    member.id = await api.subscribe(
                        callback=member.callback, topic=topic
                    )

    async def end_hostile(self, api: HubApi) -> None:
        for name in HOSTILE:
            await _end(api, self.members.add(self._hostile[name].url))

    async def look(self, api: HubApi) -> None:
        """Compare the hub's list with what it answered.

        No request that changes it may be under way. Raises `aiohttp.ClientError`.
        """
        self.complaints += self.members.look(await api.subscriptions())
        for each in self.subscribed:
            each.be_owed()

    async def churn(self, api: HubApi, tasks: asyncio.TaskGroup) -> None:
        """Replace some members, by the time since the last call. Call it often.

        Raises `aiohttp.ClientError` if the hub is gone.
        """
        now = monotonic()
        share = CHURN * min(now - self._churned_at, 1.0)
        self._churned_at = now
        there = [
            each for each in self.subscribed if each.member.membership is Membership.IN
        ]
        if self._random.random() < share * len(there):
            one = self._random.choice(there)
            await self._subscribe(api, one.feed, one.index)
            await self._unsubscribe(api, one)
        if self._random.random() < share * len(self._reading):
            reader = self._random.choice(list(self._reading))
            feed = self.feeds[reader.listener.feed - 1][1]
            await self._come_to_read(tasks, feed, self._random.randrange(READERS_EACH))
            reader.has_left = True
            self._reading.pop(reader).cancel()

    def drop_readers(self) -> None:
        for reader in self._reading:
            reader.drop()

    def hold_readers(self) -> list[LiveReader]:
        """The readers that are there; from now on they stay."""
        for reader in self._reading:
            reader.stay()
        return list(self._reading)

    async def send_readers_home(self) -> None:
        for task in self._reading.values():
            task.cancel()
        await asyncio.gather(*self._reading.values(), return_exceptions=True)

    def judge(self) -> Iterator[str]:
        for reader in self.readers:
            yield from reader.judge(self.feeds[reader.listener.feed - 1][1].count)
        for each in self.subscribed:
            last = max((it.started for it in each.subscriber.receipts), default=0.0)
            is_out = each.member.membership is Membership.OUT
            if is_out and last > each.member.since + LATE:
                yield f"{each.subscriber.name} was long out of it when it got more"

    async def _subscribe(self, api: HubApi, feed: PublishedFeed, index: int) -> None:
        self._named += 1
        topic = self._publisher.url(feed)
        format = ("json", "atom", "as-is")[index % 3]
        subscriber = self.all.add(
            f"s{feed.number}-{self._named}",
            feed=feed.number,
            topic=topic,
            secret=f"the secret of {self._named}",
            format=format,
        )
        if index >= SUBSCRIBERS_EACH - 2:
            subscriber.answers = moody(Random(self._random.random()))
        subscriber.first, subscriber.has_left = _NOT_KNOWN, True
        member = self.members.add(subscriber.url)
        one = Subscribed(subscriber, feed, index, member)
        self.subscribed.append(one)
        with member.becoming(Membership.IN):
            member.id = await api.subscribe(
                callback=subscriber.url,
                topic=topic,
                secret=subscriber.secret,
                format=format,
            )
        one.be_owed()

    async def _unsubscribe(self, api: HubApi, one: Subscribed) -> None:
        one.subscriber.has_left = True
        try:
            await _end(api, one.member)
        finally:
            one.be_owed()

    async def _come_to_read(
        self, tasks: asyncio.TaskGroup, feed: PublishedFeed, index: int
    ) -> None:
        listener = Listener(
            name=f"reader {len(self.readers)}",
            topic=self._publisher.url(feed),
            feed=feed.number,
            first=feed.count + 1,
            random=Random(self._random.random()),
        )
        reader = LiveReader(
            listener,
            self._hub_url,
            is_socket=index % 2 == 0,
            pause=0.5 if index == READERS_EACH - 1 else 0.0,
        )
        listener.cursor = await reader.find_cursor()
        self.readers.append(reader)
        self._reading[reader] = tasks.create_task(reader.run())


async def _end(api: HubApi, member: Member) -> None:
    with member.becoming(Membership.OUT):
        await api.request("DELETE", f"/api/subscriptions/{member.id}?tell=false")
