from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from http.client import HTTPConnection
from threading import Thread
from typing import Any
from urllib.parse import urlencode, urlsplit

from click.testing import Result

from protocols.websub.signatures import sign, sign_webhook
from tests.support.fake_api import FakeApi, feed_document, subscription_document

Fanfare = Callable[..., Result]
URL = "https://example.org/feed.xml"
ADD = "POST /api/subscriptions"
END = "DELETE /api/subscriptions/4"


def on_subscribing(api: FakeApi, act: Callable[[dict[str, Any]], None]) -> None:
    """Do something to the callback as soon as it has been subscribed."""
    answer = api.answer

    def answering(method: str, target: str, body: bytes) -> tuple[int, bytes]:
        if f"{method} {target}" == ADD:
            Thread(target=act, args=(json.loads(body),)).start()
        return answer(method, target, body)

    api.answer = answering  # type: ignore[method-assign]
    api.answers[ADD] = (201, subscription_document(feed_status=feed_document()))
    api.answers[END] = (200, subscription_document())


def deliver(
    subscription: dict[str, Any], more_headers: dict[str, str] | None = None
) -> None:
    body = json.dumps({"items": [{"title": "One"}]}).encode()
    secret, at = subscription["secret"], int(time.time())
    headers = {
        "X-Hub-Signature": sign("sha256", secret, body),
        "webhook-id": "e-1",
        "webhook-timestamp": str(at),
        "webhook-signature": sign_webhook(secret, "e-1", at, body),
        **(more_headers or {}),
    }
    request(subscription, "POST", body, headers)


def deny(subscription: dict[str, Any]) -> None:
    query = urlencode({"hub.mode": "denied", "hub.reason": "removed"})
    request(subscription, "GET", b"", {}, f"?{query}")


def request(
    subscription: dict[str, Any],
    method: str,
    body: bytes,
    headers: dict[str, str],
    query: str = "",
) -> None:
    parts = urlsplit(subscription["callback"])
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    headers = {"Content-Type": "application/json", **headers}
    connection.request(method, parts.path + query, body, headers)
    connection.getresponse().read()
    connection.close()


def test_it_subscribes_prints_and_unsubscribes(fanfare: Fanfare, api: FakeApi) -> None:
    on_subscribing(api, deliver)
    result = fanfare("listen", URL, "--once")
    assert result.exit_code == 0
    assert f"for {URL}" in result.stdout
    assert result.stdout.endswith("  One\n")
    assert "3 entries so far; only later ones are sent" in result.stderr
    assert "next poll 2026-01-01 12:15:00Z (" in result.stderr
    assert "): it is new\n  to poll it now: fanfare feeds fetch 7\n" in result.stderr
    [(_, subscription), (last, _)] = api.requests
    assert subscription["topic"] == URL
    assert subscription["format"] == "json"
    assert len(subscription["secret"]) >= 32
    assert subscription["callback"].startswith("http://127.0.0.1:")
    assert last == f"{END}?tell=false"


def test_programs_get_a_line_for_each_delivery(fanfare: Fanfare, api: FakeApi) -> None:
    on_subscribing(api, deliver)
    result = fanfare("listen", URL, "--once", "--json")
    [line] = result.stdout.splitlines()
    document = json.loads(line)
    assert document["body"] == {"items": [{"title": "One"}]}
    assert document["content_type"] == "application/json"
    assert f"for {URL}" in result.stderr


SAMPLE = "POST /api/subscriptions/4/test"


def test_a_sample_is_printed_as_a_test_and_counts(
    fanfare: Fanfare, api: FakeApi
) -> None:
    def deliver_test(subscription: dict[str, Any]) -> None:
        deliver(subscription, {"Fanfare-Test": "true"})

    on_subscribing(api, deliver_test)
    api.answers[SAMPLE] = (200, {"delivered": True})
    result = fanfare("listen", URL, "--sample", "--once")
    assert result.exit_code == 0
    assert result.stdout.endswith("  test  One\n")
    assert (SAMPLE, {}) in api.requests


def test_a_sample_that_cannot_be_delivered_ends_it(
    fanfare: Fanfare, api: FakeApi
) -> None:
    on_subscribing(api, lambda subscription: None)
    api.answers[SAMPLE] = (200, {"delivered": False, "error": "connection refused"})
    result = fanfare("listen", URL, "--sample")
    assert result.exit_code == 1
    assert "the test delivery failed: connection refused" in result.stderr
    assert api.requests[-1][0] == f"{END}?tell=false"


def test_it_ends_when_the_hub_ends_the_subscription(
    fanfare: Fanfare, api: FakeApi
) -> None:
    on_subscribing(api, deny)
    result = fanfare("listen", URL)
    assert result.exit_code == 1
    assert "the hub ended the subscription: removed" in result.stderr
    assert len(api.requests) == 1


def test_an_error_of_the_feed_is_told(fanfare: Fanfare, api: FakeApi) -> None:
    on_subscribing(api, deliver)
    document = subscription_document(feed_status=feed_document(error="timed out"))
    api.answers[ADD] = (201, document)
    assert "timed out" in fanfare("listen", URL, "--count", "1").stderr


def test_a_port_in_use_is_a_failure(fanfare: Fanfare) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = fanfare("listen", URL, "--port", str(taken.getsockname()[1]))
    assert result.exit_code == 1
    assert "cannot listen on 127.0.0.1 port" in result.stderr
