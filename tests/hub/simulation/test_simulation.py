"""The simulator, and what it must show of the planner on traffic that is generated."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

import pytest

from hub.core.schedule.poll_period import EVEN, PollingRules
from hub.simulation.comparison import (
    Result,
    at_budget,
    bold_rules,
    compare,
    draw,
    policies_for,
)
from hub.simulation.policies import (
    EntryFrequency,
    FixedInterval,
    Planner,
    Policy,
    RateOracle,
)
from hub.simulation.policy_run import Planning, run_policy
from hub.simulation.traces import (
    MOST_BYTES,
    Trace,
    bundled_traces,
    generate,
    held_out_span,
    read_traces,
)
from protocols.protocol_errors import InvalidValue
from tests.support.trace_files import write_traces

HOUR, DAY = 3_600.0, 86_400.0
MIDNIGHT = 1_767_571_200.0


def trace(*hours: float, **facts: object) -> Trace:
    """A feed that posted so many hours after midnight."""
    posts = tuple(MIDNIGHT + hour * HOUR for hour in hours)
    return Trace(feed="a", posts=posts, **facts)  # type: ignore[arg-type]


class Hourly:
    """Asks every hour, and notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[float, ...]] = []

    def next_wait(self, now: float, posted: Sequence[float]) -> float:
        self.told.append(tuple((post - MIDNIGHT) / HOUR for post in posted))
        return HOUR


# --- replaying -------------------------------------------------------------------


def test_the_last_40_percent_of_a_feeds_span_are_the_test() -> None:
    span = held_out_span(trace(0, 1, 2, 10))

    assert (span.start - MIDNIGHT, span.end - MIDNIGHT) == (6 * HOUR, 10 * HOUR)


def test_every_post_of_the_test_is_found_by_the_next_poll() -> None:
    planning: Planning = Hourly()

    outcome = run_policy(trace(0, 1, 6.5, 6.75, 9.25, 10), planning)

    assert outcome.delays == (0.5 * HOUR, 0.25 * HOUR, 0.75 * HOUR, 0)
    assert outcome.polls == 4
    assert outcome.days == pytest.approx(4 / 24)


def test_a_planner_is_told_of_new_posts_and_never_of_later_ones() -> None:
    planning = Hourly()

    run_policy(trace(0, 1, 6.5, 6.75, 9.25, 10), planning)

    assert planning.told == [(), (6.5, 6.75), (), ()]


def test_what_left_the_document_before_a_poll_is_lost() -> None:
    outcome = run_policy(trace(0, 6.1, 6.2, 6.3, 10, window=2), Hourly())

    assert outcome.lost == 1
    assert len(outcome.delays) == 3


def test_polls_before_a_max_age_or_in_skipped_hours_are_counted() -> None:
    assert run_policy(trace(0, 1, 10, max_age=3_700), Hourly()).early == 4
    assert run_policy(trace(0, 1, 10, skip_hours=(8, 9)), Hourly()).early == 2
    assert run_policy(trace(0, 1, 10, max_age=3_600), Hourly()).early == 0


# --- traces ----------------------------------------------------------------------


def test_traces_are_read_as_they_are_written() -> None:
    traces = generate(1, 3, 7)

    assert read_traces(write_traces(traces)) == traces


def test_posts_are_put_in_order_and_feeds_of_too_few_left_out() -> None:
    document = (
        b'{"about": "x", "feeds": [{"feed": "a", "posts": [3, 1, 2], "category": "b"},'
        b' {"feed": "b", "posts": [1, 1, 1, 2]}]}'
    )

    assert [each.posts for each in read_traces(document)] == [(1, 2, 3)]


@pytest.mark.parametrize(
    "document", [b"", b"\xff", b"[]", b'{"feeds": 3}', b'{"feeds": [{"feed": 1}]}']
)
def test_what_is_no_trace_file_is_refused(document: bytes) -> None:
    with pytest.raises(InvalidValue, match="traces"):
        read_traces(document)


@pytest.mark.parametrize("posts", ["[]", "[1700000000]", "[1, 1, 2]"])
def test_a_file_of_feeds_that_hardly_posted_is_refused(posts: str) -> None:
    with pytest.raises(InvalidValue, match="posts: expected a feed with 3 different"):
        read_traces(f'{{"feeds": [{{"feed": "a", "posts": {posts}}}]}}'.encode())


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ('"posts": [-5, 1, 2]', r"feeds\[0\]\.posts\[0\]"),
        ('"posts": ["x", 1, 2]', r"feeds\[0\]\.posts\[0\]"),
        ('"posts": [1, 2, 1e300]', r"feeds\[0\]\.posts\[2\]"),
        ('"posts": [1700000000000, 2, 1]', r"feeds\[0\]\.posts\[0\]"),
        ('"posts": [1, 2, 3], "window": -3', r"feeds\[0\]\.window"),
        ('"posts": [1, 2, 3], "max_age": -3', r"feeds\[0\]\.max_age"),
        ('"posts": [1, 2, 3], "max_age": 1e18', r"feeds\[0\]\.max_age"),
        ('"posts": [1, 2, 3], "skip_hours": [24]', r"feeds\[0\]\.skip_hours"),
        (f'"posts": [1, 2, 3], "skip_hours": {[*range(24)]}', "skip_hours"),
        ('"posts": [1, 2, 3], "trained": 1', r"feeds\[0\]\.trained"),
        (
            '"posts": [1, 2, 3], "rates": {"per_day": 1, "hours": [1], "days": []}',
            r"feeds\[0\]\.rates\.hours",
        ),
        ('"posts": [1, 2, 1700000000]', "posts of a: expected 30 years at most"),
    ],
)
def test_a_value_that_makes_no_sense_is_named_by_its_path(
    fields: str, path: str
) -> None:
    with pytest.raises(InvalidValue, match=path):
        read_traces(f'{{"feeds": [{{"feed": "a", {fields}}}]}}'.encode())


