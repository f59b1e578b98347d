"""Thirty days of polling, scored as feed publishers score readers.

The real poller, network, decisions and database; only the clock is played, and the
sites are: they answer on loopback, each under a name of its own. The hub is stopped and
started again; feeds are removed and return. After Rachel Kroll's "feed reader score",
what each request sent is held against what the server had given, by the server's own
book. A score is a count of faults.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from ipaddress import ip_network
from itertools import pairwise
from pathlib import Path

from hub.core.fetched import Fetched
from hub.core.schedule.budget import Budget
from hub.core.schedule.poll_period import PollingRules
from hub.http import HttpNetwork, ResponseLimits
from hub.ingest.fetcher import Fetcher, FetcherIdentity, FetchRequest
from hub.ingest.poller import Poller
from hub.limits.host_limiter import HostLimiter
from storage.contract import Storage
from storage.records import OPERATOR, FeedId, FeedState, NewFeed, NewSubscription
from tests.etiquette.guest_sites import DAY, END, SITES, START, Site
from tests.support.chosen_engine import open_chosen
from tests.support.fake_fetcher import InlineParser
from tests.support.http_server import ServerAnswer, ServerRequest, WebServer
from tests.support.played_time import PlayedTime
from tests.support.quiet_loop import QuietLoop

DECODED = {"gzip", "br", "deflate", "zstd", "identity"}
REPAIRING = 300.0
"""Seconds after which a server that failed may be tried again: "5 min * 2^n"."""
SETTLING = timedelta(minutes=20)
"""After the first good answer; until then a feed is new, and polled sooner."""
SETTLING_FLOOR = 60.0
MOST_SILENCES = 40
"""Requests in a row to a host that does not answer, by all of its feeds, in four days:
each feed's own back-off would make it a hundred."""
CONFIRMED = 2
"""410s that are asked for, each time somebody has registered the feed."""
IDENTITY_SHOWN = re.compile(
    r"Fanfare/\S+ \(\+https://hub\.test; mailto:ops@hub\.test; "
    r"(\d+) subscribers?; feed-id=\d+\)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as a site saw it, and what it answered."""

    at: datetime
    site: Site
    request: ServerRequest
    answer: ServerAnswer
    subscribers: int  # that its feed truly had

    @property
    def resource(self) -> tuple[str, str]:
        return self.site.host, self.request.path


@dataclass(slots=True)
class Score:
    """Faults of all requests for one feed; ``requests`` is none."""

    requests: int = 0
    unconditional: int = 0  # though validators were known, beyond the first
    inm_old: int = 0  # If-None-Match of an earlier answer
    inm_bogus: int = 0  # that was never sent
    ims_old: int = 0
    ims_bogus: int = 0
    half: int = 0  # only one of two validators
    cookies: int = 0
    referrers: int = 0
    queries: int = 0
    early: int = 0  # before the least time between two requests was over
    stale: int = 0  # before the answer was: Cache-Control, Expires
    impatient: int = 0  # before Retry-After was over, at the whole host
    crowding: int = 0  # less than a second after another request to the host
    asleep: int = 0  # in hours it wants skipped
    strays: int = 0  # for what nobody had named
    hammering: int = 0  # more requests than the site bears with, or after it was gone
    forsaken: int = 0  # fewer than a site deserves that was in trouble for a while
    headers: int = 0  # Accept, Accept-Encoding, User-Agent, or what readers do not send

    @property
    def faults(self) -> dict[str, int]:
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: n for name, n in named.items() if n and name != "requests"}


@dataclass(slots=True)
class _Book:
    """What a server has told of one resource."""

    tag: str = ""
    date: str = ""
    tags: set[str] = field(default_factory=set)
    dates: set[str] = field(default_factory=set)

    def enter(self, answer: ServerAnswer) -> None:
        """RFC 9111 4.3.4: a 304 updates what it names, a 200 replaces all."""
        if answer.status not in (200, 304):
            return
        tag, date = answer.headers.get("ETag"), answer.headers.get("Last-Modified")
        if answer.status == 200 or tag is not None:
            self.tag = tag or ""
        if answer.status == 200 or date is not None:
            self.date = date or ""
        self.tags.add(self.tag)
        self.dates.add(self.date)


