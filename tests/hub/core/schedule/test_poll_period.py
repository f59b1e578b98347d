from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hub.core.schedule.forecast import EXCITED
from hub.core.schedule.poll_period import (
    LARGE_BODY,
    SIZEABLE_BODY,
    Plan,
    PlanningContext,
    PollingRules,
    plan,
    rules_of,
)
from hub.core.schedule.posting_profile import (
    NOTHING_KNOWN,
    PostingHabits,
    count_habits,
    pack_habits,
)
from protocols.model import Hints
from storage.records import Polling, PollReason, Posting, Validators

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
RULES = PollingRules(
    patience=1_800,  # hourly at 24 entries a day: round numbers
    promised=DAY,
    promised_without_304=DAY,
    promised_awake=DAY,
)
VALIDATORS = Validators(url="https://feed.example/", etag='"1"')


def posting(a_day: float) -> Posting:
    """So long and so steadily observed that so much is expected, at any hour alike."""
    weight = a_day / (1 - EXCITED) * (21 + 2.5) - 0.5
    return Posting(weight=weight, at=NOW, since=NOW - timedelta(days=3650))


def habits(hour: int, posts: int) -> PostingHabits:
    """Of a feed that has always posted in that hour, on any day."""
    first = NOW.replace(hour=hour, minute=30).timestamp()
    return count_habits(NOTHING_KNOWN, [first - DAY * day for day in range(posts)])


def healthy(a_day: float = 1.0, **changes: object) -> Polling:
    polling = Polling(
        code=200,
        last_fetch=NOW,
        last_success=NOW,
        validators=VALIDATORS,
        posting=posting(a_day),
    )
    return replace(polling, **changes)  # type: ignore[arg-type]


def planned(
    polling: Polling,
    subscribers: int = 1,
    jitter: float = 0.0,
    rules: PollingRules = RULES,
) -> Plan:
    return plan(polling, subscribers, rules, NOW, jitter)


def wait(plan: Plan) -> float:
    return (plan.next_fetch - NOW).total_seconds()


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


# --- the rule ------------------------------------------------------------------


def test_an_entry_a_day_is_polled_every_half_an_hour_by_default() -> None:
    assert planned(healthy(1), rules=PollingRules()).period == pytest.approx(HOUR / 2)


def test_the_patience_decides_what_is_polled_hourly() -> None:
    assert planned(healthy(24)).period == pytest.approx(HOUR)


def test_four_times_the_entries_halve_the_period() -> None:
    assert planned(healthy(6)).period == pytest.approx(2 * HOUR)
    assert planned(healthy(1.5)).period == pytest.approx(4 * HOUR)


def test_subscribers_shorten_the_period_by_the_root_of_their_weight() -> None:
    periods = [planned(healthy(1), count).period for count in (0, 1, 8)]

    assert periods[0] == periods[1] == pytest.approx(2 * periods[2])


def test_a_feed_that_posts_next_to_nothing_is_polled_daily() -> None:
    assert planned(healthy(0.03)).period == DAY


# --- floors --------------------------------------------------------------------


def test_the_floor_holds_whatever_the_subscribers() -> None:
    assert planned(healthy(20), 1_000_000).period == 15 * MINUTE


@pytest.mark.parametrize(
    ("polling", "period"),
    [
        (healthy(100), 29.4 * MINUTE),
        (healthy(2400), 15 * MINUTE),
        (healthy(2400, answers_304=True), 6 * MINUTE),
        (healthy(2400, fresh_until=after(300)), 6 * MINUTE),
        (healthy(2400, fresh_until=after(900)), 15 * MINUTE),
        (healthy(143, answers_304=True), 24.6 * MINUTE),
        (healthy(1_000_000, answers_304=True), MINUTE),
        (healthy(2400, validators=None, fresh_until=after(300)), 15 * MINUTE),
    ],
    ids=[
        "posting hourly earns less than an hour",
        "but no less than 15 minutes",
        "unless the server answers 304",
        "or is fresh for less than 15 minutes",
        "and not for longer",
        "there the rule decides",
        "down to the least period",
        "and never without validators",
    ],
)
def test_fast_polling_is_earned(polling: Polling, period: float) -> None:
    assert planned(polling).period == pytest.approx(period, rel=0.01)


