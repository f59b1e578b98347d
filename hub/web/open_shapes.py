"""The shapes of answers outside of ``/api``, and of what live streams say."""

from __future__ import annotations

from collections.abc import Mapping

OPEN_SHAPES: Mapping[str, Mapping[str, str]] = {
    "Alive": {"alive": "boolean"},
    "Readiness": {
        "ready": "boolean",
        "troubles": "[string]",
        "warnings": "[string]",
    },
    "Pings": {"urls": "[Ping]"},
    "Ping": {"url": "string", "status": "PingOutcome", "reason": "string"},
    "OpenFeederError": {"code": "OpenFeederCode", "message": "string"},
    "OpenFeederProblem": {"schema": "string", "error": "OpenFeederError"},
    "OpenFeederHints": {"schema": "string", "urls": "[Ping]"},
    "Diagnosis": {
        "mode": "VerificationMode",
        "topic": "string",
        "callback": "string",
        "state": "VerificationState",
        "requested_at": "time",
        "lease_seconds": "integer?",
        "verification": "VerificationReport",
        "subscription": "SubscriptionExcerpt?",
        "topic_fetch": "TopicFetch?",
        "deliveries": "[Delivery]",
        "next_retry": "time?",
    },
    "VerificationReport": {
        "attempts": "integer",
        "at": "time?",
        "status": "integer?",
        "excerpt": "string",
        "reason": "string",
        "next_try": "time?",
    },
    "SubscriptionExcerpt": {
        "state": "SubscriptionState",
        "format": "Format",
        "lease_end": "time?",
        "ended_reason": "string",
    },
    "TopicFetch": {
        "at": "time?",
        "status": "integer?",
        "error": "string",
        "next": "time",
    },
    "Delivery": {
        "at": "time",
        "status": "integer",
        "milliseconds": "integer",
        "error": "string",
    },
    "StreamNotification": {
        "type": "string",
        "topic": "string",
        "cursor": "string",
        "prev": "string?",
        "kind": "StreamKind",
        "body": "object|string",
    },
    "StreamReset": {"type": "string", "topic": "string", "cursor": "string"},
}
