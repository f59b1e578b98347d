"""Failed deliveries as the command line shows them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.support.fake_api import FakeApi

Fanfare = Callable[..., Result]

FAILED: dict[str, Any] = {
    "id": 12,
    "subscription": 4,
    "topic": "https://example.org/feed",
    "callback": "https://you.example/hook",
    "host": "you.example",
    "at": "2026-01-01T12:00:00Z",
    "position": 9,
    "status": 503,
    "milliseconds": 31,
    "error": "answered 503",
}


def page_of(*failed: dict[str, Any], **changes: object) -> dict[str, Any]:
    page = {"failed": failed, "next": None, "total": len(failed), "has_more": False}
    return {**page, **changes}


def failed_delivery(**changes: object) -> dict[str, Any]:
    more = {"failed_at": "dns", "answer": None, "answer_withheld": False}
    nothing = {"request": None, "request_missing": "the log no longer has it"}
    told: dict[str, Any] = {"told": [], "told_total": 0}
    return {**FAILED, **more, **nothing, **told, **changes}


def test_failures_are_listed_by_what_is_wanted(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/deliveries/failed"] = (200, page_of(FAILED, total=7))
    options = ("--status", "5xx", "--host", "you.example", "--since", "2026-01-01")
    lines = fanfare("deliveries", "list", *options).stdout
    assert "answered 503  https://you.example/hook" in lines
    assert "1 of 7; `fanfare deliveries show ID`" in lines
    asked, _ = api.requests[0]
    assert asked.endswith(
        "?limit=100&status=5xx&host=you.example&since=2026-01-01T00%3A00%3A00%2B00%3A00"
    )


def test_a_total_that_was_not_counted_to_its_end_says_so(
    fanfare: Fanfare, api: FakeApi
) -> None:
    page = page_of(FAILED, total=10_000, has_more=True)
    api.answers["GET /api/deliveries/failed"] = (200, page)
    lines = fanfare("deliveries", "list", "--failed")
    assert "1 of more than 10000;" in lines.stdout
    as_json = fanfare("deliveries", "list", "--failed", "--json").stdout
    assert json.loads(as_json)["failed"] == [FAILED]


def test_no_failure_is_said(fanfare: Fanfare, api: FakeApi) -> None:
    api.answers["GET /api/deliveries/failed"] = (200, page_of())
    result = fanfare("deliveries", "list", "--subscription", "4")
    assert result.stdout == "no failed deliveries match\n"


def test_a_failure_is_shown_in_full(fanfare: Fanfare, api: FakeApi) -> None:
    answer = {
        "status_line": "HTTP/1.1 503 Busy",
        "headers": [{"name": "retry-after", "value": "60"}],
        "body": "not\nnow",
        "is_excerpt": True,
    }
    request = {
        "method": "POST",
        "url": "https://you.example/hook",
        "headers": [{"name": "webhook-id", "value": "epoch-9-4"}],
        "body": "{}",
        "size": 2,
        "is_same": True,
    }
    told = [{"id": 34, "title": "News"}, {"id": None, "title": "feed.failing"}]
    document = failed_delivery(
        failed_at="answered", answer=answer, request=request, told=told, told_total=3
    )
    api.answers["GET /api/deliveries/failed/12"] = (200, document)
    lines = fanfare("deliveries", "show", "12").stdout
    assert "complete answer, but not a 2xx" in lines
    assert "told of       News (entry 34)\ntold of       feed.failing\n" in lines
    assert "told of       1 more not shown, deleted or hidden since\n" in lines
    assert "    retry-after: 60\n\n    not\n    now\n    […]" in lines
    assert "the request, as it was sent (2 bytes):\n    POST https://you" in lines
    assert "    webhook-id: epoch-9-4\n\n    {}\n" in lines
    assert json.loads(fanfare("deliveries", "show", "12", "--json").stdout) == document


def test_entries_that_have_changed_are_said(fanfare: Fanfare, api: FakeApi) -> None:
    request = {
        "method": "POST",
        "url": "https://you.example/hook",
        "headers": [],
        "body": "",
        "size": 70_000,
        "is_same": False,
    }
    document = failed_delivery(request=request)
    api.answers["GET /api/deliveries/failed/12"] = (200, document)
    lines = fanfare("deliveries", "show", "12").stdout
    assert "as it would be sent now, because the entries have changed" in lines
    assert "[…]" in lines


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "failed  looking up the callback's host (DNS)"),
        ({}, "the request cannot be shown: the log no longer has it"),
        ({"status": 0}, "answer  none"),
        ({"failed_at": None}, "answer  HTTP 503"),
        ({"answer_withheld": True}, "answer  HTTP 503; the rest is not shown for"),
    ],
)
def test_what_is_not_known_of_a_failure_is_said(
    fanfare: Fanfare, api: FakeApi, changes: dict[str, object], line: str
) -> None:
    document = failed_delivery(**changes)
    api.answers["GET /api/deliveries/failed/12"] = (200, document)
    assert line in fanfare("deliveries", "show", "12").stdout
