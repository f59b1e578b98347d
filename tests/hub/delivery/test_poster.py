from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from hub import PRODUCT
from hub.core.delivery.delivery_outcome import CallbackResponse
from hub.delivery.notification_counter import GIVEN
from hub.delivery.notifications import NotificationBody
from hub.delivery.webhook import Poster, SlowRequests
from hub.http import Purpose, Request
from hub.http.network_errors import BadAnswer, TimedOut
from hub.limits.callback_origin_limiter import OriginLimiter
from hub.runtime.callback_durations import CallbackDurations
from protocols.websub.signatures import verify
from protocols.websub.websub_parameters import ENDLESS_LEASE
from storage.records import ANONYMOUS, OPERATOR, AccountId, Position
from tests.support.clock import ManualClock
from tests.support.fake_network import FakeNetwork, answered
from tests.support.subscriptions import a_subscription

HUB_URL = "https://hub.example/hub"
ORIGIN = "https://callback.example"
DOCUMENT = NotificationBody("application/json", b'{"a":1}')


class Scene:
    def __init__(self, callback: FakeNetwork) -> None:
        self.callback = callback
        self.clock = ManualClock()
        self.slow_requests = SlowRequests(callback, self.clock, slow_limit=8)
        self.origins = OriginLimiter(lambda host: False)
        self.durations = CallbackDurations()
        self.poster = Poster(
            self.slow_requests,
            self.origins,
            self.clock,
            HUB_URL,
            durations=self.durations,
        )
        self.poster.epoch = "ep0ch"
        self.aside = 0

    async def post(
        self,
        *,
        document: NotificationBody = DOCUMENT,
        failures: int = 0,
        missed: tuple[int, int] | None = None,
        **more: object,
    ) -> CallbackResponse:
        assert self.poster.admits(ORIGIN)
        return await self.poster.post(
            a_subscription(**more),
            document,
            Position(12),
            origin=ORIGIN,
            on_slow=self._move_aside,
            failures=failures,
            missed=missed and (Position(missed[0]), Position(missed[1])),
        )

    def _move_aside(self) -> None:
        self.aside += 1

    def places(self) -> int:
        taken = 0
        while self.poster.admits(ORIGIN):
            taken += 1
        return taken


async def test_a_request_says_what_it_is_and_where_from() -> None:
    callback = FakeNetwork()
    scene = Scene(callback)
    reply = await scene.post(secret="s3cret")
    over = int(scene.clock.unix() * 1_000) + 7
    assert reply == CallbackResponse(status=200, milliseconds=7, at=over)
    (request,) = callback.requests
    assert (request.method, request.body) == ("POST", DOCUMENT.body)
    assert request.purpose is Purpose.CALLBACK
    assert request.cuts_body
    assert request.limits.seconds == 20.0
    headers = request.headers
    assert headers["User-Agent"] == f"{PRODUCT} (+{HUB_URL})"
    assert headers["Content-Type"] == "application/json"
    assert headers["webhook-id"] == "ep0ch-12-1"
    assert verify(headers["X-Hub-Signature"], "s3cret", DOCUMENT.body)
    assert "X-Superfeedr-Retried" not in headers


async def test_a_fault_of_the_hub_itself_ends_nothing_but_its_request() -> None:
    scene = Scene(FakeNetwork(IndexError("nobody thought of that")))
    before = Scene(FakeNetwork()).places()
    with capture_logs() as lines:
        reply = await scene.post()
    assert (reply.status, reply.error) == (0, "an internal error of the hub")
    assert [line["event"] for line in lines] == ["delivery_broke"]
    assert scene.places() == before


async def test_a_fault_of_the_hub_says_nothing_of_how_long_a_callback_takes() -> None:
    scene = Scene(FakeNetwork())

    def break_after_two_seconds(request: Request) -> Exception:
        scene.clock.advance(2)
        return IndexError("nobody thought of that")

    slow = replace(answered(), milliseconds=400)
    scene.callback.answer_with(slow, break_after_two_seconds)
    begun = scene.clock.unix()
    await scene.post()
    reply = await scene.post()
    assert reply.milliseconds == 2_000
    [found] = scene.durations.slowest(9)
    assert (found.requests, found.median_milliseconds) == (1, 400)
    assert found.last.timestamp() == begun + 0.4


