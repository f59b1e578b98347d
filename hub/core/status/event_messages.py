"""What the operator's webhooks are sent for an operational event.

URLs are as in the log of the process: without their queries, and for private feeds and
callbacks only the host. Whoever may use the API finds the whole URL at the link.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from protocols.operational_events import (
    TEST_TYPE,
    ConditionState,
    EventData,
    EventMessage,
    EventType,
    FeedEventData,
    FeedMoveData,
    GivenUpData,
    HubEventData,
    SubscriptionEventData,
    TrialEventData,
    types_of_topic,
)
from protocols.safe_urls import host_only, without_query
from storage.records import OperationalEvent, Subscription


def api_url_of(hub_url: str) -> str:
    """The URL of the API for a page of the same hub: both are below its public URL."""
    return f"{hub_url.removesuffix('/hub')}/api"


def render_event(event: OperationalEvent, api_url: str) -> bytes:
    message = EventMessage(
        type=event.type, timestamp=event.at, data=_data(event, api_url)
    )
    return msgspec.json.encode(message)


def render_event_trial(subscription: Subscription, at: datetime, api_url: str) -> bytes:
    """The message of a test delivery."""
    data = TrialEventData(
        subscription=subscription.id,
        types=types_of_topic(subscription.topic),
        link=f"{api_url}/subscriptions/{subscription.id}",
    )
    return msgspec.json.encode(EventMessage(type=TEST_TYPE, timestamp=at, data=data))


def _data(event: OperationalEvent, api_url: str) -> EventData:
    match event.type:
        case EventType.FEED_MOVED:
            return _of_move(event, api_url)
        case EventType.FEED_FAILING | EventType.FEED_RECOVERED | EventType.FEED_GONE:
            return _of_feed(event, api_url)
        case EventType.SUBSCRIPTION_GIVEN_UP:
            return _of_given_up(event, api_url)
        case EventType.HUB_DISK | EventType.HUB_BACKLOG:
            return _of_hub(event, api_url)
        case _:
            return _of_subscription(event, api_url)


def _of_feed(event: OperationalEvent, api_url: str) -> FeedEventData:
    return FeedEventData(
        feed=event.subject,
        url=_shown(event.url, event),
        since=event.since or event.at,
        reason=event.reason,
        code=event.code,
        link=f"{api_url}/feeds/{event.subject}",
    )


def _of_move(event: OperationalEvent, api_url: str) -> FeedMoveData:
    return FeedMoveData(
        feed=event.subject,
        url=_shown(event.url, event),
        target=_shown(event.target, event),
        since=event.since or event.at,
        link=f"{api_url}/feeds/{event.subject}",
    )


def _of_subscription(event: OperationalEvent, api_url: str) -> SubscriptionEventData:
    return SubscriptionEventData(
        subscription=event.subject,
        topic=_shown(event.url, event),
        callback=host_only(event.callback),
        since=event.since or event.at,
        reason=event.reason,
        code=event.code,
        link=f"{api_url}/subscriptions/{event.subject}",
    )


def _of_given_up(event: OperationalEvent, api_url: str) -> GivenUpData:
    return GivenUpData(
        subscription=event.subject,
        topic=_shown(event.url, event),
        callback=host_only(event.callback),
        since=event.since or event.at,
        reason=event.reason,
        first=event.first,
        last=event.last,
        link=f"{api_url}/subscriptions/{event.subject}",
    )


def _of_hub(event: OperationalEvent, api_url: str) -> HubEventData:
    return HubEventData(
        condition=event.condition,
        state=ConditionState.RESOLVED if event.is_over else ConditionState.FIRING,
        since=event.since or event.at,
        reason=event.reason,
        advice=event.advice,
        link=f"{api_url}/health",
    )


def _shown(url: str, event: OperationalEvent) -> str:
    return host_only(url) if event.is_private else without_query(url)
