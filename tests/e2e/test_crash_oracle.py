"""The judge of the crash tests sees what it has to see."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.http_server import ServerRequest
from tests.support.oracle import Evidence, Kill, judge
from tests.support.subscribers import Receipt, Subscriber

pytestmark = pytest.mark.once("it judges what others saw")


def arrived(
    *numbers: int,
    at: float = 1.0,
    feed: int = 1,
    status: int = 200,
    signed: bool = True,
    id: str = "",
    run: int = 1,
) -> Receipt:
    """A notification from one of the processes that ran one after the other."""
    link = f'<http://hub.example/{run}/hub>; rel="hub"'
    return Receipt(
        entries=tuple((feed, number) for number in numbers),
        delivery_id=id or "-".join(map(str, (*numbers, 1))),
        signature_valid=signed,
        started=at - 0.01,
        answered=at,
        status=status,
        request=ServerRequest(
            method="POST", target="/", headers={"link": link}, body=b""
        ),
    )


def complaints(
    *receipts: Receipt,
    format: str = "json",
    kills: Mapping[int, float] | None = None,
    in_flight: int = 0,
    reading: float = 0.0,
) -> list[str]:
    subscriber = Subscriber(
        name="s",
        feed=1,
        topic="http://publisher.example/1",
        url="http://subscriber.example/s",
        format=format,
        receipts=list(receipts),
    )
    return judge(
        Evidence(
            subscribers=[subscriber],
            expected={1: (2, 4)},
            kills={
                f"http://hub.example/{run}/hub": Kill(at)
                for run, at in (kills or {}).items()
            },
            window=0.1,
            in_flight=in_flight,
            reading=reading,
        )
    )


def test_everything_once_and_in_order_is_no_complaint() -> None:
    assert complaints(arrived(2, at=1), arrived(4, 3, at=2)) == []


def test_a_refused_try_before_the_accepted_one_is_no_complaint() -> None:
    assert complaints(arrived(2, 3, 4, status=500), arrived(2, 3, 4, at=2)) == []


def test_a_copy_that_a_kill_explains_is_no_complaint() -> None:
    copies = [arrived(2, 3, 4, at=5.0), arrived(2, 3, 4, at=6.0, run=2)]
    assert complaints(*copies, kills={1: 5.05}) == []


def test_what_a_killed_process_had_sent_may_be_read_late() -> None:
    copies = [arrived(2, 3, 4, at=5.2), arrived(2, 3, 4, at=6.0, run=2)]
    assert complaints(*copies, kills={1: 5.0}) == []


def test_a_kill_explains_no_copy_from_the_same_process() -> None:
    copies = [arrived(2, 3, 4, at=5.0), arrived(2, 3, 4, at=5.1)]
    assert complaints(*copies, kills={1: 5.05}) != []


def test_the_kill_of_another_process_explains_no_copy() -> None:
    copies = [arrived(2, 3, 4, at=5.0, run=2), arrived(2, 3, 4, at=6.0, run=3)]
    assert complaints(*copies, kills={1: 5.05}) != []


@pytest.mark.parametrize(("in_flight", "is_fine"), [(1, True), (0, False)])
def test_only_so_much_may_be_unread_when_a_process_is_killed(
    in_flight: int, is_fine: bool
) -> None:
    copies = [arrived(2, 3, 4, at=5.0), arrived(2, 3, 4, at=9.0, run=2)]
    kills = {1: 5.5}
    found = complaints(*copies, kills=kills, in_flight=in_flight, reading=1.0)
    assert (not found) is is_fine
    found = complaints(*copies, kills=kills, in_flight=in_flight, reading=0.4)
    assert found != []


def test_an_as_is_subscriber_needs_only_the_latest_document() -> None:
    assert complaints(arrived(4, 3, 2, 1), format="as-is") == []


@pytest.mark.parametrize(
    ("receipts", "kills", "complaint"),
    [
        ([arrived(2), arrived(4, at=2)], {}, "never received [3]"),
        ([arrived(2, 3, 4, status=500)], {}, "never received"),
        ([arrived(2, 3, 4), arrived(2, feed=2)], {}, "entries of another feed"),
        ([arrived(2, 3, 4, signed=False)], {}, "signature that is not its own"),
        ([arrived(2, 3, 4), arrived(2, 3, 4, at=2)], {}, "without a kill"),
        (
            [arrived(2, 3, 4), arrived(2, 3, 4, at=2, run=2)],
            {1: 1.5},
            "500 ms before the kill",
        ),
        ([arrived(2), arrived(4, at=2), arrived(3, at=3)], {}, "received [3] after 4"),
        ([arrived(2), arrived(3, at=1.001)], {}, "before it had answered"),
        (
            [arrived(2, 3, 4, status=500), arrived(2, 3, 4, id="other")],
            {},
            "and as other",
        ),
    ],
)
def test_a_broken_promise_is_named(
    receipts: list[Receipt], kills: dict[int, float], complaint: str
) -> None:
    assert any(complaint in each for each in complaints(*receipts, kills=kills))


def test_an_older_document_after_a_newer_one_is_named() -> None:
    receipts = [arrived(4, 3, 2), arrived(3, 2, at=2)]
    assert any(
        "entry 3 after that of 4" in each
        for each in complaints(*receipts, format="as-is")
    )
