from __future__ import annotations

from typing import cast

import orjson
import pytest
from msgspec.structs import replace

from hub.core.delivery.catch_up_outcomes import NOT_KEPT, CatchUpProgress
from hub.delivery.catch_ups import (
    BATCH_BYTES,
    PAGE,
    CatchUpRequest,
    CatchUpRequests,
)
from hub.delivery.notifications import Notifications
from storage.contract import LogStore
from storage.packing import pack_bytes
from storage.records import Format, Position, RecordKind, StoredBody, Updates
from tests.support.live_scene import FakeLog
from tests.support.subscriptions import a_record, a_subscription


def requests_of(log: FakeLog) -> CatchUpRequests:
    store = cast("LogStore", log)
    return CatchUpRequests(store, Notifications(store, "https://hub.example/hub"))


def progress_at(position: int, **fields: object) -> CatchUpProgress:
    return CatchUpProgress(
        subscription=a_subscription(**fields),
        lease_id=5,
        position=Position(position),
    )


def ids_in(request: CatchUpRequest) -> list[str]:
    assert request.document is not None
    return [item["id"] for item in orjson.loads(request.document.body)["items"]]


async def test_records_are_sent_one_by_one_in_order() -> None:
    requests = requests_of(FakeLog(a_record(1), a_record(2), a_record(3)))
    first = await requests.next(progress_at(0))
    second = await requests.next(progress_at(first.last))
    assert (first.last, second.last) == (1, 2)
    assert (ids_in(first), ids_in(second)) == (["id-10"], ["id-20"])


async def test_at_the_end_there_is_no_document() -> None:
    request = await requests_of(FakeLog(a_record(1))).next(progress_at(1))
    assert request == CatchUpRequest(Position(1), None)


async def test_unwanted_records_are_passed_over_however_many() -> None:
    unwanted = [a_record(n, kind=RecordKind.DELETED) for n in range(1, 250)]
    requests = requests_of(FakeLog(*unwanted, a_record(250)))
    assert (await requests.next(progress_at(0))).last == 250


async def test_the_end_is_reported_beyond_unwanted_records() -> None:
    unwanted = [a_record(n, kind=RecordKind.BASELINE) for n in range(1, 25)]
    request = await requests_of(FakeLog(*unwanted)).next(progress_at(0))
    assert request == CatchUpRequest(Position(24), None)


async def test_of_a_part_the_latest_makes_up_for_all_that_was_missed() -> None:
    log = FakeLog(a_record(1), a_record(2), a_record(3))
    log.latest = StoredBody(content_type="text/html", body=pack_bytes(b"<p>"))
    part = {"format": Format.BY_TOPIC, "topic": "https://feeds.example/1#.news"}
    request = await requests_of(log).next(progress_at(0, **part))
    assert request.document is not None
    assert (request.last, request.document.body) == (3, b"<p>")


async def test_a_resource_is_never_in_one_request_with_anything_else() -> None:
    log = FakeLog(
        a_record(1, kind=RecordKind.CONTENT, entries=0),
        a_record(2, kind=RecordKind.ERROR, entries=0),
    )
    log.latest = StoredBody(content_type="text/x", body=pack_bytes(b"whole"))
    asked = {"format": Format.BY_TOPIC, "batch": True}
    first = await requests_of(log).next(progress_at(0, **asked))
    second = await requests_of(log).next(progress_at(first.last, **asked))
    assert first.document is not None
    assert (first.last, first.document.body) == (1, b"whole")
    assert (second.last, second.document, second.missing) == (2, None, "")


async def test_a_resource_that_is_not_kept_is_told_to_be_missing() -> None:
    log = FakeLog(a_record(1, kind=RecordKind.CONTENT, entries=0))
    asked = progress_at(0, format=Format.BY_TOPIC)
    assert (await requests_of(log).next(asked)).missing == NOT_KEPT


async def test_what_was_delivered_before_is_not_sent_again() -> None:
    requests = requests_of(FakeLog(*(a_record(number) for number in range(1, 7))))
    here = CatchUpProgress(
        subscription=a_subscription(),
        lease_id=5,
        position=Position(2),
        skip_after=Position(2),
        skip_to=Position(5),
    )
    assert (await requests.next(here)).last == 6