def score(site: Site, requests: Sequence[Request]) -> Score:
    """The score of the requests for the feed of one site, in order of time."""
    result = Score(requests=len(requests))
    books: defaultdict[tuple[str, str], _Book] = defaultdict(_Book)
    for each in requests:
        book = books[each.resource]
        _score_validators(result, each, book)
        _score_headers(result, each)
        result.strays += each.request.path not in site.paths
        result.asleep += bool(book.tags) and _is_asleep(site, each.at)
        book.enter(each.answer)
    _score_times(result, site, requests)
    return result


def _is_asleep(site: Site, at: datetime) -> bool:
    return at.hour in site.quiet_hours or at.weekday() in site.quiet_days


def _score_validators(result: Score, each: Request, book: _Book) -> None:
    tag = each.request.headers.get("if-none-match", "")
    date = each.request.headers.get("if-modified-since", "")
    if tag and tag != book.tag:
        known = tag in book.tags
        result.inm_old += known
        result.inm_bogus += not known
    if date and date != book.date:
        known = date in book.dates
        result.ims_old += known
        result.ims_bogus += not known
    if (book.tag or book.date) and not tag and not date:
        result.unconditional += 1
    elif (book.tag and not tag) or (book.date and not date):
        result.half += 1


def _score_headers(result: Score, each: Request) -> None:
    headers = each.request.headers
    result.cookies += "cookie" in headers
    result.referrers += "referer" in headers
    at_own_url = each.request.path == each.site.path
    result.queries += each.request.target != (
        each.site.target if at_own_url else each.request.path
    )
    encodings = {name.strip() for name in headers["accept-encoding"].split(",")}
    sayings = (
        each.request.method == "GET",
        not {"range", "pragma", "cache-control", "a-im"} & headers.keys(),
        "application/atom+xml" in headers["accept"] and "*/*" in headers["accept"],
        encodings <= DECODED and "gzip" in encodings,
        _says_who(headers["user-agent"], each.subscribers),
    )
    result.headers += not all(sayings)


def _says_who(user_agent: str, subscribers: int) -> bool:
    match = IDENTITY_SHOWN.fullmatch(user_agent)
    return match is not None and int(match[1]) == subscribers


def _score_times(result: Score, site: Site, requests: Sequence[Request]) -> None:
    first = [each for each in requests if each.request.path == site.path]
    final = [each for each in requests if _is_final(each)]
    by_path: defaultdict[str, list[Request]] = defaultdict(list)
    for each in final:
        by_path[each.request.path].append(each)
    for asked in by_path.values():
        good = [each.at for each in asked if each.answer.status == 200]
        settled = min(good, default=END) + SETTLING
        for before, after in pairwise(asked):
            gap = (after.at - before.at).total_seconds()
            floor = REPAIRING if _fails(before) else site.floor
            if after.at <= settled and not site.asks_for_floor:
                floor = min(floor, SETTLING_FLOOR)
            result.early += gap < floor
            result.stale += gap < _freshness(before.answer)
    gone = sum(each.answer.status == 410 for each in first)
    result.hammering += max(0, len(requests) - site.most_requests)
    result.forsaken += max(0, site.least_requests - len(requests))
    result.hammering += max(0, gone - CONFIRMED * site.registrations)
    if site.manners.status in (301, 308) and site.manners.moved_to:
        believed = START + timedelta(days=3)
        result.hammering += sum(each.at > believed for each in first)


def _fails(each: Request) -> bool:
    return each.answer.status == 0 or each.answer.status >= 500


def _is_final(each: Request) -> bool:
    return each.answer.status not in (301, 302, 303, 307, 308)


