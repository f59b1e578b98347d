"""Attempts that callbacks did not take, with all that is kept of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from protocols.http import RequestStage
from storage.records import (
    Attempt,
    AttemptDetails,
    CallbackAnswer,
    Position,
    SentRequest,
    Subscription,
)
from tests.support.storage_scene import START

ANSWER = CallbackAnswer(
    status_line="HTTP/1.1 503 Busy",
    headers=(("retry-after", "60"), ("x-why", "zu müde")),
    body=b"\xff not now",
    is_excerpt=True,
)


def details(host: str = "you.example", **more: Any) -> AttemptDetails:
    request = SentRequest(
        host=host,
        at=1_767_225_600,
        records=(Position(1),),
        size=4_711,
        checksum=0xDEADBEEF,
        retries=3,
        missed=(Position(1), Position(1)),
        credits=12,
    )
    return AttemptDetails(
        stage=RequestStage.ANSWERED,
        request=request,
        **more,
    )


def failed(
    subscription: Subscription,
    when: datetime = START,
    *,
    status: int = 503,
    kept: AttemptDetails | None = None,
) -> Attempt:
    return Attempt(
        subscription_id=subscription.id,
        position=Position(1),
        at=when,
        status=status,
        milliseconds=7,
        error=f"answered {status}" if status else "no answer in time",
        details=kept,
    )
