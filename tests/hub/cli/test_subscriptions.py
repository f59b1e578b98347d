from __future__ import annotations

import json
from collections.abc import Callable

from click.testing import Result

from tests.support.fake_api import FakeApi, feed_document, subscription_document

Fanfare = Callable[..., Result]
ADD = "POST /api/subscriptions"
HOOK = "https://you.example/hook"
URL = "https://example.org/feed.xml"


def test_subscribing_sends_what_was_asked_for(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers[ADD] = (201, subscription_document())
    result = fanfare(
        *("subs", "add", HOOK, URL, "--secret", "s", "--format", "atom"),
        *("--updates", "--batch"),
    )
    assert f"subscribed  {HOOK}  (subscription 4)\n  to {URL}" in result.stdout
    assert api.requests == [
        (
            ADD,
            {
                "callback": HOOK,
                "topic": URL,
                "secret": "s",
                "format": "atom",
                "updates": "all",
                "batch": True,
            },
        )
    ]


def test_trouble_of_the_feed_is_told(fanfare: Fanfare, api: FakeApi) -> None:
    document = subscription_document(feed_status=feed_document(error="timed out"))
    api.answers[ADD] = (201, document)
    result = fanfare("subs", "add", HOOK, URL)
    assert result.exit_code == 0
    assert "timed out" in result.stderr


def test_the_list_is_a_table_or_json(fanfare: Fanfare, api: FakeApi) -> None:
    page = {"subscriptions": [subscription_document()], "next": None}
    api.answers["GET /api/subscriptions"] = (200, page)
    _, row = fanfare("subs", "list", "--topic", URL).stdout.splitlines()
    assert row.split() == ["4", "active", "json", HOOK, URL]
    assert json.loads(fanfare("subs", "list", "--json").stdout)[0]["id"] == 4


def test_an_empty_list_says_what_to_do(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/subscriptions"] = (200, {"subscriptions": [], "next": None})
    assert "fanfare subs add" in fanfare("subs", "list").stdout


def test_show_has_the_last_attempts(fanfare: Fanfare, api: FakeApi) -> None:
    attempts = [
        {
            "at": "2026-01-01T12:00:00Z",
            "position": 9,
            "status": 0,
            "milliseconds": 20_000,
            "error": "no answer within 20 s",
        }
    ]
    straggler = {
        "last_error": "no answer within 20 s",
        "last_status": 0,
        "failing_since": "2026-01-01T12:00:00Z",
        "next_try": "2026-01-01T12:05:00Z",
        "under_way": True,
    }
    document = subscription_document(attempts=attempts, straggler=straggler)
    api.answers["GET /api/subscriptions/4"] = (200, document)
    lines = fanfare("subs", "show", "4").stdout
    assert "signed        sha256" in lines
    assert "late          no answer within 20 s since 2026-01-01" in lines
    assert "next try: being tried" in lines
    assert "9       -       20000  no answer within 20 s" in lines
    assert json.loads(fanfare("subs", "show", "4", "--json").stdout) == document


def test_one_whose_secret_was_changed_says_how_long_the_former_signs(
    fanfare: Fanfare, api: FakeApi
) -> None:
    until = "2126-01-01T00:00:00Z"
    document = subscription_document(former_secret_until=until)
    api.answers["GET /api/subscriptions/4"] = (200, document)
    lines = fanfare("subs", "show", "4").stdout
    assert "former secret  signs as well until 2126-01-01 00:00:00Z" in lines


def test_one_of_a_client_of_old_says_which_header_has_which_signature(
    fanfare: Fanfare, api: FakeApi
) -> None:
    document = subscription_document(algorithm="sha1+sha256")
    api.answers["GET /api/subscriptions/4"] = (200, document)
    signed = (
        "signed        sha1, as clients of old know it; sha256 in X-Hub-Signature-256"
    )
    assert signed in fanfare("subs", "show", "4").stdout


def test_an_exhausted_subscription_says_so(fanfare: Fanfare, api: FakeApi) -> None:
    document = subscription_document(exhausted=True, has_secret=False)
    api.answers["GET /api/subscriptions/4"] = (200, document)
    lines = fanfare("subs", "show", "4").stdout
    assert "gave up; each new record is one try" in lines
    assert "no secret" in lines
    assert "no attempts yet" in lines


def test_removing_ends_it(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["DELETE /api/subscriptions/4"] = (200, subscription_document())
    assert fanfare("subs", "remove", "4").stdout == f"ended  {HOOK}\n"
