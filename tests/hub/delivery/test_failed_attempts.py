"""What is kept of requests that callbacks did not take."""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

import pytest

from hub.delivery.failed_attempts import details_of, kept_answer, stage_of
from hub.http import Answer
from hub.http.exchange import CUT
from hub.http.response_parser import AnswerHeaders
from protocols.http import RequestStage
from protocols.websub.delivery import WebhookDelivery
from storage.records import Position, SentRequest

DELIVERY = WebhookDelivery(
    topic="https://feeds.example/1",
    callback="https://You.example/hook?key=1",
    hub="https://hub.example/hub",
    content_type="application/json",
    body=b'{"items":[]}',
    id="epoch-7-3",
    timestamp=1_767_225_600,
    secret="a secret of theirs",
    retries=2,
    missed=(4, 5),
    credits=99,
)
RECORDS = (Position(6), Position(7))


def answered(
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    complete: bool = True,
    is_exempt: bool = False,
) -> Answer:
    return Answer(
        url=DELIVERY.callback,
        status=503,
        headers=headers or {},
        body=body,
        complete=complete,
        milliseconds=5,
        reason=b"Busy",
        is_exempt=is_exempt,
    )


def test_what_was_sent_can_be_made_again_without_secrets_being_kept() -> None:
    kept = details_of(DELIVERY, RECORDS, RequestStage.DNS)
    assert kept.request == SentRequest(
        host="you.example",
        at=1_767_225_600,
        records=RECORDS,
        size=12,
        checksum=crc32(DELIVERY.body),
        retries=2,
        missed=(Position(4), Position(5)),
        credits=99,
    )
    assert (kept.stage, kept.answer, kept.is_withheld) == (
        RequestStage.DNS,
        None,
        False,
    )


def test_an_answer_keeps_status_line_headers_and_how_its_body_begins() -> None:
    kept = kept_answer(answered(b"x" * 5_000, {"retry-after": "60", "x-why": "load"}))
    assert kept.status_line == "HTTP/1.1 503 Busy"
    assert kept.headers == (("retry-after", "60"), ("x-why", "load"))
    assert (len(kept.body), kept.is_excerpt) == (1024, True)
    assert not kept_answer(answered(b"x" * 1024)).is_excerpt


def test_headers_have_a_bound_each_and_together() -> None:
    many = {f"x-{number}": "ä" * 600 for number in range(40)}
    kept = kept_answer(answered(headers=many)).headers
    assert kept[-1] == ("…", "")
    assert sum(len(name) + len(value.encode()) for name, value in kept) < 2_100
    assert kept[0] == ("x-0", "ä" * 512 + "…")


def test_credentials_and_what_is_no_text_are_not_kept() -> None:
    headers = AnswerHeaders([(b"set-cookie", b"id=1"), (b"x-odd", b"\xff.")])
    kept = kept_answer(answered(headers=headers))
    assert kept.headers == (("set-cookie", "(not kept)"), ("x-odd", "\ufffd."))


def test_nothing_from_inside_an_exempt_network_is_kept() -> None:
    inside = answered(b"internal", {"x-internal": "1"}, is_exempt=True)
    kept = details_of(DELIVERY, RECORDS, RequestStage.ANSWERED, inside)
    assert (kept.answer, kept.is_withheld) == (None, True)


@pytest.mark.parametrize(
    ("answer", "stage"),
    [
        (answered(b"sorry"), RequestStage.ANSWERED),
        (answered(b"sor", complete=False), RequestStage.BODY),
        (answered(b"x" * CUT, complete=False), RequestStage.ANSWERED),
    ],
)
def test_an_answer_that_broke_off_failed_in_its_body(
    answer: Answer, stage: RequestStage
) -> None:
    assert stage_of(answer) is stage
