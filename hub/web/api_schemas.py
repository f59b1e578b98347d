"""The shapes of the API's answers, in a short notation that OpenAPI is made from.

``string``, ``integer``, ``number``, ``boolean``, ``time``, ``object`` or the name of a
shape; ``[…]`` is a list of it, and ``?`` at the end means that it may be null.
"""

from __future__ import annotations

from collections.abc import Mapping

Shape = Mapping[str, str]
Schema = dict[str, object]

FEED: Shape = {
    "id": "integer",
    "url": "string",
    "state": "string",
    "private": "boolean",
    "section": "string",
    "title": "string",
    "format": "string",
    "next_fetch": "time",
    "created_at": "time",
    "has_credentials": "boolean",
    "code": "integer?",
    "message": "string",
    "error": "string",
    "failures": "integer",
    "failing_since": "time?",
    "last_fetch": "time?",
    "retry_after": "time?",
    "last_success": "time?",
    "last_parse": "time?",
    "period": "number",
    "velocity": "number",
    "entries": "integer",
    "entries_since_maintenance": "integer",
    "generated_ids": "boolean",
    "bozo_rank": "number",
}
SUBSCRIPTION: Shape = {
    "id": "integer",
    "callback": "string",
    "topic": "string",
    "feed": "integer",
    "state": "string",
    "format": "string",
    "updates": "string",
    "batch": "boolean",
    "algorithm": "string",
    "has_secret": "boolean",
    "created_at": "time",
    "lease_end": "time?",
    "from_position": "integer",
    "exhausted": "boolean",
    "ended_reason": "string",
}
TOKEN: Shape = {
    "id": "integer",
    "account": "string",
    "rights": "[string]",
    "label": "string",
    "created_at": "time",
    "used_at": "time?",
    "revoked_at": "time?",
}

SHAPES: Mapping[str, Shape] = {
    "Feed": FEED,
    "FetchedFeed": {**FEED, "fetched": "boolean"},
    "FeedReport": {
        **FEED,
        "subscribers": "integer",
        "fetch_url": "string",
        "redirect": "object?",
        "validators": "object?",
        "answers_304": "boolean",
        "fresh_until": "time?",
        "unchanged": "integer",
        "hints": "object",
        "period_terms": "[PeriodTerm]",
    },
    "PeriodTerm": {
        "name": "string",
        "value": "number",
        "unit": "string",
        "note": "string",
    },
    "Feeds": {"feeds": "[Feed]", "next": "integer?"},
    "SubscriptionsEnded": {"subscriptions_ended": "integer"},
    "Subscription": SUBSCRIPTION,
    "Subscribed": {**SUBSCRIPTION, "feed_status": "Feed"},
    "SubscriptionReport": {
        **SUBSCRIPTION,
        "straggler": "Straggler?",
        "attempts": "[Attempt]",
    },
    "Subscriptions": {"subscriptions": "[Subscription]", "next": "integer?"},
    "Attempt": {
        "at": "time",
        "position": "integer",
        "status": "integer",
        "milliseconds": "integer",
        "error": "string",
    },
    "Straggler": {
        "subscription": "integer",
        "topic": "string",
        "callback": "string",
        "position": "integer",
        "attempts": "integer",
        "next_try": "time",
        "under_way": "boolean",
        "failing_since": "time",
        "last_status": "integer",
        "last_error": "string",
    },
    "DeadRange": {
        "id": "integer",
        "subscription": "integer",
        "topic": "string",
        "callback": "string",
        "first": "integer",
        "last": "integer",
        "reason": "string",
        "at": "time",
    },
    "Deliveries": {"stragglers": "[Straggler]", "dead": "[DeadRange]"},
    "Retried": {"due": "string"},
    "Token": TOKEN,
    "CreatedToken": {**TOKEN, "token": "string"},
    "Tokens": {"tokens": "[Token]", "next": "integer?"},
    "Health": {
        "ready": "boolean",
        "troubles": "[string]",
        "version": "string",
        "uptime": "number",
        "backlog": "object",
        "database": "object",
    },
    "BackupMade": {"file": "string"},
    "Problem": {"status": "integer", "title": "string", "detail": "string"},
}


def schemas() -> dict[str, object]:
    """Every shape as JSON Schema; a member that is named is always there."""
    found: dict[str, object] = {name: _object(SHAPES[name]) for name in SHAPES}
    problem = _object(SHAPES["Problem"])
    problem["properties"] = {**SHAPES_OF_PROBLEM, "field": {"type": "string"}}
    return {**found, "Problem": problem}


def _object(shape: Shape) -> Schema:
    return {
        "type": "object",
        "properties": {name: member_schema(kind) for name, kind in shape.items()},
        "required": list(shape),
    }


def member_schema(kind: str) -> Schema:
    """One member of a shape as JSON Schema."""
    if kind.endswith("?"):
        return {"anyOf": [member_schema(kind[:-1]), {"type": "null"}]}
    if kind.startswith("["):
        return {"type": "array", "items": member_schema(kind[1:-1])}
    if kind == "time":
        return {"type": "string", "format": "date-time"}
    if kind in SHAPES:
        return {"$ref": f"#/components/schemas/{kind}"}
    return {"type": kind}


SHAPES_OF_PROBLEM: Schema = {
    name: member_schema(kind) for name, kind in SHAPES["Problem"].items()
}