def _freshness(answer: ServerAnswer) -> float:
    """Seconds by RFC 9111 4.2.1, for one cache of its own; a day at most."""
    match = re.search(r"(?<!s-)max-?age=(\d+)", answer.headers.get("Cache-Control", ""))
    if match:
        return min(DAY, float(match[1])) - float(answer.headers.get("Age", "0"))
    if "Date" in answer.headers and "Expires" in answer.headers:
        until = parsedate_to_datetime(answer.headers["Expires"])
        return (until - parsedate_to_datetime(answer.headers["Date"])).total_seconds()
    return 0.0


def score_host(requests: Iterable[Request]) -> Score:
    """What concerns a host as a whole: its pace, and its patience."""
    result = Score()
    held_until, before, silences = START, None, 0
    for each in requests:
        result.requests += 1
        result.impatient += each.at < held_until
        if before is not None and not _is_hop(before):
            gap = (each.at - before.at).total_seconds()
            result.crowding += gap < 1.0
        held_until = max(held_until, _held_until(each))
        before = each
        silences = silences + 1 if each.answer.status == 0 else 0
        result.hammering += silences > MOST_SILENCES
    return result


def _is_hop(each: Request) -> bool:
    """The request after a redirect belongs to it."""
    return not _is_final(each)


def _held_until(each: Request) -> datetime:
    if each.answer.status not in (429, 503):
        return START
    asked_for = each.answer.headers.get("Retry-After", "")
    if asked_for.isdigit():
        return each.at + timedelta(seconds=int(asked_for))
    if asked_for:
        return parsedate_to_datetime(asked_for)
    return each.at + timedelta(minutes=30)


def score_sheet(scores: Iterable[tuple[Site, Score]]) -> str:
    """As a table for people: what was asked, and every fault."""
    days = (END - START).days
    lines = ["| feed | requests a day | faults |", "| --- | --- | --- |"]
    for site, each in scores:
        faults = ", ".join(f"{name} {n}" for name, n in each.faults.items()) or "none"
        lines.append(f"| {site.kind} | {each.requests / days:.1f} | {faults} |")
    return "\n".join(lines)


LOOPBACK = ip_network("127.0.0.0/8")
IDENTITY = FetcherIdentity(
    product="Fanfare/1.0", url="https://hub.test", contact="mailto:ops@hub.test"
)


class WatchedFetcher:
    """Keeps which fetches are under way, during which no time may pass."""

    def __init__(self, fetcher: Fetcher, fetches: set[asyncio.Task[Fetched]]) -> None:
        self._fetcher = fetcher
        self._fetches = fetches

    async def fetch(self, request: FetchRequest) -> Fetched:
        fetch = asyncio.create_task(self._fetcher.fetch(request))
        self._fetches.add(fetch)
        fetch.add_done_callback(self._fetches.discard)
        return await fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningHub:
    storage: Storage
    poller: Poller
    time: PlayedTime

    async def poll_until(self, end: datetime) -> None:
        """From due feed to due feed, and by seconds where a host's pace holds one."""
        clock = self.time.clock
        while clock.now() < end:
            due = await self.storage.feeds.next_due() or end
            soon = clock.now() + timedelta(seconds=1)
            until = min(max(due, soon), end)
            await self.time.pass_by((until - clock.now()).total_seconds())
            self.poller.wake()


