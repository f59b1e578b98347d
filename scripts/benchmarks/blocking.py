"""How long publishers and accounts hold up the event loop with what they send.

The hub: poller, parse worker, storage, tracking, dispatcher, index of words and search,
as in production. A feed of 2.5 MB with other entries each time is fetched; all of them
are news, told as JSON, as Atom and as they are. Then feeds of one entry of 9 MB, held
against 1,000 track queries, and searched for by four accounts at once. A tick that
should come every 2 ms tells how late the loop is; what other programs on the machine
take from this one does not count.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from random import Random

from hub.core.schedule.poll_period import PollingRules
from hub.delivery.dispatcher import DeliveryLimits, Dispatcher
from hub.http import HttpNetwork, Purpose, ResponseLimits
from hub.ingest.document_parser import WorkerParser
from hub.ingest.fetcher import Fetcher
from hub.ingest.poller import Poller
from hub.ingest.tracker import Tracker
from hub.limits.host_limiter import HostLimiter
from hub.runtime.clock import SystemClock
from hub.runtime.metrics import Metrics
from hub.search.index_follower import SearchIndex
from hub.services import SearchService
from hub.services.entry_notifications import render
from hub.services.token_authentication import Principal
from protocols.live.live_messages import BodyFormat
from scripts.benchmarks.documents import make_document, rss
from scripts.benchmarks.measuring import Finding, Size, until
from scripts.benchmarks.peers import Peer, running_peer
from storage.contract import Storage
from storage.records import (
    OPERATOR,
    Account,
    AccountId,
    FeedId,
    Format,
    NewFeed,
    NewSubscription,
    TokenScope,
)
from storage.sqlite import open_database

SIZE = 2_500_000
MOST_MILLISECONDS = 20
ENTRY_SIZE = 9_000_000
MOST_MILLISECONDS_OF_AN_ENTRY = 50
QUERIES = 1_000
ACCOUNTS = 4
_WORD = "lorem"
_LARGE = {
    "words": f"{_WORD} ipsum dolor sit amet, ",
    "markup": f'<p class="x"><a href="https://a.example/1?b">{_WORD}</a> 7 &lt; 8</p>',
    "han": f"{_WORD} \u6771\u4eac\u90fd\u306b\u884c\u304f ",
    "comments": f"{_WORD} <!-- 12 comments --> <script>x</script> \n\t",
}
_TICK = 0.002
_LOOPBACK = (ip_network("127.0.0.0/8"),)
_FORMATS = (Format.JSON, Format.ATOM, Format.AS_IS)


Publish = Callable[[Path, int], None]
"""Puts the document of a round where the peer serves it from."""


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    """A row for long articles, one for short ones, of which there are many; then for
    entries of 9 MB, and for searches over them."""
    rounds = size.pick(5, 2, 1)
    for kind in ("blog", "news"):
        publish = partial(_publish_feed, kind)
        async with _hub(directory / kind, publish) as hub:
            longest = await _blocks(hub, publish, rounds)
        what = f"2.5 MB feed ({kind})"
        yield _finding(what, longest, MOST_MILLISECONDS)
    for kind in _LARGE:
        publish = partial(_publish_entry, kind)
        async with _hub(directory / f"large-{kind}", publish) as hub:
            longest = await _blocks(hub, publish, rounds)
            searched = await _blocks_of_searches(hub, rounds)
        what = f"entry of 9 MB ({kind})"
        yield _finding(what, longest, MOST_MILLISECONDS_OF_AN_ENTRY)
        what = f"{ACCOUNTS} searches of such ({kind})"
        yield _finding(what, searched, MOST_MILLISECONDS_OF_AN_ENTRY)


def _finding(what: str, longest: Sequence[float], at_most: int) -> Finding:
    milliseconds = max(longest) * 1e3
    return Finding(
        bench="blocking",
        measure=f"longest block of the event loop, {what}, ms",
        hub=milliseconds,
        target=f"<= {at_most}",
        met=milliseconds <= at_most,
    )


def _publish_feed(kind: str, home: Path, number: int) -> None:
    random = Random(number)  # noqa: S311 - made up, not secret
    document = make_document(rss, kind, SIZE, random, is_whole=True)
    (home / "feed").write_bytes(document.body)


def _publish_entry(kind: str, home: Path, number: int) -> None:
    """The first is short: what is in a feed when it is added is news to nobody."""
    text = _LARGE[kind]
    content = f"round {number} " + text * (
        ENTRY_SIZE // len(text.encode()) if number else 1
    )
    (home / "feed").write_text(
        '<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel>'
        f"<title>t</title><link>https://a.example/</link><item><guid>{number}</guid>"
        f"<title>{number}</title><description><![CDATA[{content}]]></description>"
        "</item></channel></rss>",
        encoding="utf-8",
    )


async def _blocks(hub: _Hub, publish: Publish, rounds: int) -> list[float]:
    feed_id = await _add_feed(hub)
    await hub.poller.fetch_now(feed_id)  # the first fetch is news to nobody
    longest = []
    for number in range(rounds):
        publish(hub.home, number + 1)
        longest.append(await _longest_block(partial(_fetch_and_deliver, hub, feed_id)))
    return longest


async def _blocks_of_searches(hub: _Hub, rounds: int) -> list[float]:
    await hub.index.catch_up()
    search = SearchService(hub.storage, "https://hub.example")
    return [await _longest_block(partial(_search, search)) for _ in range(rounds)]


async def _search(search: SearchService) -> None:
    async with asyncio.TaskGroup() as tasks:
        for number in range(ACCOUNTS):
            principal = Principal(
                account=Account(id=AccountId(number + 10), name=f"account-{number}"),
                scopes=frozenset({TokenScope.ADMIN}),
            )
            tasks.create_task(_find(search, principal))


async def _find(search: SearchService, principal: Principal) -> None:
    found = await search.find(principal, _WORD, 10)
    await render(found, BodyFormat.JSON)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hub:
    home: Path
    storage: Storage
    poller: Poller
    index: SearchIndex
    peer: Peer


@asynccontextmanager
async def _hub(home: Path, publish: Publish) -> AsyncIterator[_Hub]:
    home.mkdir()  # noqa: ASYNC240 - before anything is measured
    publish(home, 0)
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        peer = await stack.enter_async_context(running_peer(home, ["127.0.0.1"]))
        storage = await open_database(home / "hub.db")
        stack.push_async_callback(storage.close)
        network = await stack.enter_async_context(
            HttpNetwork(allow_topics=_LOOPBACK, allow_callbacks=_LOOPBACK)
        )
        parser = await stack.enter_async_context(WorkerParser())
        fetcher = Fetcher(network, clock, ResponseLimits())
        for number in range(QUERIES):
            query = f"{_WORD} word{number}"
            await storage.tracking.add(query, query, clock.now())
        tracker = Tracker(storage.tracking, Metrics())
        await tracker.load()
        rules = PollingRules(bytes_of_day=100 * ENTRY_SIZE)
        limiter = HostLimiter(clock, partial(network.is_exempt, purpose=Purpose.TOPIC))
        poller = Poller(
            storage, fetcher, parser, limiter, clock, rules, tracker=tracker
        )
        index = SearchIndex(storage, SystemClock())
        limits = DeliveryLimits(requests=16)
        hub_url = "https://hub.example/hub"
        dispatcher = Dispatcher(storage, network, clock, hub_url, limits)
        running = [
            asyncio.create_task(poller.run()),
            asyncio.create_task(dispatcher.run()),
            asyncio.create_task(index.run()),
        ]
        yield _Hub(home=home, storage=storage, poller=poller, index=index, peer=peer)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _add_feed(hub: _Hub) -> FeedId:
    now = SystemClock().now()
    origin = f"http://127.0.0.1:{hub.peer.port}"
    topic = f"{origin}/file/feed"
    feed, _is_new = await hub.storage.feeds.add(NewFeed(url=topic), now)
    await hub.storage.feeds.defer([(feed.id, now + timedelta(days=30))])
    for format in _FORMATS:
        new = NewSubscription(
            account=OPERATOR,
            topic=topic,
            feed_id=feed.id,
            callback=f"{origin}/{format}",
            secret="secret",  # noqa: S106 - nobody's
            format=format,
        )
        await hub.storage.subscriptions.add(new, now)
    return feed.id


async def _fetch_and_deliver(hub: _Hub, feed_id: FeedId) -> None:
    """From the fetch to the last acknowledgement."""
    requests = hub.peer.requests
    await hub.poller.fetch_now(feed_id)
    await until(partial(_is_delivered, hub, requests), pause=0.02)


async def _longest_block(work: Callable[[], Awaitable[None]]) -> float:
    """Seconds."""
    ticks = Ticks()
    ticking = asyncio.create_task(ticks.run())
    await work()
    ticking.cancel()
    await asyncio.gather(ticking, return_exceptions=True)
    return ticks.longest


async def _is_delivered(hub: _Hub, requests: int) -> bool:
    backlog = await hub.storage.backlog()
    is_idle = not (backlog.fanouts or backlog.chunks or backlog.retrying)
    return is_idle and hub.peer.requests > requests


@dataclass(slots=True)
class Ticks:
    """``longest``: by how much the latest tick was late, or the CPU that this process
    had in the meantime, if that is less."""

    longest: float = 0.0

    async def run(self) -> None:
        while True:
            begun, cpu = time.monotonic(), time.process_time()
            await asyncio.sleep(_TICK)
            late = time.monotonic() - begun - _TICK
            used = time.process_time() - cpu
            self.longest = max(self.longest, min(late, used))