@pytest.mark.parametrize(
    ("own", "answers_304", "floor"),
    [
        (habits(12, posts=9), True, 5 * MINUTE),
        (NOTHING_KNOWN, True, 15 * MINUTE),
        (habits(20, posts=200), True, HOUR),
        (habits(20, posts=200), False, 15 * MINUTE),
    ],
    ids=["when it posts", "who knows when", "not when it sleeps", "unknown to save"],
)
def test_a_server_that_answers_304_may_be_asked_sooner_when_the_feed_is_not_asleep(
    own: PostingHabits, answers_304: bool, floor: float
) -> None:
    polling = healthy(5, answers_304=answers_304)
    polling = replace(
        polling, posting=replace(polling.posting, habits=pack_habits(own))
    )

    [term] = [t for t in planned(polling).terms if t.name == "floor"]

    assert term.value == floor


@pytest.mark.parametrize(
    ("body_bytes", "floor"),
    [(0, 15), (262_143, 15), (262_144, 30), (1_048_575, 30), (1_048_576, 180)],
)
def test_a_server_without_304_has_a_floor_by_the_size_of_its_document(
    body_bytes: int, floor: float
) -> None:
    for validators in (VALIDATORS, None):
        polling = healthy(1e6, body_bytes=body_bytes, validators=validators)
        assert planned(polling).period == floor * MINUTE


# --- the promise ---------------------------------------------------------------

DEAR = PlanningContext(price=4_000.0)
DEARER = PlanningContext(price=20_000.0)


def promised(polling: Polling, context: PlanningContext = DEAR) -> Plan:
    return plan(polling, 1, PollingRules(), NOW, 1.0, planning_context=context)


@pytest.mark.parametrize(
    ("polling", "period"),
    [
        (healthy(1, answers_304=True), HOUR),
        (healthy(1), 3 * HOUR),
        (healthy(25, answers_304=True), 15 * MINUTE),
        (healthy(25), 15 * MINUTE),
        (healthy(25, body_bytes=300_000), 30 * MINUTE),
        (healthy(1, answers_304=True, fresh_until=after(2 * HOUR)), 2 * HOUR),
        (
            healthy(
                1,
                answers_304=True,
                hints=Hints(update_period="daily", update_frequency=8),
            ),
            3 * HOUR,
        ),
    ],
    ids=[
        "a server that answers 304",
        "one that does not",
        "while it posts hourly",
        "also without 304",
        "but not of large documents",
        "nor before a max-age is over",
        "nor before the document wishes it",
    ],
)
def test_a_feed_is_polled_as_often_as_is_promised(
    polling: Polling, period: float
) -> None:
    assert wait(promised(polling)) == pytest.approx(period, rel=0.03)


def test_jitter_does_not_break_the_promise() -> None:
    assert wait(promised(healthy(1, answers_304=True))) == HOUR


def test_a_budget_that_does_not_pay_for_the_promise_stretches_it() -> None:
    plan = promised(healthy(1, answers_304=True), DEARER)

    assert plan.period == pytest.approx(2 * HOUR)


def test_an_operator_may_poll_an_intranet_every_second() -> None:
    rules = PollingRules(min_period=1, max_period=1)
    every = [
        healthy(0.03),
        healthy(0.03, validators=None, unchanged=9),
        healthy(0.03, hints=Hints(ttl_minutes=60)),
    ]

    assert [wait(planned(polling, rules=rules)) for polling in every] == [1, 1, 1]


# --- what the document wishes --------------------------------------------------


