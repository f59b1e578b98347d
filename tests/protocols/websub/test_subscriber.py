"""WebSub as its subscribers speak it."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

import pytest

from protocols.protocol_errors import InvalidValue
from protocols.websub.subscribing import (
    HubDenial,
    HubQuestion,
    read_question,
    subscription_form,
)
from protocols.websub.websub_parameters import DEFAULT_LEASE, LONGEST_LEASE, read_form

TOPIC = "https://feed.example/?a=1&b=ü"


def question(**changes: str) -> HubQuestion | HubDenial:
    values = {"mode": "subscribe", "topic": TOPIC, "challenge": "c", **changes}
    query = urlencode({f"hub.{name}": value for name, value in values.items()})
    return read_question(read_form(b"", query))


def test_a_request_names_topic_callback_and_secret() -> None:
    body = subscription_form(
        mode="subscribe",
        topic=TOPIC,
        callback="https://us.example/x",
        secret="s&s",
        lease_seconds=10,
    )
    assert dict(parse_qsl(body.decode())) == {
        "hub.mode": "subscribe",
        "hub.topic": TOPIC,
        "hub.callback": "https://us.example/x",
        "hub.verify": "async",
        "hub.secret": "s&s",
        "hub.lease_seconds": "10",
    }


def test_an_end_needs_neither_secret_nor_lease() -> None:
    body = subscription_form(mode="unsubscribe", topic="t", callback="c")
    assert b"secret" not in body
    assert b"lease" not in body


@pytest.mark.parametrize(
    ("lease", "seconds"),
    [
        ("300", 300),
        (" 60 ", 60),
        ("0", 0),
        ("", DEFAULT_LEASE),
        ("soon", DEFAULT_LEASE),
        ("-5", DEFAULT_LEASE),
        ("9" * 400, LONGEST_LEASE),
        ("٣", DEFAULT_LEASE),
    ],
)
def test_a_lease_is_what_the_hub_says_within_reason(lease: str, seconds: int) -> None:
    found = question(lease_seconds=lease)
    assert isinstance(found, HubQuestion)
    assert (found.mode, found.topic, found.challenge) == ("subscribe", TOPIC, "c")
    assert found.lease_seconds == seconds


def test_a_denial_may_have_a_reason() -> None:
    assert question(mode="denied") == HubDenial(topic=TOPIC)
    found = question(mode="denied", reason="no\r\n" + "o" * 300)
    assert isinstance(found, HubDenial)
    assert found.reason == "no" + "o" * 198


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"mode": ""}, "hub.mode"),
        ({"mode": "publish"}, "hub.mode"),
        ({"topic": ""}, "hub.topic"),
        ({"challenge": ""}, "hub.challenge"),
        ({"challenge": "a" * 1_025}, "hub.challenge"),
        ({"challenge": "a\x00b"}, "hub.challenge"),
        ({"challenge": "ä"}, "hub.challenge"),
    ],
)
def test_what_cannot_be_confirmed_is_refused_by_name(
    changes: dict[str, str], field: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        question(**changes)
    assert refused.value.field == field
