"""Whatever a callback answers ends in time, costs little, and is taken for what it is.

All of them are subscribed to one feed of a real dispatcher with the real client, whose
requests have two seconds instead of twenty.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from hub.core.delivery.retry_schedule import LONGEST_RETRY_AFTER
from hub.http import Answer, Network, Purpose, Request, ResponseLimits
from storage.records import (
    OPERATOR,
    NewSubscription,
    Subscription,
    SubscriptionId,
    SubscriptionState,
)
from tests.support.broken_networks import black_hole
from tests.support.delivery_scene import DeliveryScene, delivery_scene
from tests.support.http_server import Origin, ServerAnswer
from tests.support.waiting import eventually

SECONDS = 2.0
LONGEST_BODY = 64 * 1024
MEGABYTE = 1 << 20
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
SCHEDULE = (4.0, 6.0)
"""Seconds until the second try: five, and a fifth more or less."""

DAY = (LONGEST_RETRY_AFTER, LONGEST_RETRY_AFTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """An answer, and what is to be recorded: a status, 0 for none.

    ``wait``: of a failure, the seconds to the next try, at least and at most.
    """

    answer: ServerAnswer
    status: int = 0
    wait: tuple[float, float] = SCHEDULE


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What became of a delivery. ``wait``: seconds to the next try, if there is one."""

    status: int
    seconds: float
    is_over: bool
    wait: float | None


def raw(words: bytes, **more: object) -> ServerAnswer:
    return ServerAnswer(raw=words, **more)  # type: ignore[arg-type]


def later(status: int, header: str) -> ServerAnswer:
    return ServerAnswer(status=status, headers={"Retry-After": header})


def in_seconds(seconds: float) -> str:
    moment = datetime.now(UTC) + timedelta(seconds=seconds)  # noqa: TID251
    return format_datetime(moment, usegmt=True)


DELIVERED = {
    "a gigabyte": Odd(
        answer=ServerAnswer(
            headers={"Content-Length": str(1 << 30)}, body=bytes(65_536), endless=True
        ),
        status=200,
    ),
    "chunks without end": Odd(
        answer=ServerAnswer(body=bytes(9_000), chunked=True, endless=True), status=200
    ),
    "a body that drips": Odd(
        answer=ServerAnswer(body=bytes(1_000), piece=1, drip=0.1), status=200
    ),
    "a body that never comes": Odd(
        answer=raw(OK + b"Content-Length: 9\r\n\r\n"), status=200
    ),
    "a body that ends early": Odd(
        answer=raw(OK + b"Content-Length: 9\r\n\r\nhalf", closes=True), status=200
    ),
    "a reset after the status": Odd(
        answer=raw(OK + b"Content-Length: 9\r\n\r\n", resets=True), status=200
    ),
    "204 and a body": Odd(
        answer=raw(b"HTTP/1.1 204 No Content\r\n\r\nand yet"), status=204
    ),
    "two answers": Odd(answer=raw(OK + b"Content-Length: 0\r\n\r\n" + OK), status=200),
    "gzip that is none": Odd(
        answer=ServerAnswer(headers={"Content-Encoding": "gzip"}, body=b"\x1f\x8b no"),
        status=200,
    ),
    "a bomb of gzip": Odd(
        answer=ServerAnswer(
            headers={"Content-Encoding": "gzip"}, body=gzip.compress(bytes(MEGABYTE))
        ),
        status=200,
    ),
    "a chunk with a size that is none": Odd(
        answer=raw(CHUNKED + b"zz\r\n"), status=200
    ),
    "a chunk's extension without end": Odd(
        answer=raw(CHUNKED + b"1;a=" + b"x" * MEGABYTE), status=200
    ),
    "trailers without end": Odd(
        answer=raw(CHUNKED + b"0\r\n" + b"A: b\r\n" * 100_000), status=200
    ),
    "hints before the answer": Odd(
        answer=raw(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK + b"\r\n"),
        status=200,
    ),
    "the last 2xx": Odd(answer=ServerAnswer(status=299), status=299),
}

