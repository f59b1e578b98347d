"""The outcome of a request to the open hub: as JSON, and as a page for people.

Everything from outside is escaped, and the page runs and loads nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from html import escape
from typing import Self

from hub.services.open_hub_requests import Diagnosis
from hub.web.json_output import JsonObject, Time
from storage.records import (
    Format,
    StoredFeed,
    SubscriptionState,
    Verification,
    VerificationMode,
    VerificationState,
)

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem}table{border-collapse:collapse;width:100%}"
    "tr{border-top:1px solid #8886}th,td{padding:.375rem 0;vertical-align:top}"
    "th{text-align:left;padding-right:1.5rem;width:10rem}td{overflow-wrap:anywhere}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

PAGE_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",  # the address is the secret
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
}

_MEANINGS = {
    VerificationState.PENDING: "waiting: the callback has not been asked yet",
    VerificationState.VERIFIED: "verified: the callback confirmed",
    VerificationState.FAILED: "failed: the callback did not confirm; nothing changed",
    VerificationState.DENIED: "denied: the hub does not serve this topic",
    VerificationState.REPLACED: "replaced: a later request took its place",
    VerificationState.NEEDLESS: "needless: there was nothing to unsubscribe",
}


class VerificationReportJson(JsonObject):
    """How the callback answered, the last time it was asked."""

    attempts: int
    at: Time | None
    status: int | None
    excerpt: str
    reason: str
    next_try: Time | None

    @classmethod
    def of_verification(cls, asked: Verification) -> Self:
        last = asked.last
        return cls(
            attempts=asked.attempts,
            at=last.at if last else None,
            status=last.status if last else None,
            excerpt=last.excerpt if last else "",
            reason=last.reason if last else "",
            next_try=asked.due,
        )


class SubscriptionExcerptJson(JsonObject):
    """What the request has made, as far as anybody may know."""

    state: SubscriptionState
    format: Format
    lease_end: Time | None
    ended_reason: str


class TopicFetchJson(JsonObject):
    """The last fetch of the topic, and when the next one is due."""

    at: Time | None
    status: int | None
    error: str
    next: Time

    @classmethod
    def of_feed(cls, feed: StoredFeed) -> Self:
        return cls(
            at=feed.polling.last_fetch,
            status=feed.polling.code,
            error=feed.polling.error,
            next=feed.next_fetch,
        )


class DeliveryJson(JsonObject):
    """One request to the callback; of ``status`` 0 ``error`` says why there is none."""

    at: Time
    status: int
    milliseconds: int
    error: str


class DiagnosisJson(JsonObject):
    """What became of a request; null and empty lists where nothing is known yet."""

    mode: VerificationMode
    topic: str
    callback: str
    state: VerificationState
    requested_at: Time
    lease_seconds: int | None
    verification: VerificationReportJson
    subscription: SubscriptionExcerptJson | None
    topic_fetch: TopicFetchJson | None
    deliveries: list[DeliveryJson]
    next_retry: Time | None

    @classmethod
    def of_diagnosis(cls, diagnosis: Diagnosis) -> Self:
        asked, late = diagnosis.verification, diagnosis.retrying
        found, feed = diagnosis.subscription, diagnosis.feed
        return cls.of(
            asked,
            requested_at=asked.created_at,
            lease_seconds=asked.lease_seconds or None,
            verification=VerificationReportJson.of_verification(asked),
            subscription=None if found is None else SubscriptionExcerptJson.of(found),
            topic_fetch=None if feed is None else TopicFetchJson.of_feed(feed),
            deliveries=[DeliveryJson.of(each) for each in diagnosis.attempts],
            next_retry=None if late is None else late.next_try,
        )


def diagnosis_page(diagnosis: Diagnosis) -> str:
    asked = diagnosis.verification
    title = f"Request to {asked.mode}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f"<h1>{escape(title)}</h1>",
        _table(_request_rows(diagnosis)),
        *_subscription_parts(diagnosis),
        "</html>",
    ]
    return "\n".join(parts)


def _request_rows(diagnosis: Diagnosis) -> Iterable[tuple[str, str]]:
    asked, last = diagnosis.verification, diagnosis.verification.last
    yield "Topic", asked.topic
    yield "Callback", asked.callback
    yield "State", _MEANINGS[asked.state]
    yield "Requested", _time(asked.created_at)
    if asked.lease_seconds:
        yield "Lease", f"{asked.lease_seconds} s"
    if last is not None:
        status = f"status {last.status}" if last.status else "no answer"
        yield "Last try", f"{_time(last.at)}: {status} {last.reason}"
        yield "Answer began", last.excerpt
    if asked.due is not None:
        yield "Next try", _time(asked.due)


def _subscription_parts(diagnosis: Diagnosis) -> Iterable[str]:
    found, feed, late = (
        diagnosis.subscription,
        diagnosis.feed,
        diagnosis.retrying,
    )
    if found is None or feed is None:
        return
    yield "<h2>Subscription</h2>"
    rows = [
        ("State", f"{found.state} {found.ended_reason}"),
        ("Format", found.format),
        ("Lease ends", _time(found.lease_end)),
        ("Topic fetched", f"{_time(feed.polling.last_fetch)}: {feed.polling.message}"),
        ("Error", feed.polling.error or "none"),
    ]
    if late is not None:
        rows.append(("Next retry", _time(late.next_try)))
    yield _table(rows)
    yield "<h2>Last deliveries</h2>"
    yield _table(
        (_time(each.at), f"status {each.status}, {each.milliseconds} ms {each.error}")
        for each in diagnosis.attempts
    )


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = (
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table>{''.join(lines)}</table>"


def _time(at: datetime | None) -> str:
    return "never" if at is None else at.isoformat(" ", "seconds")
