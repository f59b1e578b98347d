"""A varied population of sites, as a guest finds them, and how they answer.

A site answers by its `Manners`, of which most are about one thing that real servers
do: odd validators, every cache header, redirects, errors, encodings. What it has
posted by a time, and all it answers, follow from its name and that time.
"""

from __future__ import annotations

import gzip
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime
from random import Random

import brotli

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
    it says in its answers; ``paths`` are all that may be asked for. A floor that its
    document asks for holds from the first request on."""

    host: str
    kind: str
    manners: Manners = field(default_factory=Manners)
    posts_a_day: float = 0.5
    floor: float = 900.0
    asks_for_floor: bool = False
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


def _none(edition: Edition) -> str:
    return ""


def _dated(edition: Edition) -> str:
    return http_date(edition.changed)


def _odd_date(edition: Edition) -> str:
    """No date of RFC 9110: to be sent back as it is."""
    return edition.changed.strftime("%Y-%m-%d %H:%M:%S")


def _rss_date(edition: Edition) -> str:
    return edition.changed.strftime("%a, %d %b %Y %H:%M:%S +0000")


def _touched(edition: Edition) -> str:
    """New validators four times a day, though not a byte has changed."""
    return f'"{edition.number}-{int(edition.day * 4)}"'


def _until_day(day: float, tag: Callable[[Edition], str]) -> Callable[[Edition], str]:
    return lambda edition: tag(edition) if edition.day < day else ""


def _always(**headers: str) -> Headers:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda edition: named


def _expiring(edition: Edition) -> Mapping[str, str]:
    return {
        "Date": http_date(edition.at),
        "Expires": http_date(edition.at + timedelta(hours=5)),
    }


def _between(
    first: float, last: float, answer: Callable[[Edition], ServerAnswer]
) -> Callable[[Edition], ServerAnswer | None]:
    """Trouble from the one day to the other."""
    return lambda edition: answer(edition) if first <= edition.day < last else None


def _at_times(
    answer: Callable[[Edition], ServerAnswer],
) -> Callable[[Edition], ServerAnswer | None]:
    """Trouble in every third of all hours."""
    return lambda edition: answer(edition) if int(edition.day * 24) % 3 == 0 else None


def _status(status: int, **headers: str) -> Callable[[Edition], ServerAnswer]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda edition: ServerAnswer(status=status, headers=named)


def _patience_by_date(edition: Edition) -> ServerAnswer:
    until = http_date(edition.at + timedelta(hours=7))
    return ServerAnswer(status=503, headers={"Retry-After": until})


def _alternating(edition: Edition) -> str:
    """Two servers behind one name, each with validators of its own."""
    return f'"{edition.number}-{int(edition.day * 48) % 2}"'


def _silence(edition: Edition) -> ServerAnswer:
    """No answer: the connection is closed without a word."""
    return ServerAnswer(status=0)


def _patience_by_date_429(edition: Edition) -> ServerAnswer:
    until = http_date(edition.at + timedelta(hours=3))
    return ServerAnswer(status=429, headers={"Retry-After": until})


def _expired(edition: Edition) -> Mapping[str, str]:
    return {
        "Date": http_date(edition.at),
        "Expires": http_date(edition.at - timedelta(days=400)),
    }


def _twice_fresh(edition: Edition) -> Mapping[str, str]:
    """RFC 9111 5.3: with a max-age, "a recipient MUST ignore the Expires field"."""
    headers = dict(_expiring(edition))
    return headers | {"Cache-Control": "max-age=7200"}


def _once(
    day: float, answer: Callable[[Edition], ServerAnswer]
) -> Callable[[Edition], ServerAnswer | None]:
    """Trouble for a quarter of an hour, and never again."""
    return _between(day, day + 0.01, answer)


def _page(edition: Edition) -> ServerAnswer:
    body = b"<!doctype html><title>Sorry</title><p>Back soon.</p>"
    return ServerAnswer(headers={"Content-Type": "text/html"}, body=body)


def _empty(edition: Edition) -> ServerAnswer:
    return ServerAnswer(headers={"Content-Type": "application/rss+xml"})


_NIGHT = (0, 1, 2, 3, 4, 5)
_SKIPPING = "".join(f"<hour>{hour}</hour>" for hour in _NIGHT)

HOUR = 3_600.0

_VALIDATORS = (
    Site("strong", "a strong ETag"),
    Site("weak", "a weak ETag", Manners(tag=lambda e: f'W/"{e.number}"')),
    Site("packed-tag", "an ETag -gzip", Manners(tag=lambda e: f'"{e.number}-gzip"')),
    Site("bare-tag", "an ETag without quotes", Manners(tag=lambda e: f"v{e.number}")),
    Site("dated", "Last-Modified only", Manners(tag=_none, date=_dated)),
    Site("odd-date", "an odd Last-Modified", Manners(tag=_none, date=_odd_date)),
    Site("rss-date", "a Last-Modified of RSS", Manners(tag=_none, date=_rss_date)),
    Site("both", "both validators", Manners(date=_dated)),
    Site("none", "no validators", Manners(tag=_none)),
    Site(
        "dropped",
        "an ETag until the tenth day",
        Manners(tag=_until_day(10, Manners().tag), date=_dated),
    ),
    Site("touched", "new validators, same bytes", Manners(tag=_touched)),
    Site("ignored", "validators never honoured", Manners(honours=False)),
    Site("alternating", "two servers in turn", Manners(tag=_alternating)),
    Site("busy", "an entry an hour", posts_a_day=24, floor=60.0),
)

_CACHING = (
    Site(
        "fresh",
        "max-age of 6 h",
        Manners(headers=_always(Cache_Control="max-age=21600")),
    ),
    Site(
        "aged",
        "max-age of 6 h, Age of 2",
        Manners(headers=_always(Cache_Control="public, max-age=21600", Age="7200")),
    ),
    Site("expiring", "Expires in 5 h", Manners(headers=_expiring)),
    Site("no-cache", "no-cache", Manners(headers=_always(Cache_Control="no-cache"))),
    Site("shared", "s-maxage", Manners(headers=_always(Cache_Control="s-maxage=9000"))),
    Site("no-store", "no-store", Manners(headers=_always(Cache_Control="no-store"))),
    Site(
        "stale-now",
        "max-age of 0",
        Manners(headers=_always(Cache_Control="max-age=0, must-revalidate")),
    ),
    Site(
        "for-ever",
        "max-age of a year, of which a day is waited for",
        Manners(headers=_always(Cache_Control="public, max-age=31536000, immutable")),
        most_requests=35,
    ),
    Site("expired", "Expires long ago", Manners(headers=_expired)),
    Site("never", "Expires 0", Manners(headers=_always(Expires="0"))),
    Site("twice", "max-age of 2 h, Expires in 5", Manners(headers=_twice_fresh)),
    Site(
        "ttl",
        "a ttl of an hour",
        Manners(document="<ttl>60</ttl>"),
        posts_a_day=0.02,  # where there is more to see, it is heeded less
        floor=HOUR,
        asks_for_floor=True,
    ),
    Site(
        "asleep",
        "skipHours",
        Manners(document=f"<skipHours>{_SKIPPING}</skipHours>"),
        posts_a_day=4,
        floor=300.0,
        quiet_hours=_NIGHT,
    ),
    Site(
        "weekend",
        "skipDays",
        Manners(document="<skipDays><day>Saturday</day><day>Sunday</day></skipDays>"),
        posts_a_day=4,
        floor=300.0,
        quiet_days=(5, 6),
    ),
    Site("query", "a URL with a query", query="?format=rss&a=%7Eb+c&&d"),
)

_REDIRECTS = (
    Site("moved", "301", Manners(moved_to="/new.xml"), most_requests=10_000),
    Site("moved-8", "308", Manners(moved_to="/new.xml", status=308)),
    Site("elsewhere", "302", Manners(moved_to="/now.xml", status=302)),
    Site("elsewhere-7", "307", Manners(moved_to="/now.xml", status=307)),
    Site("elsewhere-3", "303", Manners(moved_to="/now.xml", status=303)),
    Site("five", "five redirects", Manners(moved_to="/hop-1", hops=5, status=302)),
    Site(
        "six",
        "six redirects, of which five are followed",
        Manners(moved_to="/hop-1", hops=6, status=302),
        most_requests=6 * 60,
    ),
    Site(
        "circle",
        "a redirect to itself",
        Manners(moved_to=PATH, status=302),
        most_requests=60,
    ),
)

_TROUBLE = (
    Site(
        "gone",
        "410 from the fifth day",
        Manners(trouble=_between(5, 99, _status(410))),
        registrations=3,
    ),
    Site(
        "missing",
        "404 from the fifth day",
        Manners(trouble=_between(5, 99, _status(404))),
        most_requests=200,
    ),
    Site(
        "throttling",
        "429 for 4 h, at times",
        Manners(trouble=_at_times(_status(429, Retry_After="14400"))),
    ),
    Site("throttling", "its neighbour", path="/other.xml"),
    Site(
        "once", "410 once", Manners(trouble=_once(6, _status(410))), least_requests=60
    ),
    Site(
        "back",
        "404 for two days",
        Manners(trouble=_between(6, 8, _status(404))),
        least_requests=40,
    ),
    Site(
        "throttling-date",
        "429 until a date",
        Manners(trouble=_at_times(_patience_by_date_429)),
    ),
    Site(
        "busy-seconds",
        "503 for 2 h, in seconds",
        Manners(trouble=_at_times(_status(503, Retry_After="7200"))),
    ),
    Site(
        "refusing-4", "401 for a week", Manners(trouble=_between(8, 15, _status(401)))
    ),
    Site(
        "throttling-dumb",
        "429 without patience",
        Manners(trouble=_at_times(_status(429))),
    ),
    Site("busy-503", "503 until a date", Manners(trouble=_at_times(_patience_by_date))),
    Site("failing", "500 for a week", Manners(trouble=_between(8, 15, _status(500)))),
    Site("refusing", "403 for a week", Manners(trouble=_between(8, 15, _status(403)))),
    Site("a-page", "HTML for two days", Manners(trouble=_between(6, 8, _page))),
    Site(
        "nothing", "no document for two days", Manners(trouble=_between(6, 8, _empty))
    ),
)

_ENCODINGS = (
    Site("gzipped", "gzip", Manners(encode=gzip.compress, encoding="gzip")),
    Site("brotli", "br", Manners(encode=brotli.compress, encoding="br")),
    Site("mislabelled", "gzip that is none", Manners(encode=bytes, encoding="gzip")),
)

_HOST_OF_MANY = tuple(
    Site("many", f"one of eight of a host ({n})", path=f"/{n}.xml") for n in range(8)
)

_DEAD_HOST = tuple(
    Site(
        "dead",
        f"one of eight of a host that is dead for four days ({n})",
        Manners(headers=_always(Connection="close"), trouble=_between(5, 9, _silence)),
        path=f"/{n}.xml",
        least_requests=20,
    )
    for n in range(8)
)

SITES = (
    *_VALIDATORS,
    *_CACHING,
    *_REDIRECTS,
    *_TROUBLE,
    *_ENCODINGS,
    *_HOST_OF_MANY,
    *_DEAD_HOST,
)
