"""Failed deliveries, shown in full: by a dispatcher and a receiver on real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hub.runtime.metrics import Metrics
from hub.services.delivery_reports import (
    NOT_KEPT,
    NOT_OPEN,
    NOTHING_LEFT,
    TRIMMED,
    DeliveryReportService,
)
from protocols.http import RequestStage
from protocols.model import Entry
from storage.errors import NotFound
from storage.records import (
    AccountId,
    AttemptFilter,
    DeliveryFlush,
    FeedId,
    Format,
    RecordKind,
    Retention,
    SubscriptionId,
)
from tests.support.clock import ManualClock
from tests.support.delivery_scene import (
    HUB_URL,
    CappedNetwork,
    DeliveryScene,
    delivery_scene,
)
from tests.support.failures import failed
from tests.support.http_server import ServerAnswer
from tests.support.waiting import eventually

SORRY = ServerAnswer(
    status=503, headers={"X-Why": "load"}, body="kéine Zeit ".encode() * 200
)


NOTHING = Retention(soft_age=0, soft_count=0, hard_age=0, hard_count=0)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[DeliveryScene]:
    async with delivery_scene(tmp_path) as scene:
        scene.network = CappedNetwork(scene.network)
        scene.subscribers["hook"].answer(SORRY)
        yield scene


@pytest.fixture
def reports(scene: DeliveryScene) -> DeliveryReportService:
    return DeliveryReportService(scene.storage, HUB_URL, Metrics(), scene.clock)


async def one_failure(scene: DeliveryScene, **terms: object) -> FeedId:
    """A delivery to a callback that answers 503, the first of this scene: number 1."""
    feed = await scene.add_feed()
    await scene.subscribe(feed, "hook", **terms)
    await scene.publish(feed, "News")
    deliveries = scene.storage.deliveries
    async with scene.dispatching():
        await eventually(lambda: len(scene.subscribers["hook"].receipts))
    assert await deliveries.count_failed_attempts(AttemptFilter(), 9) == 1
    return feed


@pytest.mark.parametrize("format", [Format.JSON, Format.ATOM])
async def test_the_request_is_shown_as_it_was_sent_without_its_secret(
    scene: DeliveryScene, reports: DeliveryReportService, format: Format
) -> None:
    await one_failure(scene, secret="geheim", format=format)
    (sent,) = scene.subscribers["hook"].deliveries

    report = await reports.get(1)

    request = report.request
    assert request is not None
    shown = {name.lower(): value for name, value in request.headers.items()}
    assert {**shown, "content-length": str(len(request.body))} == sent.headers
    assert (request.body, request.is_same) == (sent.body, True)
    assert [each.title for each in report.told.entries] == ["News"]
    assert request.url == scene.subscribers["hook"].url
    assert "geheim" not in repr(report)


async def test_the_answer_is_shown_as_far_as_it_is_kept(
    scene: DeliveryScene, reports: DeliveryReportService
) -> None:
    await one_failure(scene)
    details = (await reports.get(1)).failed.attempt.details
    assert details is not None
    assert details.stage is RequestStage.ANSWERED
    assert details.answer is not None
    assert details.answer.status_line == "HTTP/1.1 503 Scripted"
    assert ("x-why", "load") in details.answer.headers
    assert details.answer.body == SORRY.body[:1024]
    assert details.answer.is_excerpt


async def test_entries_that_changed_since_are_shown_as_they_are_and_said_so(
    scene: DeliveryScene, reports: DeliveryReportService
) -> None:
    feed = await one_failure(scene)
    changed = Entry(key="key-1", id="id-1", title="Newer")
    await scene.commit(feed, RecordKind.UPDATED, [changed], fresh=False)
    request = (await reports.get(1)).request
    assert request is not None
    assert b"Newer" in request.body
    assert not request.is_same


async def test_what_would_be_sent_now_is_signed_with_the_time_of_now(
    scene: DeliveryScene,
) -> None:
    clock = ManualClock(datetime(2099, 1, 1, tzinfo=UTC))
    reports = DeliveryReportService(scene.storage, HUB_URL, Metrics(), clock)
    feed = await one_failure(scene, secret="geheim")
    (sent,) = scene.subscribers["hook"].deliveries
    as_sent = (await reports.get(1)).request
    changed = Entry(key="key-1", id="id-1", title="Newer")
    await scene.commit(feed, RecordKind.UPDATED, [changed], fresh=False)
    as_now = (await reports.get(1)).request
    assert as_sent is not None
    assert as_now is not None
    stamp = "webhook-timestamp"
    assert as_sent.headers[stamp] == sent.headers[stamp]
    assert as_now.headers[stamp] == f"{clock.unix():.0f}"


async def test_a_request_of_which_nothing_is_left_says_why(
    scene: DeliveryScene, reports: DeliveryReportService
) -> None:
    feed = await one_failure(scene)
    gone = Entry(key="key-1", id="id-1", title="News")
    await scene.commit(feed, RecordKind.DELETED, [gone], deleted=True)
    assert (await reports.get(1)).reason == NOTHING_LEFT
    await scene.storage.subscriptions.end(
        SubscriptionId(1), "over", scene.clock.now(), tell=False
    )
    later = scene.clock.now() + timedelta(days=3_650)
    assert await scene.storage.log.trim(NOTHING, later, 9)
    assert (await reports.get(1)).reason == TRIMMED


async def test_an_older_failure_has_no_request_to_show(
    scene: DeliveryScene, reports: DeliveryReportService
) -> None:
    subscription = await scene.subscribe(await scene.add_feed(), "hook")
    flush = DeliveryFlush(at=scene.clock.now(), attempts=(failed(subscription),))
    await scene.storage.deliveries.flush(flush)
    assert (await reports.get(1)).reason == NOT_KEPT


async def test_others_do_not_learn_of_an_accounts_failures(
    scene: DeliveryScene, reports: DeliveryReportService
) -> None:
    await one_failure(scene)
    with pytest.raises(NotFound):
        await reports.get(1, account=AccountId(7))
    with pytest.raises(NotFound):
        await reports.get(2)
    assert (await reports.get(1)).failed.attempt.subscription_id == SubscriptionId(1)


async def test_its_account_is_shown_no_request_after_the_subscription_has_ended(
    scene: DeliveryScene, reports: DeliveryReportService
) -> None:
    """It is rendered from the entries as they are now, which it may not read."""
    await one_failure(scene)
    whose = (await reports.get(1)).failed.attempt.subscription_id
    subscription = await scene.storage.subscriptions.get(whose)
    assert subscription is not None
    assert (await reports.get(1, account=subscription.account)).request is not None

    await scene.storage.subscriptions.end(
        whose, "unsubscribed", scene.clock.now(), tell=False
    )

    shown = await reports.get(1, account=subscription.account)
    assert (shown.request, shown.reason) == (None, NOT_OPEN)
    assert (await reports.get(1)).request is not None  # to the operator