def test_a_file_that_is_far_too_large_is_refused() -> None:
    with pytest.raises(InvalidValue, match="at most 67,108,864 bytes"):
        read_traces(b" " * (MOST_BYTES + 1))


def test_generated_traffic_is_the_same_for_a_seed() -> None:
    assert generate(4, 5, 7) == generate(4, 5, 7)
    assert generate(4, 5, 7) != generate(5, 5, 7)


def test_the_bundled_traces_are_generated() -> None:
    assert bundled_traces() == generate(8, 30, 28)


# --- policies --------------------------------------------------------------------


def test_a_fixed_interval_is_what_the_budget_says() -> None:
    result = at_budget(FixedInterval(), generate(2, 10, 14), 24)

    assert result.knob == pytest.approx(HOUR, rel=0.02)
    assert result.mean == pytest.approx(HOUR / 2, rel=0.15)
    assert result.percentile(0.9) == pytest.approx(0.9 * HOUR, rel=0.15)
    assert result.percentile(1) <= HOUR * 1.02


def test_entry_frequency_counts_a_week_as_miniflux_does() -> None:
    daily = trace(*range(0, 24 * 10, 24))
    planning = EntryFrequency().begin(daily, knob=1)
    now = held_out_span(daily).start

    assert planning.next_wait(now, ()) == pytest.approx(DAY)
    assert EntryFrequency().begin(daily, knob=0.25).next_wait(now, ()) == DAY / 4
    assert planning.next_wait(now + 30 * DAY, ()) == DAY


def test_the_oracle_is_asked_only_of_what_was_generated() -> None:
    with pytest.raises(ValueError, match="known rates"):
        RateOracle().begin(trace(0, 1, 2), 1)
    names = [policy.name for policy in policies_for([trace(0, 1, 2)])]
    assert "oracle of rates" not in names


def test_a_budget_out_of_reach_is_missed_by_as_little_as_can_be() -> None:
    result = at_budget(FixedInterval(), generate(2, 3, 7), 5_000)

    assert result.polls_per_day == pytest.approx(1_440, rel=0.01)
    assert result.spend < 1


def test_of_no_posts_nothing_can_be_said() -> None:
    empty = Result(
        policy="a",
        knob=1,
        delays=(),
        feed_means=(),
        polls_per_day=1,
        budget=1,
        lost=0,
        early=0,
    )

    assert (empty.mean, empty.mean_by_feed, empty.percentile(0.5)) == (0, 0, 0)


# --- what must hold --------------------------------------------------------------


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    traces = bundled_traces()
    return {each.policy: each for each in compare(policies_for(traces), traces, 24)}


def test_all_spend_the_budget(results: dict[str, Result]) -> None:
    assert all(abs(result.spend - 1) < 0.03 for result in results.values())


def test_the_planner_is_nearly_as_good_as_knowing_the_rates(
    results: dict[str, Result],
) -> None:
    assert results["planner"].mean <= 1.08 * results["oracle of rates"].mean


def test_the_planner_is_far_better_than_an_interval(
    results: dict[str, Result],
) -> None:
    fixed, planner = results["fixed interval"], results["planner"]

    assert planner.mean < 0.6 * fixed.mean
    assert planner.percentile(0.9) < 0.6 * fixed.percentile(0.9)
    assert planner.mean < 0.8 * results["√λ"].mean


def test_the_planner_loses_nothing_and_heeds_every_hint(
    results: dict[str, Result],
) -> None:
    for name in ("planner", "planner, earned floors"):
        assert (results[name].lost, results[name].early) == (0, 0)


@pytest.mark.parametrize(
    "policy",
    [
        Planner("bold", bold_rules(), EVEN),
        Planner("polite", PollingRules(), EVEN),
    ],
    ids=lambda each: each.name,
)
def test_no_wait_is_out_of_bounds(policy: Policy) -> None:
    for feed in generate(11, 4, 14):
        planning = policy.begin(feed, 100)
        now = held_out_span(feed).start
        for _ in range(50):
            wait = planning.next_wait(now, ())
            assert 60 - 1e-3 <= wait <= DAY + 2 * HOUR  # and out of skipped hours
            now += wait


def test_a_simulation_is_the_same_every_time() -> None:
    traces = generate(6, 5, 10)

    def once() -> list[Result]:
        return compare(policies_for(traces), traces, 24)

    assert once() == once()


def test_the_picture_has_a_curve_for_each_policy(results: dict[str, Result]) -> None:
    picture = ElementTree.fromstring(draw(list(results.values())))  # noqa: S314

    curves = picture.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(curves) == len(results)
    assert {"planner", "√λ"} <= set(picture.itertext())