@pytest.mark.parametrize(
    ("polling", "period"),
    [
        (healthy(24, hints=Hints(update_period="daily", update_frequency=9)), 9600),
        (healthy(24, hints=Hints(update_period="daily")), HOUR),
        (healthy(24, hints=Hints(update_period="hourly", update_frequency=1)), HOUR),
        (healthy(96, hints=Hints(ttl_minutes=60)), HOUR),
        (healthy(384, hints=Hints(ttl_minutes=60)), 15 * MINUTE),
        (healthy(24, hints=Hints(ttl_minutes=10_000)), HOUR),
    ],
    ids=[
        "a wish is granted",
        "not if the feed posts far more often",
        "nor WordPress's",
        "a ttl is granted",
        "not if four times as often",
        "and never for more than an hour",
    ],
)
def test_wishes_make_the_period_longer(polling: Polling, period: float) -> None:
    assert planned(polling).period == pytest.approx(period)


@pytest.mark.parametrize(
    ("jitter", "seconds"), [(0, 0), (1, 900), (-1, 900), (0.5, 450)]
)
def test_feeds_whose_skipped_hours_are_over_are_not_all_asked_on_the_hour(
    jitter: float, seconds: float
) -> None:
    polling = healthy(24, hints=Hints(skip_hours=(12, 13, 14)))

    next_fetch = planned(polling, jitter=jitter).next_fetch

    assert next_fetch == NOW.replace(hour=15) + timedelta(seconds=seconds)


# --- what the server says ------------------------------------------------------


@pytest.mark.parametrize(
    ("polling", "seconds"),
    [
        (healthy(24, fresh_until=after(2 * HOUR)), 2 * HOUR),
        (healthy(24, fresh_until=after(2 * DAY)), DAY),
        (healthy(24, retry_after=after(2 * HOUR)), 2 * HOUR),
        (healthy(24, retry_after=after(90 * DAY)), 7 * DAY),
        (healthy(24, retry_after=after(-5), fresh_until=after(-5)), HOUR),
    ],
    ids=["max-age", "max-age of two days", "Retry-After", "of 90 days", "both past"],
)
def test_a_server_is_not_asked_before_it_allows(
    polling: Polling, seconds: float
) -> None:
    assert wait(planned(polling)) == seconds


def test_even_an_intranet_is_not_asked_before_it_allows() -> None:
    rules = PollingRules(min_period=1, max_period=1)

    assert wait(planned(healthy(retry_after=after(60)), rules=rules)) == 60


@pytest.mark.parametrize(
    ("polling", "is_pushed", "reason"),
    [
        (healthy(24), False, PollReason.PLANNED),
        (healthy(24), True, PollReason.BACKUP),
        (healthy(24, retry_after=after(2 * HOUR)), False, PollReason.HELD_BACK),
        (healthy(24, settling_since=NOW), False, PollReason.SETTLING_IN),
        (healthy(24, settling_since=NOW), True, PollReason.BACKUP),
        (healthy(24, settling_since=after(-901)), False, PollReason.PLANNED),
        (
            healthy(24, settling_since=NOW, fresh_until=after(2 * MINUTE)),
            False,
            PollReason.HELD_BACK,
        ),
        (healthy(24, fresh_until=after(MINUTE)), False, PollReason.PLANNED),
        (healthy(24, hints=Hints(skip_hours=(13,))), True, PollReason.BACKUP),
        (healthy(24, hints=Hints(skip_hours=(13,))), False, PollReason.HELD_BACK),
        (
            healthy(code=500, failures=1, retry_after=after(2 * DAY)),
            False,
            PollReason.RETRY_AFTER_FAILURE,
        ),
    ],
)
def test_a_plan_has_one_reason(
    polling: Polling, is_pushed: bool, reason: PollReason
) -> None:
    assert plan(polling, 1, RULES, NOW, is_pushed=is_pushed).reason is reason


# --- settling in ---------------------------------------------------------------


def new(age: float, **changes: object) -> Polling:
    """A feed whose first good answer came so many seconds ago."""
    known: dict[str, object] = {"settling_since": after(-age), "entry_count": 500}
    return healthy(1.5, **known | changes)


