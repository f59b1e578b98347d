"""Which dates say how fresh the hub is, and what is kept of the delays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from hub.core.status.freshness import (
    DelayDigest,
    DelaySummary,
    publication_of,
    publications,
    with_delays,
)
from protocols.model import Status
from storage.records import FeedId, FetchCommit, Polling, RecordKind, RecordWrite
from tests.support.documents import an_entry

AT = datetime(2026, 3, 2, 12, 30, tzinfo=UTC)
BEFORE = AT - timedelta(hours=2)
MIDNIGHT = AT.replace(hour=0, minute=0)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("date", "last_success", "is_believed"),
    [
        (AT - 5 * MINUTE, BEFORE, True),
        (AT, BEFORE, True),
        (AT + timedelta(seconds=1), BEFORE, False),
        (BEFORE - 59 * MINUTE, BEFORE, True),
        (BEFORE - 61 * MINUTE, BEFORE, False),
        (AT - 5 * MINUTE, None, False),
        (MIDNIGHT, MIDNIGHT, False),
        (MIDNIGHT + timedelta(seconds=1), MIDNIGHT, True),
        (AT - timedelta(days=6), AT - timedelta(days=30), True),
        (AT - timedelta(days=8), AT - timedelta(days=30), False),
    ],
    ids=[
        *("minutes ago", "now", "in the future", "just before the last poll"),
        *("long before it", "of a first document", "a date alone", "a second later"),
        *("of a server that was down", "older than a week"),
    ],
)
def test_a_date_is_believed_that_can_be_true(
    date: datetime, last_success: datetime | None, is_believed: bool
) -> None:
    entry = an_entry("a", published=date)

    assert publication_of(entry, last_success, AT) == (date if is_believed else None)


def test_an_entry_without_a_publication_counts_from_its_update() -> None:
    date = AT - MINUTE

    assert publication_of(an_entry("a", updated=date), BEFORE, AT) == date
    assert publication_of(an_entry("a"), BEFORE, AT) is None


STATUS = Status(code=200)
KNOWN = Polling(last_success=BEFORE)


def a_commit(**more: object) -> FetchCommit:
    """Two new entries, one of them of today, and an update."""
    dates = {"new": AT - MINUTE, "day": MIDNIGHT, "old": AT - MINUTE}
    told = [(RecordKind.UPDATED, ("old",)), (RecordKind.ENTRIES, ("new", "day"))]
    commit = FetchCommit(
        feed_id=FeedId(1),
        at=AT,
        next_fetch=AT,
        polling=KNOWN,
        entries=tuple(an_entry(key, published=dates[key]) for key in dates),
        records=tuple(
            RecordWrite(
                kind=kind, status=STATUS, entries=tuple((k, True) for k in keys)
            )
            for kind, keys in told
        ),
    )
    return replace(commit, **more)


def test_new_entries_count_by_record_and_updates_do_not() -> None:
    assert publications(KNOWN, a_commit()) == ((), (AT - MINUTE,))
    resource = replace(KNOWN, is_resource=True)
    assert publications(KNOWN, a_commit(polling=resource)) == ((), ())


def test_what_a_commit_brings_is_added_to_what_is_known_of_its_feed() -> None:
    once = with_delays(KNOWN, a_commit()).polling
    twice = with_delays(KNOWN, a_commit(polling=once)).polling

    delays = DelayDigest.unpack(twice.delays).summary()

    assert (delays.entries, delays.p50) == (2, pytest.approx(60, rel=0.2))
    for quiet in (a_commit(records=()), a_commit(entries=())):
        assert with_delays(KNOWN, quiet) is quiet


# --- digests ---


@pytest.mark.parametrize("seconds", [0.002, 0.5, 1, 59, 3_600, 86_400, 600_000])
def test_a_delay_is_told_as_an_upper_bound_that_is_near(seconds: float) -> None:
    digest = DelayDigest()
    digest.add(seconds)

    delays = digest.summary()

    assert delays.p50 is not None
    assert seconds <= delays.p50 <= 1.42 * seconds
    assert delays.p99 == delays.p50


def test_half_are_at_most_p50_and_99_of_100_at_most_p99() -> None:
    digest = DelayDigest()
    for seconds in (*[10.0] * 60, *[100.0] * 39, 10_000.0):
        digest.add(seconds)

    delays = digest.summary()

    assert delays.entries == 100
    assert (delays.p50, delays.p99) == (11.6, 132)


def test_what_is_beyond_the_buckets_counts_in_the_first_or_the_last() -> None:
    digest = DelayDigest()
    digest.add(0.0)
    assert digest.summary().p50 == 0.001

    digest = DelayDigest()
    digest.add(1e9)
    assert digest.summary().p50 == pytest.approx(1.52e6, rel=0.01)


def test_without_delays_there_is_nothing_to_say() -> None:
    assert DelayDigest().summary() == DelaySummary()
    assert DelayDigest().pack() == b""
    assert DelayDigest.unpack(b"").summary() == DelaySummary()


def test_a_digest_is_the_same_after_it_was_packed_and_small() -> None:
    digest = DelayDigest()
    for seconds in (0.0, 60.0, 90.0, 3_600.0, 1e9):
        digest.add(seconds)

    packed = digest.pack()

    assert DelayDigest.unpack(packed).summary() == digest.summary()
    assert len(packed) <= 64


def test_old_delays_count_less_and_less() -> None:
    digest = DelayDigest()
    for seconds in (*[3_600.0] * 255, *[60.0] * 600):
        digest.add(seconds)

    delays = digest.summary()

    assert delays.p50 == pytest.approx(60, rel=0.2)
    assert delays.entries < 500
