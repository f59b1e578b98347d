from __future__ import annotations

import sys
from collections import Counter
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from hub.core.news.seen_set import (
    KEPT_DAYS,
    MOST_SIGHTINGS,
    PRESENT,
    SeenSet,
    Sighting,
    day_of,
    fingerprint,
    last_sightings,
    sight,
    sighted_again,
)
from tests.support.documents import an_entry

hashes = st.integers(0, 2**64 - 1)
sightings = st.builds(
    Sighting,
    key=hashes,
    link=hashes,
    title=hashes,
    content=hashes,
    day=st.integers(0, 65_535),
    changes=st.integers(0, 255),
    flags=st.integers(0, 3),
)


def a_sighting(key: int, day: int, *, flags: int = 0) -> Sighting:
    return Sighting(key=key, link=0, title=0, content=0, day=day, flags=flags)


@given(st.lists(sightings, unique_by=lambda each: each.key))
def test_what_is_packed_is_unpacked_the_same(expected: list[Sighting]) -> None:
    packed = SeenSet(expected).pack()

    assert list(SeenSet.unpack(packed).values()) == expected
    assert SeenSet.unpack(packed).pack() == packed


def test_a_sighting_takes_36_bytes() -> None:
    one = SeenSet([a_sighting(1, 1)]).pack()
    two = SeenSet([a_sighting(1, 1), a_sighting(2, 1)]).pack()

    assert len(two) - len(one) == 36


def test_an_empty_set_is_not_one_that_never_was() -> None:
    assert SeenSet().pack() != b""
    assert len(SeenSet.unpack(b"")) == len(SeenSet.unpack(SeenSet().pack())) == 0


def test_content_hashes_of_another_version_are_not_compared() -> None:
    packed = SeenSet([a_sighting(1, 1)._replace(content=7)]).pack()
    other = packed[:1] + b"\xff" + packed[2:]

    assert [each.content for each in SeenSet.unpack(packed).values()] == [7]
    assert [each.content for each in SeenSet.unpack(other).values()] == [0]


def test_a_few_keys_are_looked_up_without_the_others() -> None:
    sightings = [Sighting(key, 2, 3, 4, 5) for key in range(1, 9)]
    packed = SeenSet(sightings).pack()

    found = last_sightings(packed, {3, 5, 99})

    assert found == {3: sightings[2], 5: sightings[4]}


def test_nothing_is_looked_up_where_content_hashes_are_of_another_version() -> None:
    packed = SeenSet([Sighting(1, 2, 3, 4, 5)]).pack()
    other = bytes((packed[0], packed[1] + 1)) + packed[2:]

    assert last_sightings(other, {1}) == {}
    assert last_sightings(b"", {1}) == {}


def test_days_are_counted_from_1970() -> None:
    assert day_of(datetime(1970, 1, 2, 23, 59, tzinfo=UTC)) == 1


def test_text_that_is_not_unicode_has_a_fingerprint_too() -> None:
    assert fingerprint("\udc80") != fingerprint("") == 0


def test_the_scheme_of_a_link_makes_no_difference() -> None:
    plain = sight(an_entry("a", link="http://feed.example/a"), 1)
    secure = sight(an_entry("a", link="https://feed.example/a"), 1)

    assert plain.link == secure.link != 0


def test_a_title_counts_only_with_a_date() -> None:
    date = datetime(2026, 1, 1, tzinfo=UTC)

    assert sight(an_entry("a"), 1).title == 0
    assert sight(an_entry("a", published=date), 1).title != 0


def test_keys_are_kept_ninety_days_after_their_last_sighting() -> None:
    seen = SeenSet([a_sighting(1, 100), a_sighting(2, 101)])

    seen.forget(101 + KEPT_DAYS, 0)

    assert [each.key for each in seen.values()] == [2]


def test_as_many_keys_as_two_documents_hold_are_kept_however_old() -> None:
    seen = SeenSet(a_sighting(key, key) for key in range(10))

    seen.forget(60_000, 3)

    assert [each.key for each in seen.values()] == [4, 5, 6, 7, 8, 9]


def test_no_more_than_twenty_thousand_keys_are_kept() -> None:
    seen = SeenSet(a_sighting(key, 100) for key in range(MOST_SIGHTINGS + 5))

    seen.forget(100, 10)

    assert len(seen) == MOST_SIGHTINGS


def test_what_the_document_holds_is_never_forgotten() -> None:
    length = MOST_SIGHTINGS + 5
    seen = SeenSet(a_sighting(key, 100, flags=PRESENT) for key in range(length))
    seen[length] = a_sighting(length, 100)

    seen.forget(60_000, length)
    assert len(seen) == length + 1

    for key in range(length, 2 * length + 1):
        seen[key] = a_sighting(key, 100)
    seen.forget(60_000, length)
    assert {each.key for each in seen.values()} == set(range(length))


def test_a_document_that_was_the_same_for_long_was_seen_all_the_time() -> None:
    seen = SeenSet([a_sighting(1, 100, flags=PRESENT), a_sighting(2, 100)])

    seen.close_document(400)

    assert [(each.key, each.day) for each in seen.values()] == [(1, 400), (2, 100)]
    assert not any(each.is_present for each in seen.values())


def test_changes_are_counted_anew_each_day() -> None:
    known = sight(an_entry("a"), 10).changed(1).changed(2)

    assert known.changes == 2
    assert sighted_again(known, sight(an_entry("a"), 10)).changes == 2
    assert sighted_again(known, sight(an_entry("a"), 11)).changes == 0


def test_the_count_of_changes_stays_in_its_byte() -> None:
    known = a_sighting(1, 1)._replace(changes=255)

    SeenSet([known.changed(7)]).pack()


def test_a_sighting_is_read_and_written_by_a_few_calls() -> None:
    packed = SeenSet(a_sighting(key, 100) for key in range(500)).pack()
    calls: Counter[str] = Counter()
    sys.setprofile(lambda _frame, event, _argument: calls.update([event]))
    SeenSet.unpack(packed).pack()
    sys.setprofile(None)

    assert calls["call"] + calls["c_call"] < 6 * 500
