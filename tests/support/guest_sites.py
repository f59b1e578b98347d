"""A site as a guest finds it: how it answers.

A site answers by its `Manners`, of which most are about one thing that real servers
do: odd validators, every cache header, redirects, trouble, encodings. What it has
posted by a time, and all it answers, follow from its name and that time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime
from random import Random

from tests.support.clock import ManualClock
from tests.support.http_server import ServerAnswer, ServerRequest

START = ManualClock().now()
DAYS = 30
END = START + timedelta(days=DAYS)
DAY = 86_400.0
ENTRIES = 10  # in a document
PATH = "/feed.xml"


@dataclass(frozen=True, slots=True)
class Edition:
    """What a site has to say at a time; its number rises with every post."""

    number: int
    changed: datetime
    at: datetime

    @property
    def day(self) -> float:
        return (self.at - START).total_seconds() / DAY


Headers = Callable[[Edition], Mapping[str, str]]
Encode = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How a site answers. Unsaid, it is the best of servers: an ETag, and 304."""

    tag: Callable[[Edition], str] = lambda edition: f'"{edition.number}"'
    date: Callable[[Edition], str] = lambda edition: ""
    headers: Headers = lambda edition: {}  # of every answer, a 304 too
    honours: bool = True  # answers 304 to validators that match
    trouble: Callable[[Edition], ServerAnswer | None] = lambda edition: None
    document: str = ""  # elements of the channel
    encode: Encode | None = None
    encoding: str = ""
    moved_to: str = ""  # path
    hops: int = 0  # from there on, one after the other
    status: int = 301


@dataclass
class Site:
    """``floor`` is the least seconds that may lie between two requests to it, whatever
    it says in its answers; ``paths`` are all that may be asked for."""

    host: str
    kind: str
    manners: Manners = field(default_factory=Manners)
    posts_a_day: float = 0.5
    floor: float = 900.0
    quiet_hours: tuple[int, ...] = ()  # skipHours
    quiet_days: tuple[int, ...] = ()  # skipDays, Monday 0
    path: str = PATH
    query: str = ""  # of its URL
    least_requests: int = 0  # in all the time
    most_requests: int = 10_000
    registrations: int = 1

    def __post_init__(self) -> None:
        draw = Random(self.host + self.path)
        at, self._posts = -20 * DAY, []
        while at < DAYS * DAY:
            self._posts.append(at)
            at += max(60.0, draw.expovariate(self.posts_a_day / DAY))

    @property
    def paths(self) -> set[str]:
        hops = {f"/hop-{number}" for number in range(1, self.manners.hops + 1)}
        return {self.path, self.manners.moved_to or self.path, *hops}

    @property
    def target(self) -> str:
        """What is asked for at its own URL, byte for byte."""
        return self.path + self.query

    def edition(self, now: datetime) -> Edition:
        number = bisect_right(self._posts, (now - START).total_seconds())
        changed = START + timedelta(seconds=int(self._posts[number - 1]))
        return Edition(number, changed, now)

    def answer(self, request: ServerRequest, now: datetime) -> ServerAnswer:
        edition, manners = self.edition(now), self.manners
        if request.path not in self.paths:
            return ServerAnswer(status=404)
        if where := self._moved_to(request.path):
            return ServerAnswer(status=manners.status, headers={"Location": where})
        trouble = manners.trouble(edition)
        if trouble is not None:
            return trouble
        headers = {"Set-Cookie": "guest=1", **manners.headers(edition)}
        if tag := manners.tag(edition):
            headers["ETag"] = tag
        if date := manners.date(edition):
            headers["Last-Modified"] = date
        if manners.honours and _is_known(request, headers):
            return ServerAnswer(status=304, headers=headers)
        return self._whole(edition, headers)

    def _moved_to(self, path: str) -> str:
        if path == self.path:
            return self.manners.moved_to
        number = path.removeprefix("/hop-")
        if number == path or int(number) >= self.manners.hops:
            return ""
        return f"/hop-{int(number) + 1}"

    def _whole(self, edition: Edition, headers: dict[str, str]) -> ServerAnswer:
        body = self.body(edition)
        headers["Content-Type"] = "application/rss+xml"
        if self.manners.encode is not None:
            headers["Content-Encoding"] = self.manners.encoding
            body = self.manners.encode(body)
        return ServerAnswer(headers=headers, body=body)

    def body(self, edition: Edition) -> bytes:
        newest = edition.number
        items = "".join(
            f"<item><guid isPermaLink='false'>{self.host}-{number}</guid>"
            f"<title>Post {number} of {self.host}</title><pubDate>{self._date(number)}"
            "</pubDate></item>"
            for number in range(newest, max(0, newest - ENTRIES), -1)
        )
        return (
            "<rss version='2.0'><channel>"
            f"<title>{self.host}</title>{self.manners.document}{items}</channel></rss>"
        ).encode()

    def _date(self, number: int) -> str:
        at = START + timedelta(seconds=int(self._posts[number - 1]))
        return format_datetime(at, usegmt=True)


def _is_known(request: ServerRequest, headers: Mapping[str, str]) -> bool:
    """RFC 9110 13.2.2: If-Modified-Since counts only without If-None-Match."""
    sent = request.headers.get("if-none-match")
    if sent is not None and "ETag" in headers:
        return sent == headers["ETag"]
    since = request.headers.get("if-modified-since")
    return since is not None and since == headers.get("Last-Modified")


def http_date(at: datetime) -> str:
    return format_datetime(at, usegmt=True)
