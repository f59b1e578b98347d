"""The outcome of a request to the open hub: as JSON, and as a page for people.

Whoever knows the page's address may see it, and nobody else. It has no scripts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Self

from starlette.responses import Response

from hub.services.open_hub_requests import Diagnosis
from hub.web.json_output import JsonObject, Time
from hub.web.page_rendering import render_page
from protocols.websub.verification import verification_url
from storage.records import (
    Format,
    StoredFeed,
    SubscriptionState,
    Verification,
    VerificationMode,
    VerificationState,
    VerificationTry,
)

EXAMPLE_CHALLENGE: Final = "a-random-text"
_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",  # the address is the secret
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
    """The subscription that the request has made, as far as anybody may see it."""

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
    """One request to the callback. ``status`` 0: no answer, ``error`` says why."""

    at: Time
    status: int
    milliseconds: int
    error: str


class DiagnosisJson(JsonObject):
    """What became of a request. What is not known yet is null or an empty list."""

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


def diagnosis_page(diagnosis: Diagnosis, now: datetime) -> Response:
    """A page for developers of subscribers: what came of a request, what to do next."""
    return render_page(
        "diagnosis.html",
        headers=_HEADERS,
        now=now,
        diagnosis=diagnosis,
        meaning=meaning_of(diagnosis.verification),
        question=_question_of(diagnosis.verification),
        challenge=EXAMPLE_CHALLENGE,
    )


def _question_of(asked: Verification) -> str:
    """The URL by which the callback is asked; "" if it is asked no more."""
    if asked.state not in (VerificationState.PENDING, VerificationState.FAILED):
        return ""
    is_new = asked.mode is VerificationMode.SUBSCRIBE
    lease = asked.lease_seconds if is_new else None
    return verification_url(
        callback=asked.callback,
        mode=asked.mode,
        topic=asked.topic,
        challenge=EXAMPLE_CHALLENGE,
        lease_seconds=lease,
    )


def meaning_of(asked: Verification) -> str:
    """What became of a request, in a sentence or two."""
    match asked.state:
        case VerificationState.PENDING if asked.last is not None:
            return f"{_failure_of(asked.last)} It is asked again."
        case VerificationState.FAILED if asked.last is not None:
            return f"{_failure_of(asked.last)} Nothing changed; ask the hub again."
        case VerificationState.DENIED if asked.last is not None:
            return f"The hub does not serve this topic: {asked.last.reason}."
        case state:
            return _MEANINGS[state]


_MEANINGS: Final[Mapping[VerificationState, str]] = {
    VerificationState.PENDING: "Your callback has not been asked yet.",
    VerificationState.VERIFIED: "Your callback confirmed.",
    VerificationState.FAILED: "Your callback did not confirm. Nothing changed.",
    VerificationState.DENIED: "The hub does not serve this topic.",
    VerificationState.REPLACED: "A later request took the place of this one.",
    VerificationState.NEEDLESS: "There was nothing to unsubscribe.",
}


def _failure_of(last: VerificationTry) -> str:
    """Say why a callback did not confirm, and how it can (WebSub 5.3)."""
    if not last.status:
        return f"The hub got no answer of your callback: {last.reason}."
    answered = f"Your callback answered {last.status}"
    if last.status < 300:
        return (
            f"{answered}: {last.reason}. The body must be the value of"
            " hub.challenge and nothing else, not even a line break."
        )
    if last.status < 400:
        return (
            f"{answered}, and the hub follows no redirect: subscribe with the URL that"
            " it leads to."
        )
    return f"{answered}: it must answer 200 and echo hub.challenge."
