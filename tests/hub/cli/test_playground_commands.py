"""``fanfare playground``: what is sent to the hub, and what is said of messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from click.testing import Result

from tests.support.fake_api import FakeApi

Fanfare = Callable[..., Result]
RUN = {
    "id": "run-1",
    "account": "operator",
    "page": "http://hub.example/admin/playground/run-1",
    "created_at": "2026-01-01T12:00:00Z",
    "expires_at": "2026-01-02T12:00:00Z",
    "topic": "https://site.example/feed",
    "own_topic": "http://hub.example/playground/topics/t",
    "callback": "http://hub.example/playground/callbacks/c",
    "hub": "",
    "challenge": "slow",
    "delivery": "accept",
    "self_unreachable": "blocked",
    "forgotten": 0,
    "last": 1,
}
MESSAGE = {"line": "GET / HTTP/1.1", "headers": [["A", "b"]], "body": "c\nd", "size": 3}


def exchange(level: str, **changes: Any) -> dict[str, Any]:
    return {
        "number": 1,
        "step": "discover",
        "sender": "playground",
        "at": "2026-01-01T12:00:00Z",
        "url": "https://site.example/feed",
        "request": MESSAGE,
        "response": None,
        "status": 200,
        "milliseconds": 7,
        "error": "",
        "withheld": False,
        "remarks": [{"level": level, "text": "a remark", "section": "4"}],
        **changes,
    }


def report(level: str = "good", **changes: Any) -> dict[str, Any]:
    return {"run": RUN, "exchanges": [exchange(level, **changes)]}


def test_a_topic_is_tried_with_all_steps(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["POST /api/playground"] = (201, RUN)
    api.answers["POST /api/playground/run-1/steps"] = (200, report())
    result = fanfare("playground", "try", "https://site.example/feed", "--messages")
    assert result.exit_code == 0, result.output
    assert [body for _, body in api.requests] == [
        {"topic": "https://site.example/feed", "hub": ""},
        {"step": "all"},
    ]
    assert "right  a remark (WebSub 4)" in result.stdout
    assert "  > GET / HTTP/1.1\n  > A: b\n  >\n  > c\n  > d\n" in result.stdout
    assert "page      http://hub.example/admin/playground/run-1" in result.stdout
    assert "own topic http://hub.example/playground/topics/t" in result.stdout
    assert "does not reach itself: blocked" in result.stderr


def test_what_is_wrong_is_a_failure(fanfare: Fanfare, api: FakeApi) -> None:
    for document in (report("bad"), report(error="no answer in time")):
        api.answers["POST /api/playground/run-1/steps"] = (200, document)
        result = fanfare("playground", "step", "run-1", "subscribe")
        assert result.exit_code == 1
        assert "wrong with message 1" in result.stderr


def test_a_message_is_sent_again_with_what_is_given(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["POST /api/playground/run-1/messages"] = (
        200,
        report("note", response=MESSAGE),
    )
    options = ("--again", "7", "--header", "A: b", "--header", "C: d", "--sign")
    result = fanfare("playground", "send", "run-1", *options, "--messages")
    assert result.exit_code == 0, result.output
    assert "  < GET / HTTP/1.1" in result.stdout
    [(_, body)] = api.requests
    assert body == {
        "again": 7,
        "step": "",
        "method": "",
        "url": "",
        "headers": "A: b\nC: d",
        "body": None,
        "sign": True,
    }


def test_a_callback_is_told_how_to_answer(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["PATCH /api/playground/run-1"] = (200, RUN)
    options = ("--challenge", "slow", "--secret", "s")
    result = fanfare("playground", "answer", "run-1", *options)
    assert result.stdout == "to a challenge: slow; to a notification: accept\n"
    [(_, body)] = api.requests
    assert body == {"challenge": "slow", "delivery": None, "secret": "s"}


def test_runs_are_started_listed_shown_and_removed(
    fanfare: Fanfare, api: FakeApi
) -> None:
    api.answers["POST /api/playground"] = (201, RUN)
    api.answers["GET /api/playground"] = (200, {"runs": [RUN]})
    api.answers["GET /api/playground/run-1"] = (200, report())
    api.answers["DELETE /api/playground/run-1"] = (200, RUN)
    started = fanfare("playground", "start", "--hub", "https://hub.other.example/")
    assert "callback  http://hub.example/playground/callbacks/c" in started.stdout
    listed = fanfare("playground", "list").stdout
    assert listed.startswith("run-1  https://site.example/feed\n  1 message, kept")
    assert "right" in fanfare("playground", "show", "run-1", "--after", "3").stdout
    assert fanfare("playground", "remove", "run-1").stdout.startswith("forgotten")
    assert [where for where, _ in api.requests] == [
        "POST /api/playground",
        "GET /api/playground",
        "GET /api/playground/run-1?after=3",
        "DELETE /api/playground/run-1",
    ]


def test_without_runs_it_says_how_to_start_one(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/playground"] = (200, {"runs": []})
    result = fanfare("playground", "list")
    assert (result.stdout, result.exit_code) == ("", 0)
    assert "fanfare playground try" in result.stderr
