"""Operational events: what the operator's webhooks are told of feeds, subscriptions and
the hub itself.

A message is one of Standard Webhooks: a type, a time, and data. Which types a webhook
takes is written in its topic, ``events:feed.*,hub.disk``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, Struct

from protocols.protocol_errors import InvalidValue


class EventType(StrEnum):
    FEED_FAILING = "feed.failing"
    FEED_RECOVERED = "feed.recovered"
    FEED_GONE = "feed.gone"
    FEED_MOVED = "feed.moved"
    SUBSCRIPTION_FAILING = "subscription.failing"
    SUBSCRIPTION_RECOVERED = "subscription.recovered"
    SUBSCRIPTION_GIVEN_UP = "subscription.given_up"
    SUBSCRIPTION_ENDED = "subscription.ended"
    HUB_DISK = "hub.disk"
    HUB_BACKLOG = "hub.backlog"


MEANINGS: Final[Mapping[EventType, str]] = {
    EventType.FEED_FAILING: "a feed has failed twice in a row",
    EventType.FEED_RECOVERED: "a feed that was failing works again",
    EventType.FEED_GONE: "a feed is no longer polled: it answered 410, or 404 for days",
    EventType.FEED_MOVED: "a feed's server redirects for good; the target is polled",
    EventType.SUBSCRIPTION_FAILING: "a callback has failed twice in a row",
    EventType.SUBSCRIPTION_RECOVERED: "a callback that was failing works again",
    EventType.SUBSCRIPTION_GIVEN_UP: "what a callback did not take is a dead letter",
    EventType.SUBSCRIPTION_ENDED: "a subscription has ended",
    EventType.HUB_DISK: "the disk is full or soon will be, or is so no longer",
    EventType.HUB_BACKLOG: "polls or deliveries are late, or are so no longer",
}

TEST_TYPE: Final = "hub.test"
"""The type of a test delivery; nobody subscribes to it."""

# --- which of them a webhook takes ---

EVERY_TYPE: Final = "*"
EVENT_TOPIC: Final = "events:"
"""The beginning of the topics of webhooks for events. No request ever asks for them."""


def _family(type: str) -> str:
    return f"{type.partition('.')[0]}.*"


FAMILIES: Final = tuple(dict.fromkeys(_family(each) for each in EventType))
SELECTABLE: Final = (EVERY_TYPE, *FAMILIES, *EventType)


def read_event_types(given: Sequence[str], field: str) -> tuple[str, ...]:
    """Read types and wildcards; in a fixed order, without types that a wildcard covers.

    Raises `InvalidValue` naming the field.
    """
    if not given:
        raise InvalidValue(field, f"at least one of {', '.join(SELECTABLE)}")
    wanted = {each.strip() for each in given}
    for each in sorted(wanted.difference(SELECTABLE)):
        raise InvalidValue(field, f"any of {', '.join(SELECTABLE)}", each)
    return tuple(
        each
        for each in SELECTABLE
        if each in wanted and not _wildcards(each) & wanted - {each}
    )


def event_topic(types: Sequence[str]) -> str:
    """The topic of a webhook for these types, as `read_event_types` returns them."""
    return EVENT_TOPIC + ",".join(types)


def types_of_topic(topic: str) -> tuple[str, ...]:
    """The types that a topic takes; empty if it is not a topic of events."""
    if not topic.startswith(EVENT_TOPIC):
        return ()
    return tuple(topic.removeprefix(EVENT_TOPIC).split(","))


def takes(topic: str, type: EventType) -> bool:
    """Whether a webhook with this topic takes events of the type."""
    return not {type, *_wildcards(type)}.isdisjoint(types_of_topic(topic))


def _wildcards(type: str) -> set[str]:
    return {EVERY_TYPE, _family(type)}


# --- messages ---

AwareTime = Annotated[datetime, Meta(tz=True)]


class FeedEventData(Struct, frozen=True, kw_only=True):
    """A feed began to fail, works again, or is no longer polled.

    ``url`` is without its query, and of a private feed the host alone. ``since``: when
    it began to fail. ``code``: of the last answer, 0 if there was none.
    """

    feed: int
    url: str
    since: AwareTime
    reason: str
    code: int | None
    link: str


class FeedMoveData(Struct, frozen=True, kw_only=True):
    """A feed's server redirects for good: ``target`` is polled from now on. ``since``:
    when the redirect was first seen."""

    feed: int
    url: str
    target: str
    since: AwareTime
    link: str


class SubscriptionEventData(Struct, frozen=True, kw_only=True):
    """A callback began to fail, works again, or its subscription has ended.

    ``callback`` is the host alone. ``since``: when it began to fail. ``code``: of the
    last answer, 0 if there was none.
    """

    subscription: int
    topic: str
    callback: str
    since: AwareTime
    reason: str
    code: int | None
    link: str


class GivenUpData(Struct, frozen=True, kw_only=True):
    """Records ``first`` to ``last`` of the log were not delivered: a dead letter."""

    subscription: int
    topic: str
    callback: str
    since: AwareTime
    reason: str
    first: int
    last: int
    link: str


class ConditionState(StrEnum):
    FIRING = "firing"
    RESOLVED = "resolved"


class HubEventData(Struct, frozen=True, kw_only=True):
    """A condition of the hub began, or is over. ``reason``: what is wrong, or was."""

    condition: str
    state: ConditionState
    since: AwareTime
    reason: str
    advice: str
    link: str


class TrialEventData(Struct, frozen=True, kw_only=True):
    """Somebody tries the webhook, which takes these types."""

    subscription: int
    types: tuple[str, ...]
    link: str


EventData = (
    FeedEventData
    | FeedMoveData
    | SubscriptionEventData
    | GivenUpData
    | HubEventData
    | TrialEventData
)

DATA_OF_TYPE: Final[Mapping[str, type[Struct]]] = {
    **{each: FeedEventData for each in EventType if _family(each) == "feed.*"},
    EventType.FEED_MOVED: FeedMoveData,
    **{
        each: SubscriptionEventData
        for each in EventType
        if _family(each) == "subscription.*"
    },
    EventType.SUBSCRIPTION_GIVEN_UP: GivenUpData,
    EventType.HUB_DISK: HubEventData,
    EventType.HUB_BACKLOG: HubEventData,
    TEST_TYPE: TrialEventData,
}


class EventMessage(Struct, frozen=True, kw_only=True):
    """The body of a webhook. ``timestamp``: when it happened."""

    type: str
    timestamp: AwareTime
    data: EventData
