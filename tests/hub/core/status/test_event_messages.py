from __future__ import annotations

import json
from typing import Any

import pytest

from hub.core.status.event_messages import (
    api_url_of,
    render_event,
    render_event_trial,
)
from hub.web.api.openapi import openapi_document
from protocols.operational_events import EventType
from storage.records import OperationalEvent, Position
from tests.support.fetch_targets import START
from tests.support.json_schema import faults
from tests.support.subscriptions import a_subscription

API = "https://hub.example/api"
WHOLE = OperationalEvent(
    type=EventType.FEED_FAILING,
    at=START,
    subject=7,
    url="https://feed.example/path?key=secret",
    target="https://new.example/path?key=secret",
    callback="https://ann:secret@hook.example:8443/secret?secret",
    reason="answered 503",
    code=503,
    first=Position(3),
    last=Position(5),
    condition="disk",
    advice="free space",
)


def rendered(**changes: Any) -> dict[str, Any]:
    event = OperationalEvent(
        **{each: getattr(WHOLE, each) for each in WHOLE.__struct_fields__} | changes
    )
    message: dict[str, Any] = json.loads(render_event(event, API))
    return message


@pytest.mark.parametrize("type", EventType)
def test_a_message_is_as_the_description_of_the_api_has_it(type: EventType) -> None:
    document: Any = openapi_document()
    content = document["webhooks"][type]["post"]["requestBody"]["content"]
    schema = content["application/json"]["schema"]
    known = document["components"]["schemas"]
    assert faults(rendered(type=type), schema, known) == []


@pytest.mark.parametrize("type", EventType)
@pytest.mark.parametrize("is_private", [False, True])
def test_no_message_has_a_secret(type: EventType, is_private: bool) -> None:
    text = json.dumps(rendered(type=type, is_private=is_private))
    assert "secret" not in text
    assert ("/path" in text) is (
        not is_private and type not in (EventType.HUB_DISK, EventType.HUB_BACKLOG)
    )
    assert len(text) < 1_000


def test_a_feed_that_fails() -> None:
    assert rendered() == {
        "type": "feed.failing",
        "timestamp": "2026-01-01T00:00:00Z",
        "data": {
            "feed": 7,
            "url": "https://feed.example/path?…",
            "since": "2026-01-01T00:00:00Z",
            "reason": "answered 503",
            "code": 503,
            "link": "https://hub.example/api/feeds/7",
        },
    }


def test_a_private_feed_that_moved() -> None:
    assert rendered(type=EventType.FEED_MOVED, is_private=True)["data"] == {
        "feed": 7,
        "url": "https://feed.example/…",
        "target": "https://new.example/…",
        "since": "2026-01-01T00:00:00Z",
        "link": "https://hub.example/api/feeds/7",
    }


def test_deliveries_that_were_given_up() -> None:
    assert rendered(type=EventType.SUBSCRIPTION_GIVEN_UP)["data"] == {
        "subscription": 7,
        "topic": "https://feed.example/path?…",
        "callback": "https://hook.example/…",
        "since": "2026-01-01T00:00:00Z",
        "reason": "answered 503",
        "first": 3,
        "last": 5,
        "link": "https://hub.example/api/subscriptions/7",
    }


@pytest.mark.parametrize(("is_over", "state"), [(False, "firing"), (True, "resolved")])
def test_a_condition_of_the_hub(is_over: bool, state: str) -> None:
    assert rendered(type=EventType.HUB_DISK, is_over=is_over)["data"] == {
        "condition": "disk",
        "state": state,
        "since": "2026-01-01T00:00:00Z",
        "reason": "answered 503",
        "advice": "free space",
        "link": "https://hub.example/api/health",
    }


def test_a_test_delivery() -> None:
    subscription = a_subscription(topic="events:feed.*,hub.disk")
    assert json.loads(render_event_trial(subscription, START, API)) == {
        "type": "hub.test",
        "timestamp": "2026-01-01T00:00:00Z",
        "data": {
            "subscription": subscription.id,
            "types": ["feed.*", "hub.disk"],
            "link": f"https://hub.example/api/subscriptions/{subscription.id}",
        },
    }


def test_the_api_is_beside_the_hub() -> None:
    assert (
        api_url_of("https://hub.example/below/hub") == "https://hub.example/below/api"
    )