@pytest.mark.parametrize(
    ("age", "seconds"),
    [(0, 60), (60, 240), (70, 230), (300, 600), (890, 60), (900, 4 * HOUR)],
)
def test_a_new_feed_is_polled_after_1_5_and_15_minutes_then_as_planned(
    age: float, seconds: float
) -> None:
    plan = planned(new(age))

    assert wait(plan) == pytest.approx(seconds, rel=0.03)
    assert plan.period == pytest.approx(4 * HOUR)


def test_a_new_feed_without_entries_is_polled_every_minute() -> None:
    assert wait(planned(new(60, entry_count=0))) == pytest.approx(60, rel=0.03)


@pytest.mark.parametrize(
    ("polled_at", "size", "answers_304", "seconds"),
    [
        (0, SIZEABLE_BODY, False, 60),
        (60, SIZEABLE_BODY - 1, False, 240),
        (60, SIZEABLE_BODY, True, 240),
        (60, SIZEABLE_BODY, False, 30 * MINUTE),
        (60, LARGE_BODY, False, 3 * HOUR),
    ],
)
def test_a_large_document_without_304_is_fetched_after_a_minute_and_then_by_its_floor(
    polled_at: float, size: int, answers_304: bool, seconds: float
) -> None:
    polling = new(
        polled_at,
        body_bytes=size,
        answers_304=answers_304,
        posting=posting(2400),
    )
    assert wait(planned(polling)) == pytest.approx(seconds, rel=0.03)


def test_a_new_feed_that_posts_these_very_minutes_is_polled_each_minute() -> None:
    busy = replace(posting(1.5), burst=0.95)

    assert wait(planned(new(100, posting=busy), jitter=-1)) == MINUTE
    assert wait(planned(new(900, posting=busy), jitter=-1)) > HOUR


@pytest.mark.parametrize(
    ("polling", "seconds"),
    [
        (new(0, fresh_until=after(700)), 700),
        (new(0, hints=Hints(ttl_minutes=20)), 1200),
        (new(0, hints=Hints(skip_hours=(12,))), HOUR),
        (new(0, is_resource=True), 300),
        (new(0, code=404, failures=1), HOUR),
    ],
    ids=["max-age", "ttl", "skipHours", "what is no feed", "trouble"],
)
def test_a_new_feed_is_not_polled_sooner_than_its_server_asks(
    polling: Polling, seconds: float
) -> None:
    assert wait(planned(polling)) == pytest.approx(seconds, rel=0.03)


@pytest.mark.parametrize(
    ("rules", "seconds"),
    [
        (PollingRules(min_period=600), 600),
        (PollingRules(min_period=20, max_period=20), 20),
    ],
    ids=["least", "longest"],
)
def test_a_new_feed_is_polled_within_the_periods_that_are_set(
    rules: PollingRules, seconds: float
) -> None:
    assert wait(planned(new(0), rules=rules, jitter=-1)) == seconds


def test_jitter_only_delays_a_new_feed() -> None:
    waits = [wait(planned(new(0), jitter=jitter)) for jitter in (-1, 0, 1)]

    assert waits == [60, 61.5, 63]


# --- jitter and trouble --------------------------------------------------------


@pytest.mark.parametrize(("a_day", "spread"), [(96, 90), (6, 150), (1.5, 150)])
def test_jitter_is_five_percent_either_way_and_150_seconds_at_most(
    a_day: float, spread: float
) -> None:
    polling = healthy(a_day)
    period = planned(polling).period

    assert wait(planned(polling, jitter=1)) == pytest.approx(period + spread)
    assert wait(planned(polling, jitter=-1)) == pytest.approx(period - spread)


def test_jitter_does_not_break_a_floor() -> None:
    assert wait(planned(healthy(2400), jitter=-1)) == 15 * MINUTE


