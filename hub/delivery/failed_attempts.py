"""The details that are kept of a failed request: what was sent, at which stage it
failed, and the beginning of the answer. Each part is bounded, so that no callback fills
the disk."""

from __future__ import annotations

from typing import Final
from zlib import crc32

from hub.http import Answer
from hub.http.exchange import CUT
from protocols.http import RequestStage
from protocols.urls import host_name
from protocols.websub.delivery import WebhookDelivery
from storage.records import AttemptDetails, CallbackAnswer, Position, SentRequest

BODY_KEPT: Final = 1024
"""Bytes kept of an answer's body."""
HEADERS_KEPT: Final = 2048
"""Bytes kept of all headers of an answer, names included."""
VALUE_KEPT: Final = 512
"""Characters kept of one header's value."""
CUT_MARK: Final = "…"
_SECRETS: Final = frozenset({"set-cookie", "authorization", "proxy-authorization"})
NOT_KEPT: Final = "(not kept)"


def details_of(
    delivery: WebhookDelivery,
    records: tuple[Position, ...],
    stage: RequestStage,
    answer: Answer | None = None,
) -> AttemptDetails:
    """The details of a failed attempt; ``answer`` is None if none came."""
    is_withheld = answer is not None and answer.is_exempt
    return AttemptDetails(
        stage=stage,
        request=SentRequest(
            host=host_name(delivery.callback),
            at=delivery.timestamp,
            records=records,
            size=len(delivery.body),
            checksum=crc32(delivery.body),
            retries=delivery.retries,
            missed=_positions(delivery.missed),
            credits=delivery.credits,
        ),
        answer=None if answer is None or is_withheld else kept_answer(answer),
        is_withheld=is_withheld,
    )


def stage_of(answer: Answer) -> RequestStage:
    """Whether an answer other than success arrived whole, or broke off in its body."""
    is_whole = answer.complete or len(answer.body) >= CUT
    return RequestStage.ANSWERED if is_whole else RequestStage.BODY


def kept_answer(answer: Answer) -> CallbackAnswer:
    """The part of an answer that is kept and shown."""
    return CallbackAnswer(
        status_line=answer.status_line,
        headers=tuple(_kept_headers(answer)),
        body=answer.body[:BODY_KEPT],
        is_excerpt=not answer.complete or len(answer.body) > BODY_KEPT,
    )


def _kept_headers(answer: Answer) -> list[tuple[str, str]]:
    """As many headers as fit into `HEADERS_KEPT` bytes. Credentials are replaced."""
    kept, room = [], HEADERS_KEPT
    for name, value in answer.headers.items():
        shown = NOT_KEPT if name in _SECRETS else _shortened(value)
        room -= len(name) + len(shown.encode())
        if room < 0:
            kept.append((CUT_MARK, ""))
            break
        kept.append((name, shown))
    return kept


def _shortened(value: str) -> str:
    """The value as UTF-8, other bytes replaced, cut to `VALUE_KEPT` characters."""
    text = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text if len(text) <= VALUE_KEPT else text[:VALUE_KEPT] + CUT_MARK


def _positions(missed: tuple[int, int] | None) -> tuple[Position, Position] | None:
    return None if missed is None else (Position(missed[0]), Position(missed[1]))
