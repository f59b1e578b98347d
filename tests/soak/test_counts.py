"""The hub's numbers, compared with those of the judge."""

from __future__ import annotations

import pytest

from tests.soak.counts import Seen, differences

SEEN = Seen(entries=5, subscriptions=3, delivered=10, requests=14, unknown=1, live=7)
TOLD = {
    'fanfare_deliveries_total{outcome="delivered"}': 10.0,
    'fanfare_deliveries_total{outcome="refused"}': 3.0,
    'fanfare_deliveries_total{outcome="unanswered"}': 1.0,
    'fanfare_entries_total{kind="entries"}': 5.0,
    "fanfare_subscriptions": 3.0,
}


def test_equal_numbers_are_no_difference() -> None:
    assert not list(differences(TOLD, 7, SEEN))


def test_what_was_still_under_way_may_be_counted_or_not() -> None:
    name = 'fanfare_deliveries_total{outcome="unanswered"}'
    assert not list(differences({**TOLD, name: 0.0}, 7, SEEN))


@pytest.mark.parametrize("name", TOLD)
@pytest.mark.parametrize("by", [-2.0, 2.0])
def test_any_other_number_is_found(name: str, by: float) -> None:
    assert list(differences({**TOLD, name: TOLD[name] + by}, 7, SEEN))


def test_live_messages_are_counted_to_the_last_one() -> None:
    assert list(differences(TOLD, 8, SEEN))