@pytest.mark.parametrize(
    ("code", "failures", "jitter", "seconds"),
    [
        (404, 1, -1, HOUR),
        (404, 1, 1, 1.05 * HOUR),
        (404, 2, -1, 2 * HOUR),
        (403, 1, -1, 6 * HOUR),
        (429, 1, -1, 8 * HOUR),
        (500, 1, -1, 300),
        (500, 1, 1, 600),
        (0, 4, 1, 4800),
        (0, 4, 0, 2550),
    ],
)
def test_in_trouble_the_wait_is_the_back_off(
    code: int, failures: int, jitter: float, seconds: float
) -> None:
    polling = healthy(1.5, code=code, failures=failures)

    assert wait(planned(polling, jitter=jitter)) == pytest.approx(seconds)


def test_a_retry_after_is_a_floor_of_the_back_off() -> None:
    polling = healthy(code=503, failures=1, retry_after=after(HOUR))

    assert wait(planned(polling, jitter=-1)) == HOUR


# --- the planning context ------------------------------------------------------


def test_a_higher_price_means_fewer_polls() -> None:
    periods = [
        plan(
            healthy(1), 1, RULES, NOW, planning_context=PlanningContext(price=price)
        ).period
        for price in (50, 200, 800)
    ]

    assert periods == [pytest.approx(n * HOUR, 0.01) for n in (0.816, 1.63, 3.27)]


def test_a_feed_is_asked_before_its_document_may_have_overflowed() -> None:
    dear = PlanningContext(price=1e9)
    periods = [
        plan(
            healthy(240, entry_count=count), 1, RULES, NOW, planning_context=dear
        ).period
        for count in (0, 50, 5)
    ]

    assert periods[0] == DAY
    assert periods[1] == pytest.approx(28.6 / 240 * DAY, rel=0.01)
    assert periods[2] == 15 * MINUTE  # its floor


# --- explanation ---------------------------------------------------------------


def test_every_term_is_named_with_its_number() -> None:
    polling = healthy(
        24,
        hints=Hints(ttl_minutes=30, update_period="yearly", skip_hours=(14,)),
        retry_after=after(30),
        fresh_until=after(2 * HOUR + 1),
    )

    terms = {term.name: term.value for term in plan(polling, 2, RULES, NOW).terms}

    assert terms == {
        "rate": pytest.approx(24 / (1 - EXCITED)),
        "habit": pytest.approx(1),
        "burst": 0,
        "rate now": pytest.approx(24),
        "price": 1800,
        "weight": 2,
        "wanted": pytest.approx(HOUR / 2**0.5),
        "floor": 900,
        "ttl": 1800,
        "sy:updatePeriod": 365 * DAY,
        "promised": DAY,
        "period": pytest.approx(HOUR / 2**0.5),
        "fresh": 2 * HOUR + 1,
        "retry after": 30,
        "skip": HOUR - 1,
    }


def test_trouble_is_explained_too() -> None:
    names = [term.name for term in planned(healthy(code=404, failures=3)).terms]

    assert names[-5:] == ["wanted", "floor", "promised", "backoff", "period"]


def test_a_feed_never_fetched_can_be_explained() -> None:
    assert plan(Polling(), 0, RULES, NOW).period > 0
    assert planned(Polling(fresh_until=after(60), validators=VALIDATORS)).period > 0


# --- invariants ----------------------------------------------------------------

moments = st.none() | st.floats(-DAY, 6 * DAY).map(after)
pollings = st.builds(
    healthy,
    st.floats(0.03, 100_000),
    code=st.sampled_from([0, 200, 304, 403, 404, 410, 429, 500, 503]),
    failures=st.integers(0, 1000),
    unchanged=st.integers(0, 1000),
    answers_304=st.booleans(),
    validators=st.none() | st.just(VALIDATORS),
    retry_after=moments,
    fresh_until=moments,
    hints=st.builds(
        Hints,
        ttl_minutes=st.none() | st.integers(-1, 10**6),
        update_period=st.sampled_from(["", "hourly", "daily", "yearly"]),
        update_frequency=st.none() | st.integers(-1, 100),
        skip_hours=st.lists(st.integers(0, 23), max_size=24).map(tuple),
        skip_days=st.lists(st.integers(0, 6), max_size=7).map(tuple),
    ),
)
jitters = st.floats(-1, 1)


