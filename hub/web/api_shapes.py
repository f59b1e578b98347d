"""The shapes of all answers in JSON, in the short notation of `hub.web.api_schemas`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hub.core.push.facts import PushState
from hub.services.feed_requests import ImportOutcome
from hub.services.websub import Ping
from hub.web.feed_shapes import FEED_SHAPES
from hub.web.open_shapes import OPEN_SHAPES
from protocols.model import FeedFormat
from protocols.openfeeder.serving.errors import ErrorCode
from protocols.scp.collection import CollectionType
from protocols.websub.signatures import SIGNINGS
from storage.records import (
    FeedState,
    Format,
    PushWay,
    Right,
    SubscriptionState,
    Updates,
    VerificationMode,
    VerificationState,
)

Shape = Mapping[str, str]

SUBSCRIPTION: Shape = {
    "id": "integer",
    "callback": "string",
    "topic": "string",
    "feed": "integer",
    "state": "SubscriptionState",
    "format": "Format",
    "updates": "Updates",
    "batch": "boolean",
    "algorithm": "Algorithm",
    "has_secret": "boolean",
    "former_secret_until": "time?",
    "created_at": "time",
    "lease_end": "time?",
    "from_position": "integer",
    "exhausted": "boolean",
    "ended_reason": "string",
}
TOKEN: Shape = {
    "id": "integer",
    "account": "string",
    "rights": "[Right]",
    "label": "string",
    "created_at": "time",
    "used_at": "time?",
    "revoked_at": "time?",
}

CHOICES: Mapping[str, Sequence[str]] = {
    "FeedState": tuple(FeedState),
    "ImportOutcome": tuple(ImportOutcome),
    "DocumentFormat": ("", *FeedFormat),
    "OpenFeederCode": tuple(ErrorCode),
    "SubscriptionState": tuple(SubscriptionState),
    "Format": tuple(Format),
    "Updates": tuple(Updates),
    "Algorithm": SIGNINGS,
    "Right": tuple(Right),
    "PingOutcome": tuple(Ping),
    "VerificationMode": tuple(VerificationMode),
    "VerificationState": tuple(VerificationState),
    "PushWay": tuple(PushWay),
    "PushState": tuple(PushState),
    "CollectionType": tuple(CollectionType),
    "StreamKind": ("entries", "updated", "deleted", "error", "recovered"),
}
"""Texts of which there are only so many."""

SHAPES: Mapping[str, Shape] = {
    **FEED_SHAPES,
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
        "warnings": "[string]",
        "version": "string",
        "uptime": "number",
        "backlog": "Backlog",
        "database": "Database",
    },
    "Backlog": {
        "feeds": "integer",
        "subscriptions": "integer",
        "fanouts": "integer",
        "chunks": "integer",
        "stragglers": "integer",
        "dead": "integer",
        "track_queries": "integer",
        "oldest_due": "time?",
        "oldest_undelivered": "time?",
    },
    "Database": {
        "engine": "string",
        "location": "string",
        "schema": "integer",
        "epoch": "string",
        "head": "integer",
        "size_bytes": "integer",
        "wal_bytes": "integer",
    },
    "BackupMade": {"file": "string"},
    "Problem": {"status": "integer", "title": "string", "detail": "string"},
    "CollectionsBuilt": {"collections": "[Collection]"},
    "Collection": {
        "name": "string",
        "section": "string",
        "type": "CollectionType",
        "generated": "time",
        "since": "time?",
        "expires": "time",
        "pages": "integer",
        "size": "integer",
    },
    **OPEN_SHAPES,
}