async def test_opted_in_subscriptions_get_several_records_in_one_request() -> None:
    requests = requests_of(FakeLog(a_record(1), a_record(2, entries=2), a_record(3)))
    request = await requests.next(progress_at(0, batch=True))
    assert request.last == 3
    assert ids_in(request) == ["id-10", "id-20", "id-21", "id-30"]


async def test_a_batch_has_a_bounded_number_of_records() -> None:
    log = FakeLog(*(a_record(number) for number in range(1, 3 * PAGE)))
    request = await requests_of(log).next(progress_at(0, batch=True))
    assert request.last == PAGE


async def test_a_batch_has_a_bounded_number_of_bytes() -> None:
    log = FakeLog(*(a_record(number) for number in range(1, 9)))
    for number in range(1, 9):
        log.put_entry(number * 10, "x" * (BATCH_BYTES // 3))
    request = await requests_of(log).next(progress_at(0, batch=True))
    assert request.document is not None
    assert len(request.document.body) <= BATCH_BYTES
    assert request.last == 2


async def test_a_batch_that_was_tried_does_not_grow() -> None:
    log = FakeLog(*(a_record(number) for number in range(1, 6)))
    here = replace(progress_at(1, batch=True), tried_to=Position(3))
    again = await requests_of(log).next(here)
    rest = await requests_of(log).next(here.delivered(Position(3)))
    assert (again.last, ids_in(again)) == (3, ["id-20", "id-30"])
    assert (rest.last, ids_in(rest)) == (5, ["id-40", "id-50"])


async def test_a_batch_that_was_tried_is_sent_whole_however_large_it_became() -> None:
    log = FakeLog(*(a_record(number) for number in range(1, 4)))
    for number in range(1, 4):
        log.put_entry(number * 10, "x" * BATCH_BYTES)
    here = replace(progress_at(0, batch=True), tried_to=Position(2))
    assert (await requests_of(log).next(here)).last == 2


async def test_what_is_left_of_nothing_that_was_tried_is_a_new_batch() -> None:
    log = FakeLog(*(a_record(number) for number in range(4, 6)))
    here = replace(progress_at(0, batch=True), tried_to=Position(3))
    assert (await requests_of(log).next(here)).last == 5


@pytest.mark.parametrize("format", [Format.JSON, Format.ATOM])
async def test_who_did_not_opt_in_gets_one_record_whatever_was_tried(
    format: Format,
) -> None:
    log = FakeLog(*(a_record(number) for number in range(1, 4)))
    here = replace(progress_at(0, format=format), tried_to=Position(2))
    assert (await requests_of(log).next(here)).last == 1


async def test_a_single_record_is_sent_however_large() -> None:
    log = FakeLog(a_record(1), a_record(2))
    log.put_entry(10, "x" * 2 * BATCH_BYTES)
    request = await requests_of(log).next(progress_at(0, batch=True))
    assert (request.last, ids_in(request)) == (1, ["id-10"])


@pytest.mark.parametrize("batch", [False, True])
async def test_an_as_is_subscription_gets_only_the_latest_document(batch: bool) -> None:
    log = FakeLog(*(a_record(number) for number in range(1, 251)))
    log.latest = StoredBody(content_type="text/xml", body=pack_bytes(b"<latest/>"))
    here = progress_at(0, format=Format.AS_IS, batch=batch)
    request = await requests_of(log).next(here)
    assert request.last == 250
    assert request.document is not None
    assert request.document.body == b"<latest/>"


@pytest.mark.parametrize(
    ("updates", "last"), [(Updates.NONE, 2), (Updates.FRESH, 1), (Updates.ALL, 1)]
)
async def test_updates_are_sent_to_those_who_ask(updates: Updates, last: int) -> None:
    log = FakeLog(a_record(1, kind=RecordKind.UPDATED), a_record(2))
    assert (await requests_of(log).next(progress_at(0, updates=updates))).last == last
