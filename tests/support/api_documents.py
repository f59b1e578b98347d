"""Documents of the administration API, as the CLI gets them."""

from __future__ import annotations

from typing import Any


def feed_document(**changes: object) -> dict[str, Any]:
    feed: dict[str, Any] = {
        "id": 7,
        "url": "https://example.org/feed.xml",
        "state": "active",
        "private": False,
        "section": "",
        "title": "Example",
        "format": "atom",
        "next_fetch": "2026-01-01T12:15:00Z",
        "code": 200,
        "message": "Fetched (ring) 200 900 and parsed 3/3 entries",
        "error": "",
        "failures": 0,
        "failing_since": None,
        "last_fetch": "2026-01-01T12:00:00Z",
        "last_parse": "2026-01-01T12:00:00Z",
        "period": 900.0,
        "velocity": 3.5,
        "entries": 3,
        "subscribers": 2,
        "fetch_url": "https://example.org/feed.xml",
        "validators": {"etag": '"abc"', "last_modified": ""},
        "answers_304": True,
        "retry_after": None,
        "fresh_until": None,
        "has_credentials": False,
        "added": True,
        "bozo_rank": 0.0,
        "generated_ids": False,
        "rekeyed": 0,
        "rekeyed_at": None,
        "gap_at": None,
        "waiting": 0,
        "dropped": 0,
        "problems": [],
        "maintained_at": None,
        "popularity": None,
        "porn_rank": None,
        "is_stale": False,
        "related": [],
        "site": None,
        "push": None,
        "period_terms": [
            {"name": "wanted", "value": 900.0, "unit": "s", "note": "the rule"}
        ],
    }
    return {**feed, **changes}


def subscription_document(**changes: object) -> dict[str, Any]:
    subscription: dict[str, Any] = {
        "id": 4,
        "callback": "https://you.example/hook",
        "topic": "https://example.org/feed.xml",
        "state": "active",
        "format": "json",
        "updates": "fresh",
        "algorithm": "sha256",
        "has_secret": True,
        "former_secret_until": None,
        "created_at": "2026-01-01T12:00:00Z",
        "exhausted": False,
        "ended_reason": "",
        "straggler": None,
        "attempts": [],
        "feed_status": feed_document(),
    }
    return {**subscription, **changes}
