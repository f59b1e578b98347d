"""What a subscriber asks to be sent again."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from hub.delivery import redelivery
from hub.delivery.notification_counter import GIVEN, NotificationCounter
from hub.delivery.notifications import NotificationBody
from hub.delivery.redelivery import Redeliveries
from hub.http import Purpose
from hub.http.network_errors import NetworkError, Unreachable
from protocols.websub.signatures import sign
from tests.support.clock import ManualClock
from tests.support.fake_network import FakeNetwork
from tests.support.subscriptions import a_subscription
from tests.support.waiting import eventually

DOCUMENT = NotificationBody("application/json; charset=utf-8", b"{}")
LARGE = NotificationBody("application/atom+xml", b"x" * 300_000)


@pytest.fixture
def callbacks() -> FakeNetwork:
    return FakeNetwork(204)


@pytest.fixture
def redeliveries(callbacks: FakeNetwork) -> Redeliveries:
    return Redeliveries(
        callbacks, ManualClock(), "http://hub.example/hub", NotificationCounter()
    )


@pytest.mark.parametrize("document", [DOCUMENT, LARGE], ids=["small", "large"])
async def test_a_document_is_posted_as_any_notification_but_with_an_id_of_its_own(
    callbacks: FakeNetwork, redeliveries: Redeliveries, document: NotificationBody
) -> None:
    subscription = a_subscription(secret="s3cret", algorithm="sha1")

    assert await redeliveries.send(subscription, document) == ""
    await redeliveries.send(subscription, document)

    first, second = callbacks.requests
    assert (first.method, first.url) == ("POST", subscription.callback)
    assert first.purpose is Purpose.CALLBACK
    assert first.body == document.body
    assert first.headers["Content-Type"] == document.content_type
    assert first.headers["X-PubSubHubbub-Topic"] == subscription.topic
    signature = sign("sha1", "s3cret", document.body)
    assert first.headers["X-Hub-Signature"] == signature
    assert first.headers["webhook-id"] != second.headers["webhook-id"]
    assert "." not in first.headers["webhook-id"]
    left = [int(each.headers["X-Superfeedr-Credits"]) for each in callbacks.requests]
    ends = [
        each.headers["X-Superfeedr-PubSubHubbub-Expire"] for each in callbacks.requests
    ]
    assert all(int(each) > 2_000_000_000 for each in ends)
    assert left == [GIVEN - 1, GIVEN - 2]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (200, ""),
        (299, ""),
        (410, "it answered 410"),
        (500, "it answered 500"),
        (Unreachable("nobody there"), "nobody there"),
    ],
)
async def test_whoever_waits_is_told_why_a_callback_did_not_take_it(
    callbacks: FakeNetwork,
    redeliveries: Redeliveries,
    answer: int | NetworkError,
    reason: str,
) -> None:
    callbacks.answer_with(answer)

    assert await redeliveries.send(a_subscription(), DOCUMENT) == reason


async def test_what_nobody_waits_for_is_sent_in_the_background(
    callbacks: FakeNetwork, redeliveries: Redeliveries
) -> None:
    for _ in range(20):
        assert redeliveries.send_later(a_subscription(), DOCUMENT)
    running = asyncio.create_task(redeliveries.run())
    await eventually(lambda: len(callbacks.requests) == 20)

    callbacks.answer_with(500)
    assert redeliveries.send_later(a_subscription(), DOCUMENT)
    await eventually(lambda: len(callbacks.requests) == 21)
    callbacks.answer_with(204)
    assert redeliveries.send_later(a_subscription(), DOCUMENT)
    await eventually(lambda: len(callbacks.requests) == 22)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_fault_of_one_is_logged_and_harms_no_other(
    callbacks: FakeNetwork, redeliveries: Redeliveries
) -> None:
    callbacks.answer_with(ValueError("odd"))
    for _ in range(redelivery.AT_ONCE):
        assert redeliveries.send_later(a_subscription(), DOCUMENT)
    with capture_logs() as lines:
        running = asyncio.create_task(redeliveries.run())
        await eventually(lambda: len(lines) == redelivery.AT_ONCE)
    assert {(line["event"], line["exc_info"]) for line in lines} == {
        ("redelivery_broke", True)
    }
    callbacks.answer_with(204)
    assert redeliveries.send_later(a_subscription(), DOCUMENT)
    await eventually(lambda: len(callbacks.requests) == redelivery.AT_ONCE + 1)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_only_so_many_wait(redeliveries: Redeliveries) -> None:
    for _ in range(redelivery.MOST_WAITING):
        assert redeliveries.send_later(a_subscription(), DOCUMENT)

    assert not redeliveries.send_later(a_subscription(), DOCUMENT)


async def test_only_so_much_waits(
    callbacks: FakeNetwork, redeliveries: Redeliveries
) -> None:
    most = NotificationBody("text/plain", bytes(redelivery.MOST_BYTES))
    assert redeliveries.send_later(a_subscription(), most)
    assert not redeliveries.send_later(a_subscription(), DOCUMENT)

    running = asyncio.create_task(redeliveries.run())
    await eventually(lambda: redeliveries.send_later(a_subscription(), DOCUMENT))
    await eventually(lambda: len(callbacks.requests) == 2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_what_is_larger_than_all_may_be_waits_alone(
    redeliveries: Redeliveries,
) -> None:
    huge = NotificationBody("text/plain", bytes(redelivery.MOST_BYTES + 1))
    assert redeliveries.send_later(a_subscription(), huge)
    assert not redeliveries.send_later(a_subscription(), huge)