@given(pollings, st.integers(0, 10**7), jitters)
def test_the_period_stays_within_its_bounds(
    polling: Polling, subscribers: int, jitter: float
) -> None:
    result = planned(polling, subscribers, jitter)

    assert RULES.min_period <= result.period <= RULES.max_period
    assert wait(result) >= RULES.min_period


@given(pollings, jitters)
def test_no_floor_is_ever_broken(polling: Polling, jitter: float) -> None:
    result = planned(polling, 1000, jitter)

    if polling.retry_after is not None:
        assert result.next_fetch >= polling.retry_after
    if polling.fresh_until is not None:
        assert result.next_fetch >= min(polling.fresh_until, after(DAY))
    if not polling.answers_304 and polling.validators is None and not polling.failures:
        assert wait(result) >= 15 * MINUTE


@given(st.lists(st.floats(0.03, 10_000), min_size=2, max_size=9))
def test_who_posts_more_is_never_polled_less(rates: list[float]) -> None:
    periods = [
        planned(healthy(rate, answers_304=True)).period for rate in sorted(rates)
    ]

    assert all(slow >= fast for slow, fast in pairwise(periods))


@given(pollings, st.floats(1, 1e6), st.floats(1, 1e6))
def test_a_larger_budget_never_polls_a_feed_less(
    polling: Polling, one: float, other: float
) -> None:
    cheap, dear = sorted((one, other))

    def period(price: float) -> float:
        return plan(
            polling, 1, RULES, NOW, planning_context=PlanningContext(price=price)
        ).period

    assert period(cheap) <= period(dear)


@given(pollings, jitters)
def test_equal_inputs_give_equal_plans(polling: Polling, jitter: float) -> None:
    assert planned(polling, 3, jitter) == planned(polling, 3, jitter)


hours = st.lists(st.integers(0, 168), max_size=60)


@given(hours, st.floats(0.03, 10_000), st.floats(0, 5), st.floats(1.001, 10))
def test_whatever_its_habits_who_posts_more_is_not_polled_less(
    posted: list[int], a_day: float, burst: float, more: float
) -> None:
    own = count_habits(NOTHING_KNOWN, [NOW.timestamp() - HOUR * ago for ago in posted])

    def period(rate: float) -> float:
        habitual = replace(posting(rate), habits=pack_habits(own), burst=burst)
        return planned(healthy(posting=habitual, answers_304=True)).period

    assert period(a_day * more) <= period(a_day) + 1e-6


@given(pollings, st.integers(0, 23), st.integers(1, 300))
def test_a_poll_never_falls_into_skipped_hours(
    polling: Polling, hour: int, posts: int
) -> None:
    polling = replace(
        polling,
        posting=replace(polling.posting, habits=pack_habits(habits(hour, posts))),
        hints=Hints(skip_hours=(1, hour)),
    )

    assert planned(polling).next_fetch.hour not in (1, hour)


@pytest.mark.parametrize(
    ("own_period", "failures", "rules"),
    [
        (0.0, 0, PollingRules()),
        (300.0, 0, PollingRules(min_period=300.0, max_period=300.0)),
        (5.0, 0, PollingRules(min_period=60.0, max_period=60.0)),
        (2 * DAY, 0, PollingRules(min_period=2 * DAY, max_period=2 * DAY)),
        (300.0, 1, PollingRules(min_period=300.0, max_period=DAY)),
    ],
)
def test_a_period_of_its_own_is_a_feed_s_only_one(
    own_period: float, failures: int, rules: PollingRules
) -> None:
    assert rules_of(PollingRules(), own_period, is_failing=failures > 0) == rules


def test_a_server_s_floor_goes_before_a_period_of_its_own() -> None:
    polling = Polling(code=200, fresh_until=NOW + timedelta(hours=1))
    rules = rules_of(PollingRules(), 300.0)
    assert plan(polling, 1, rules, NOW).next_fetch == NOW + timedelta(hours=1)
    assert plan(Polling(code=200), 1, rules, NOW).period == 300.0
