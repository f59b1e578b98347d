from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from protocols.websub.delivery import WebhookDelivery, delivery_headers, notification_id
from protocols.websub.signatures import sign, sign_webhook, verify

DELIVERY = WebhookDelivery(
    topic="https://site.example/feed?a=1",
    callback="https://reader.example/callback?id=7",
    hub="https://hub.example/hub",
    content_type="application/json; charset=utf-8",
    body=b"{}",
    id="4f2a-15-7",
    timestamp=1_700_000_000,
    user_agent="Fanfare/1.0 (+https://hub.example)",
)
TEXT = st.text(min_size=1, max_size=40)


def test_without_a_secret_nothing_is_signed() -> None:
    assert delivery_headers(DELIVERY) == {
        "User-Agent": "Fanfare/1.0 (+https://hub.example)",
        "Content-Type": "application/json; charset=utf-8",
        "Link": (
            '<https://hub.example/hub>; rel="hub", '
            '<https://site.example/feed?a=1>; rel="self"'
        ),
        "X-PubSubHubbub-Topic": "https://site.example/feed?a=1",
        "X-PubSubHubbub-Callback": "https://reader.example/callback?id=7",
        "webhook-id": "4f2a-15-7",
        "webhook-timestamp": "1700000000",
    }


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha384", "sha512"])
def test_with_a_secret_both_signatures_are_sent(algorithm: str) -> None:
    delivery = replace(DELIVERY, secret="s", algorithm=algorithm)
    headers = delivery_headers(delivery)
    assert headers["X-Hub-Signature"].startswith(f"{algorithm}=")
    assert verify(headers["X-Hub-Signature"], "s", b"{}")
    expected = sign_webhook("s", "4f2a-15-7", 1_700_000_000, b"{}")
    assert headers["webhook-signature"] == expected


def test_a_client_of_old_gets_sha1_where_it_looks_and_sha256_beside_it() -> None:
    delivery = replace(DELIVERY, secret="s", algorithm="sha1+sha256")
    headers = delivery_headers(delivery)
    assert headers["X-Hub-Signature"] == sign("sha1", "s", b"{}")
    assert headers["X-Hub-Signature-256"] == sign("sha256", "s", b"{}")
    for algorithm in ("sha1", "sha256"):
        chosen = replace(DELIVERY, secret="s", algorithm=algorithm)
        assert "X-Hub-Signature-256" not in delivery_headers(chosen)


def test_a_former_secret_signs_as_well_where_there_is_place_for_it() -> None:
    delivery = replace(DELIVERY, secret="new", former_secret="old")
    headers = delivery_headers(delivery)
    assert headers["X-Hub-Signature"] == sign("sha256", "new", b"{}")
    assert headers["webhook-signature"].split(" ") == [
        sign_webhook("new", DELIVERY.id, DELIVERY.timestamp, b"{}"),
        sign_webhook("old", DELIVERY.id, DELIVERY.timestamp, b"{}"),
    ]


def test_a_former_secret_alone_signs_nothing() -> None:
    delivery = replace(DELIVERY, former_secret="old")
    assert delivery_headers(delivery) == delivery_headers(DELIVERY)


def test_retries_are_counted_from_the_first_retry_on() -> None:
    assert "X-Superfeedr-Retried" not in delivery_headers(DELIVERY)
    headers = delivery_headers(replace(DELIVERY, retries=3))
    assert headers["X-Superfeedr-Retried"] == "3"


def test_trimmed_records_are_named() -> None:
    assert "Fanfare-Missed" not in delivery_headers(DELIVERY)
    headers = delivery_headers(replace(DELIVERY, missed=(12, 40)))
    assert headers["Fanfare-Missed"] == "12-40"


def test_a_test_is_marked() -> None:
    assert "Fanfare-Test" not in delivery_headers(DELIVERY)
    headers = delivery_headers(replace(DELIVERY, is_test=True))
    assert headers["Fanfare-Test"] == "true"


def test_the_span_that_sends_it_is_named() -> None:
    assert "traceparent" not in delivery_headers(DELIVERY)
    parent = f"00-{'1' * 32}-{'2' * 16}-01"
    headers = delivery_headers(replace(DELIVERY, traceparent=parent))
    assert headers["traceparent"] == parent


def test_one_delivery_leaves_nothing_behind_for_the_next() -> None:
    first = delivery_headers(replace(DELIVERY, secret="s", retries=1))
    first["Link"] = "altered"
    second = delivery_headers(DELIVERY)
    assert second["Link"] != "altered"
    assert "X-Hub-Signature" not in second


def test_a_notification_keeps_its_id_over_retries() -> None:
    assert notification_id("4f2a", 15, 7) == "4f2a-15-7"


@given(topic=TEXT, callback=TEXT, hub=TEXT, content_type=TEXT, user_agent=TEXT)
def test_no_text_from_outside_can_end_a_header(
    topic: str, callback: str, hub: str, content_type: str, user_agent: str
) -> None:
    delivery = WebhookDelivery(
        topic=topic,
        callback=callback,
        hub=hub,
        content_type=content_type,
        body=b"",
        id="a-1-2",
        timestamp=1,
        user_agent=user_agent,
    )
    for value in delivery_headers(delivery).values():
        assert value.isascii()
        assert value.isprintable()


def test_a_topic_cannot_add_a_link_of_its_own() -> None:
    topic = 'https://site.example/>; rel="hub", <https://evil.example/'
    headers = delivery_headers(replace(DELIVERY, topic=topic))
    assert headers["Link"].count("<") == headers["Link"].count(">") == 2


def test_an_account_is_told_what_is_left_and_when_it_ends() -> None:
    counted = replace(DELIVERY, credits=99, expires=2_000_000_000)
    headers = delivery_headers(counted)
    assert headers["X-Superfeedr-Credits"] == "99"
    assert headers["X-Superfeedr-PubSubHubbub-Expire"] == "2000000000"