async def test_a_large_document_is_signed_like_any_other() -> None:
    callback = FakeNetwork()
    large = NotificationBody("application/json", b"[%b]" % (b" " * 300_000))
    await Scene(callback).post(document=large, secret="s3cret")
    (request,) = callback.requests
    assert verify(request.headers["X-Hub-Signature"], "s3cret", large.body)


async def test_a_retry_says_so_and_what_was_missed() -> None:
    callback = FakeNetwork()
    await Scene(callback).post(failures=2, missed=(3, 9))
    headers = callback.requests[0].headers
    assert headers["X-Superfeedr-Retried"] == "2"
    assert headers["Fanfare-Missed"] == "3-9"


@pytest.mark.parametrize(
    ("status", "header", "retry_after"),
    [
        (429, "60", 60.0),
        (503, "Thu, 01 Jan 2026 00:02:00 GMT", 120.0),
        (503, "soon", None),
        (503, "", None),
        (500, "60", None),
    ],
)
async def test_retry_after_is_read_where_it_means_something(
    status: int, header: str, retry_after: float | None
) -> None:
    callback = FakeNetwork(answered(status, headers={"Retry-After": header}))
    reply = await Scene(callback).post()
    assert reply.retry_after == retry_after
    assert reply.error == f"answered {status}"


async def test_no_answer_is_status_0_with_the_reason() -> None:
    callback = FakeNetwork(TimedOut("nothing within 20 s " * 50))
    reply = await Scene(callback).post()
    assert reply.status == 0
    assert reply.error.startswith("nothing within 20 s")
    assert len(reply.error) == 200


async def test_a_2xx_that_breaks_off_is_a_2xx() -> None:
    callback = FakeNetwork(BadAnswer("broken off", status=200))
    assert (await Scene(callback).post()).status == 200


@pytest.mark.parametrize("status", [200, 301, 404, 410, 500])
async def test_the_place_at_the_origin_is_given_back(status: int) -> None:
    scene = Scene(FakeNetwork(status))
    await scene.post()
    assert scene.places() == 8


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_some_answers_speak_of_the_whole_origin(status: int) -> None:
    scene = Scene(FakeNetwork(status))
    await scene.post()
    assert scene.places() == 4


async def test_a_hanging_request_leaves_its_origin_after_a_second() -> None:
    callback = FakeNetwork(503)
    callback.gate.clear()
    scene = Scene(callback)
    posting = asyncio.create_task(scene.post())
    await asyncio.sleep(0)
    scene.clock.advance(1.0)
    scene.slow_requests.sweep()
    assert scene.aside == 0
    scene.slow_requests.sweep()
    assert scene.aside == 1
    callback.gate.set()
    assert (await posting).status == 503
    assert scene.places() == 4  # halved once, for the second it took


async def test_requests_of_an_account_are_counted_down() -> None:
    callback = FakeNetwork()
    scene = Scene(callback)
    for account in (OPERATOR, AccountId(3), OPERATOR):
        await scene.post(account=account)
    left = [int(each.headers["X-Superfeedr-Credits"]) for each in callback.requests]
    assert left == [GIVEN - 1, GIVEN - 1, GIVEN - 2]


async def test_the_open_hub_counts_nothing() -> None:
    callback = FakeNetwork()
    await Scene(callback).post(account=ANONYMOUS)
    assert "X-Superfeedr-Credits" not in callback.requests[0].headers


@pytest.mark.parametrize(
    ("lease_end", "seconds"), [(None, ENDLESS_LEASE), (timedelta(days=1), 86_400)]
)
async def test_an_account_is_told_when_its_subscription_ends(
    lease_end: timedelta | None, seconds: int
) -> None:
    callback = FakeNetwork()
    scene = Scene(callback)
    now = scene.clock.now()
    end = None if lease_end is None else now + lease_end
    await scene.post(account=OPERATOR, lease_end=end)
    told = callback.requests[0].headers["X-Superfeedr-PubSubHubbub-Expire"]
    assert int(told) == int(now.timestamp()) + seconds
