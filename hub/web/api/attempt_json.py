"""Requests to callbacks and their answers, as the API shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self

from hub.core.delivery.receiver_code import as_curl
from hub.services.callback_trials import CallbackTrial
from hub.services.delivery_reports import (
    AttemptReport,
    DeliveryReport,
    RenderedRequest,
    ToldEntries,
)
from hub.web.json_output import JsonObject, Time
from protocols.http import RequestStage, parse_content_type
from storage.records import Attempt, AttemptReason, CallbackAnswer, FailedAttempt

BODY_SHOWN = 64 * 1024
"""Bytes of a request's body that are shown."""


class HeaderJson(JsonObject):
    name: str
    value: str


class CallbackAnswerJson(JsonObject):
    """How an answer began. ``body``: its first KiB; ``is_excerpt``: there was more."""

    status_line: str
    headers: list[HeaderJson]
    body: str
    is_excerpt: bool

    @classmethod
    def of_answer(cls, answer: CallbackAnswer | None) -> Self | None:
        if answer is None:
            return None
        return cls.of(
            answer,
            headers=_headers(answer.headers),
            body=_text(answer.body, dict(answer.headers)),
        )


class AttemptJson(JsonObject):
    """One request to a callback.

    ``at``: when it was over; unless ``exact``, only known is that it was by then (kept
    by a former version). ``reason``: why it was made then. ``status`` is 0 without an
    answer, and ``error`` says why. ``failed_at``: how far a failed request came.
    ``id``, ``failed_at`` and ``answer`` are null where nothing more is kept.
    ``answer_withheld``: the callback is in a network that is exempt from the address
    guard, so nothing of its answer is shown.
    """

    id: int | None
    at: Time
    exact: bool
    position: int
    status: int
    milliseconds: int
    error: str
    reason: AttemptReason
    failed_at: RequestStage | None
    answer: CallbackAnswerJson | None
    answer_withheld: bool

    @classmethod
    def of_attempt(cls, attempt: Attempt) -> Self:
        details = attempt.details
        return cls.of(
            attempt,
            id=attempt.id or None,
            exact=attempt.is_exact,
            failed_at=details.stage if details else None,
            answer=CallbackAnswerJson.of_answer(details.answer if details else None),
            answer_withheld=details is not None and details.is_withheld,
        )


class ListedAttemptJson(AttemptJson):
    """A request, and how many ``entries`` it told of; ``title``: that of the first.

    ``entries`` is 0 if the log no longer has them.
    """

    title: str
    entries: int

    @classmethod
    def of_listed(cls, report: AttemptReport) -> Self:
        return cls.of(AttemptJson.of_attempt(report.attempt), report)


class ToldEntryJson(JsonObject):
    """An entry that a request told of; of an event the ``title`` is its type, and
    ``id`` is null."""

    id: int | None
    title: str

    @classmethod
    def all_of(cls, told: ToldEntries) -> list[Self]:
        return [cls.of(each) for each in told.entries]


class AttemptsJson(JsonObject):
    """A page of requests to a callback, newest first.

    ``next`` is the ``before`` of the following page. ``kept_from``: from when on all
    failures and catch-ups are kept; null if none made room for later ones. ``told``:
    the entries of the ``record`` that is asked for, the first 100 of ``told_total``
    without those that were deleted or hidden since; null without one. ``told_total``
    null: that is not known.
    """

    attempts: list[ListedAttemptJson]
    next: str | None
    kept_from: Time | None
    told: list[ToldEntryJson] | None = None
    told_total: int | None = None


class FailedDeliveryJson(JsonObject):
    """A request that a callback did not take."""

    id: int
    subscription: int
    topic: str
    callback: str
    host: str
    at: Time
    position: int
    status: int
    milliseconds: int
    error: str

    @classmethod
    def of_failed(cls, failed: FailedAttempt) -> Self:
        attempt = failed.attempt
        return cls.of(failed, attempt, subscription=attempt.subscription_id)


class CallbackRequestJson(JsonObject):
    """A request to a callback. ``body`` is text, the first 64 KiB of ``size`` bytes."""

    method: str
    url: str
    headers: list[HeaderJson]
    body: str
    size: int
    is_same: bool

    @classmethod
    def of_request(cls, request: RenderedRequest) -> Self:
        return cls.of(
            request,
            headers=_headers(request.headers.items()),
            body=_text(request.body[:BODY_SHOWN], request.headers),
            size=len(request.body),
        )


class PreviewedRequestJson(CallbackRequestJson):
    """A test delivery that is not sent.

    ``curl``: the request as a command for the shell; a body over 16 KiB is to be in a
    file ``body.txt``.
    """

    curl: str

    @classmethod
    def of_preview(cls, request: RenderedRequest) -> Self:
        curl = as_curl(request.method, request.url, request.headers, request.body)
        return cls.of(CallbackRequestJson.of_request(request), curl=curl)


class DeliveryReportJson(AttemptJson):
    """A delivery that failed.

    ``told``: the first 100 of the ``told_total`` entries that it told of, without those
    that were deleted or hidden since; null: not known. ``request`` is rendered and
    signed again; ``is_same`` says whether it is byte for byte what was sent. If it is
    null, ``request_missing`` says why.
    """

    subscription: int
    topic: str
    callback: str
    told: list[ToldEntryJson]
    told_total: int | None
    request: CallbackRequestJson | None
    request_missing: str

    @classmethod
    def of_report(cls, report: DeliveryReport) -> Self:
        failed = report.failed
        attempt = AttemptJson.of_attempt(failed.attempt)
        return cls.of(
            attempt,
            failed,
            subscription=failed.attempt.subscription_id,
            told=ToldEntryJson.all_of(report.told),
            told_total=report.told.total,
            request=report.request and CallbackRequestJson.of_request(report.request),
            request_missing=report.reason,
        )


class TrialDeliveryJson(JsonObject):
    """The result of a test delivery, with the request as it was sent.

    ``subscription`` is null if only a callback was named. ``status`` is 0 without an
    answer, and ``error`` says why. ``failed_at``: how far a request came that was not
    taken.
    """

    delivered: bool
    subscription: int | None
    topic: str
    callback: str
    status: int
    milliseconds: int
    error: str
    failed_at: RequestStage | None
    answer: CallbackAnswerJson | None
    answer_withheld: bool
    request: CallbackRequestJson

    @classmethod
    def of_trial(cls, trial: CallbackTrial) -> Self:
        subscription = trial.subscription
        return cls.of(
            trial,
            subscription,
            delivered=trial.is_delivered,
            subscription=subscription.id or None,
            failed_at=trial.stage,
            answer=CallbackAnswerJson.of_answer(trial.answer),
            answer_withheld=trial.is_withheld,
            request=CallbackRequestJson.of_request(trial.request),
        )


def _headers(headers: Iterable[tuple[str, str]]) -> list[HeaderJson]:
    return [HeaderJson(name=name, value=value) for name, value in headers]


def _text(body: bytes, headers: Mapping[str, str]) -> str:
    """The text of a body, by the charset that the headers name; UTF-8 without one."""
    named = {name.lower(): value for name, value in headers.items()}
    charset = parse_content_type(named.get("content-type", "")).charset or "utf-8"
    try:
        text = body.decode(charset, "replace")
    except (LookupError, ValueError):
        text = body.decode("utf-8", "replace")
    return text.encode("utf-8", "replace").decode()  # without lone surrogates