class Month:
    """All sites, what was asked of them, and the hub that asks."""

    def __init__(self, database: Path, budget: Budget) -> None:
        self.requests: list[Request] = []
        self._budget = budget
        self._database = database
        self._time = PlayedTime(self._settle)
        self._clock = self._time.clock
        self._fetches: set[asyncio.Task[Fetched]] = set()
        self._sites = {(site.host, site.path): site for site in SITES}
        self._hosts = {site.host: site for site in reversed(SITES)}
        self._subscribers: Counter[str] = Counter()
        self._feeds: dict[str, FeedId] = {}
        self._port = 0

    async def pass_by(self) -> None:
        """The days one after the other, and what happens on them, in a `QuietLoop`.

        At each event the hub starts anew on the database it left.
        """
        events: Sequence[tuple[float, Callable[[Storage], Awaitable[None]]]] = (
            (0.0, self._add_all),
            (3.2, self._subscribe),
            (9.0, self._remove),
            (12.7, self._add_all),
            (16.1, self._subscribe),
            (22.85, self._add_all),
        )
        days = [day for day, _ in events[1:]]
        ends = [*(min(END, START + timedelta(days=day)) for day in days), END]
        async with WebServer(self._answer) as server:
            self._port = int(server.url.rpartition(":")[2])
            for (_, happen), end in zip(events, ends, strict=True):
                async with self._running_hub() as hub:
                    await happen(hub.storage)
                    hub.poller.wake()
                    await hub.poll_until(end)

    def score(self, site: Site) -> Score:
        return score(site, [each for each in self.requests if each.site is site])

    def score_host(self, host: str) -> Score:
        return score_host(each for each in self.requests if each.site.host == host)

    async def _add_all(self, storage: Storage) -> None:
        """Each feed; that it is known already, or was once, is no reason to ask."""
        for site in SITES:
            url = self._url(site)
            feed, _ = await storage.feeds.add(NewFeed(url=url), self._clock.now())
            self._feeds[url] = feed.id

    async def _subscribe(self, storage: Storage) -> None:
        """One more subscriber to every feed of a site with validators."""
        for site in SITES[:10]:
            url = self._url(site)
            self._subscribers[url] += 1
            number = self._subscribers[url]
            await storage.subscriptions.add(
                NewSubscription(
                    account=OPERATOR,
                    topic=url,
                    feed_id=self._feeds[url],
                    callback=f"https://callback.test/{number}",
                ),
                self._clock.now(),
            )

    async def _remove(self, storage: Storage) -> None:
        for site in SITES[1::3]:
            feed_id, now = self._feeds[self._url(site)], self._clock.now()
            await storage.feeds.set_state(feed_id, FeedState.REMOVED, now)

    def _url(self, site: Site) -> str:
        return f"http://{site.host}.test:{self._port}{site.target}"

    async def _answer(self, request: ServerRequest) -> ServerAnswer | None:
        host = request.headers["host"].partition(".")[0]
        site = self._sites.get((host, request.path)) or self._hosts[host]
        now = self._clock.now()
        answer = site.answer(request, now)
        self.requests.append(
            Request(
                at=now,
                site=site,
                request=request,
                answer=answer,
                subscribers=self._subscribers[self._url(site)],
            )
        )
        return answer if answer.status else None

    async def _settle(self) -> None:
        """Until nothing happens any more: the hub waits for the clock."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, QuietLoop)
        await loop.until_quiet()
        while self._fetches:
            await asyncio.wait(self._fetches)
            await loop.until_quiet()

    @asynccontextmanager
    async def _running_hub(self) -> AsyncIterator[RunningHub]:
        async with HttpNetwork(allow_topics=[LOOPBACK], lookup=_loopback) as guarded:
            storage = await open_chosen(self._database)
            limiter = HostLimiter(self._clock, sleep=self._time.sleep)
            fetcher = WatchedFetcher(
                Fetcher(guarded, self._clock, ResponseLimits(), limiter=limiter),
                self._fetches,
            )
            poller = Poller(
                storage,
                fetcher,
                InlineParser(),
                limiter,
                self._clock,
                PollingRules(),
                identity=IDENTITY,
                budget=self._budget,
            )
            polling = asyncio.create_task(poller.run())
            try:
                yield RunningHub(storage=storage, poller=poller, time=self._time)
            finally:
                polling.cancel()
                await asyncio.gather(polling, return_exceptions=True)
                await storage.close()


async def _loopback(host: str) -> Sequence[str]:
    return ["127.0.0.1"]
