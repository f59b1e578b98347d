from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from http.client import HTTPConnection
from threading import Thread
from urllib.parse import urlsplit

import pytest

from hub.cli.receiver import ReceivedLine, Receiver, describe
from hub.runtime.clock import SystemClock
from protocols.websub.signatures import sign_webhook

SECRET = "a secret"
JSON = "application/json; charset=utf-8"
BODY = json.dumps(
    {"items": [{"title": "One", "permalinkUrl": "https://example.org/1"}]}
).encode()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver(0, SECRET) as receiver:
        yield receiver


def ask(
    receiver: Receiver,
    method: str,
    path: str,
    body: bytes = b"",
    signature: str = "",
    secret: str = SECRET,
    age: int = 0,
) -> tuple[int, list[ReceivedLine]]:
    """One request from a client's thread; its status, and what the receiver told."""
    statuses: list[int] = []

    def request() -> None:
        connection = HTTPConnection(
            "127.0.0.1", urlsplit(receiver.url).port, timeout=60
        )
        at = int(SystemClock().now().timestamp()) - age
        headers = {
            "Content-Type": JSON,
            "X-Hub-Signature": signature,
            "webhook-id": "e-1-2",
            "webhook-timestamp": str(at),
            "webhook-signature": sign_webhook(secret, "e-1-2", at, body),
        }
        connection.request(method, path, body, headers)
        statuses.append(connection.getresponse().status)
        connection.close()

    client = Thread(target=request)
    client.start()
    lines = receiver.receive()
    client.join()
    return statuses[0], lines


def signature(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def test_a_genuine_delivery_is_told(receiver: Receiver) -> None:
    status, [line] = ask(receiver, "POST", receiver.path, BODY, signature(BODY))
    assert status == 204
    assert line.is_delivery
    assert line.text.endswith("  One  https://example.org/1")


@pytest.mark.parametrize("header", ["", signature(BODY, "another"), "sha256=0"])
def test_a_delivery_with_a_wrong_signature_is_not_believed(
    receiver: Receiver, header: str
) -> None:
    status, [line] = ask(receiver, "POST", receiver.path, BODY, header)
    assert status == 202
    assert not line.is_delivery
    assert "wrong signature" in line.text


@pytest.mark.parametrize("age", [301, -400, 86_400])
def test_a_delivery_that_was_recorded_is_not_believed_later(
    receiver: Receiver, age: int
) -> None:
    signed = signature(BODY)
    status, [line] = ask(receiver, "POST", receiver.path, BODY, signed, age=age)
    assert (status, line.is_delivery) == (202, False)


def test_both_signatures_must_be_right(receiver: Receiver) -> None:
    signed = signature(BODY)
    asked = ask(receiver, "POST", receiver.path, BODY, signed, secret="another")
    status, [line] = asked
    assert (status, line.is_delivery) == (202, False)


def test_strangers_find_nothing(receiver: Receiver) -> None:
    assert ask(receiver, "POST", "/", BODY, signature(BODY)) == (404, [])
    assert ask(receiver, "GET", "/?hub.mode=denied") == (404, [])
    assert not receiver.ended


def test_a_denial_ends_the_listening(receiver: Receiver) -> None:
    query = "?hub.mode=denied&hub.reason=the+feed+was+removed"
    assert ask(receiver, "GET", receiver.path + query) == (200, [])
    assert receiver.ended == "the feed was removed"


def test_other_requests_to_the_path_are_not_for_it(receiver: Receiver) -> None:
    assert ask(receiver, "GET", receiver.path) == (404, [])


def test_nothing_comes_and_nothing_is_told(receiver: Receiver) -> None:
    assert receiver.receive() == []


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"items": []}, "no entries"),
        ({"items": [{"id": "tag:1"}]}, "tag:1"),
        ({"items": [{"title": "\x1b[2J"}]}, "[2J"),
        ({"status": {"code": 0, "http": "timed out"}}, "status 0 timed out"),
    ],
)
def test_a_json_delivery_is_told_by_its_entries_or_status(
    document: dict[str, object], text: str
) -> None:
    assert describe(json.dumps(document).encode(), JSON) == text


def test_other_deliveries_are_told_by_size_and_type() -> None:
    assert describe(b"<feed/>", "application/atom+xml") == (
        "7 bytes of application/atom+xml"
    )