FAILED = {
    "silence": Odd(answer=ServerAnswer(silent=True)),
    "too late": Odd(answer=ServerAnswer(delay=5.0)),
    "a head that drips": Odd(answer=raw(OK * 100, piece=1, drip=0.1)),
    "half a head": Odd(answer=raw(OK + b"X: ")),
    "closed without a word": Odd(answer=raw(b"", closes=True)),
    "reset without a word": Odd(answer=raw(b"", resets=True)),
    "a megabyte in one header": Odd(answer=raw(OK + b"X: " + b"x" * MEGABYTE)),
    "a megabyte of a header's name": Odd(answer=raw(OK + b"x" * MEGABYTE)),
    "ten thousand headers": Odd(answer=raw(OK + b"X: x\r\n" * 10_000 + b"\r\n")),
    "a reason of a megabyte": Odd(answer=raw(b"HTTP/1.1 200 " + b"x" * MEGABYTE)),
    "100 Continue without end": Odd(
        answer=raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000, endless=True)
    ),
    "another protocol from here on": Odd(
        answer=raw(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nwords"), status=101
    ),
    "HTTP/0.9": Odd(answer=raw(b"<html>fine</html>", closes=True)),
    "HTTP/2": Odd(answer=raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")),
    "TLS": Odd(answer=raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")),
    "a length below nothing": Odd(answer=raw(OK + b"Content-Length: -5\r\n\r\n")),
    "no status": Odd(answer=raw(b"HTTP/1.1 000 No\r\n\r\n")),
    "a status that is none": Odd(answer=ServerAnswer(status=999), status=999),
    "not modified": Odd(answer=ServerAnswer(status=304), status=304),
    "moved to itself": Odd(
        answer=ServerAnswer(status=301, headers={"Location": "/moved to itself"}),
        status=301,
    ),
    "moved inside": Odd(
        answer=ServerAnswer(status=308, headers={"Location": "http://127.0.0.1:1/"}),
        status=308,
    ),
    "an error without end": Odd(
        answer=ServerAnswer(status=500, body=bytes(9_000), endless=True), status=500
    ),
    "patience in seconds": Odd(answer=later(429, "60"), status=429, wait=(60, 60)),
    "patience to a date": Odd(
        answer=later(503, in_seconds(6_000)), status=503, wait=(3_000, 6_000)
    ),
    "no patience": Odd(answer=later(429, "0"), status=429),
    "patience of thirty years": Odd(
        answer=later(429, "1000000000"), status=429, wait=DAY
    ),
    "patience to another century": Odd(
        answer=later(503, "Fri, 01 Jan 2100 00:00:00 GMT"), status=503, wait=DAY
    ),
    "patience of a number too large": Odd(
        answer=later(503, "9" * 400), status=503, wait=DAY
    ),
    "negative patience": Odd(answer=later(429, "-60"), status=429),
    "patience to a date in the past": Odd(
        answer=later(503, "Mon, 01 Jan 1990 00:00:00 GMT"), status=503
    ),
    "patience as a float": Odd(answer=later(429, "1e9"), status=429),
    "garbage for patience": Odd(answer=later(503, "soon, \x01 and \xff"), status=503),
    "patience with an error": Odd(answer=later(500, "60"), status=500),
}

GONE = {
    "gone": Odd(answer=ServerAnswer(status=410), status=410),
    "gone without end": Odd(
        answer=ServerAnswer(status=410, body=bytes(9_000), endless=True), status=410
    ),
}
ODD = {**DELIVERED, **FAILED, **GONE}
"""By name, what callbacks answer; besides, there are some that cannot be reached."""


class HastyNetwork:
    """The real one, with less time; it knows how much it was made to keep."""

    def __init__(self, network: Network) -> None:
        self.longest_body = 0
        self._network = network

    async def send(self, request: Request) -> Answer:
        limits = ResponseLimits(seconds=SECONDS, idle_seconds=SECONDS)
        answer = await self._network.send(replace(request, limits=limits))
        self.longest_body = max(self.longest_body, len(answer.body))
        return answer

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        return self._network.is_exempt(host, purpose)


async def test_every_odd_answer_ends_in_time_and_is_taken_for_what_it_is(
    tmp_path: Path,
) -> None:
    with black_hole() as hole:
        async with delivery_scene(tmp_path) as scene, Origin() as origin:
            scene.network = network = HastyNetwork(scene.network)
            callbacks = {name: origin.url(f"/{number}") for number, name in _numbered()}
            for number, name in _numbered():
                origin.serve(f"/{number}", ODD[name].answer)
            callbacks |= {"black hole": hole, "nobody there": "http://127.0.0.1:1/"}
            made = await subscribe_all(scene, callbacks)
            async with scene.dispatching():
                await scene.publish(made["gone"].feed_id)
                await eventually(partial(are_tried, scene, made))
                await eventually(partial(nobody_is_at_work, scene))
                found = {name: await recorded(scene, made[name]) for name in made}
    assert {name: got for name, got in found.items() if not is_right(name, got)} == {}
    assert network.longest_body == LONGEST_BODY


def _numbered() -> Iterator[tuple[int, str]]:
    return iter(enumerate(ODD))


async def subscribe_all(
    scene: DeliveryScene, callbacks: dict[str, str]
) -> dict[str, Subscription]:
    feed_id = await scene.add_feed()
    feed = await scene.storage.feeds.get(feed_id)
    assert feed is not None
    return {
        name: await scene.storage.subscriptions.add(
            NewSubscription(
                account=OPERATOR, topic=feed.url, feed_id=feed_id, callback=callback
            ),
            scene.clock.now(),
        )
        for name, callback in callbacks.items()
    }


async def are_tried(scene: DeliveryScene, made: dict[str, Subscription]) -> bool:
    for subscription in made.values():
        if not await scene.storage.deliveries.attempts(subscription.id, 1):
            return False
    return True


async def nobody_is_at_work(scene: DeliveryScene) -> bool:
    """Nothing is leased, so all that came of it is written."""
    backlog = await scene.storage.backlog()
    first = SubscriptionId(0)
    held = await scene.storage.deliveries.retrying(after=first, limit=100)
    return not backlog.chunks and not any(each.lease_id for each in held)


async def recorded(scene: DeliveryScene, subscription: Subscription) -> Recorded:
    [attempt] = await scene.storage.deliveries.attempts(subscription.id, 10)
    now = await scene.storage.subscriptions.get(subscription.id)
    retrying = await scene.storage.deliveries.retrying_subscription(subscription.id)
    assert now is not None
    wait = None
    if retrying is not None:
        assert (retrying.attempts, retrying.last_status) == (1, attempt.status)
        assert 0 < len(retrying.last_error) <= 200
        wait = (retrying.next_try - attempt.at).total_seconds()
    return Recorded(
        status=attempt.status,
        seconds=attempt.milliseconds / 1000,
        is_over=now.state is SubscriptionState.ENDED,
        wait=wait,
    )


def is_right(name: str, got: Recorded) -> bool:
    odd = ODD.get(name, Odd(answer=ServerAnswer()))
    if got.status != odd.status or got.seconds > 20:
        return False
    if got.is_over or got.wait is None:
        return got.is_over == (name in GONE) and name not in FAILED
    least, most = odd.wait
    return name not in DELIVERED and least <= got.wait <= most
