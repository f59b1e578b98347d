"""Compares policies at the same number of polls, and draws the comparison.

The picture is SVG and shows the distribution of delays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from math import exp, log, log10

from hub.core.schedule.poll_period import DAY, PollingRules
from hub.core.schedule.posting_profile import (
    PostingHabits,
    Prior,
    prior_of,
    read_habits,
    watched_days,
)
from hub.simulation.policies import (
    EntryFrequency,
    FixedInterval,
    Planner,
    Policy,
    RateOracle,
    RootOfRate,
    posting_before,
)
from hub.simulation.policy_run import Outcome, run_policy
from hub.simulation.traces import Trace, held_out_span

CLOSE_ENOUGH = 0.004
"""Share of the budget by which the polls of a policy may differ from it."""
_MOST_TRIALS = 30
_LEAST_KNOB, _MOST_KNOB = 1e-6, 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a policy did over all feeds. ``delays`` are in seconds, from the shortest on.

    ``feed_means`` has the mean delay of each feed that posted in its test. Feeds with
    long spans weigh most in ``delays``, and in ``polls_per_day``, which is over all
    feed-days. ``lost`` and ``early`` are as of `Outcome`.
    """

    policy: str
    knob: float
    delays: tuple[float, ...]
    feed_means: tuple[float, ...]
    polls_per_day: float
    budget: float
    lost: int
    early: int

    @property
    def mean(self) -> float:
        return sum(self.delays) / len(self.delays) if self.delays else 0.0

    @property
    def mean_by_feed(self) -> float:
        """The mean of the feeds' means, in which each feed counts the same."""
        means = self.feed_means
        return sum(means) / len(means) if means else 0.0

    @property
    def spend(self) -> float:
        """Polls as a share of the budget: 1 is all of it."""
        return self.polls_per_day / self.budget

    def percentile(self, share: float) -> float:
        """The delay that this share of all posts does not exceed; 0 without posts."""
        if not self.delays:
            return 0.0
        return self.delays[min(int(share * len(self.delays)), len(self.delays) - 1)]


def policies_for(traces: Sequence[Trace]) -> list[Policy]:
    """Return the policies to compare; the oracle only if every trace has rates."""
    prior = habits_of_all(traces)
    everything: list[Policy] = [
        FixedInterval(),
        EntryFrequency(),
        RootOfRate(),
        Planner("planner", bold_rules(), prior),
        Planner("planner, earned floors", PollingRules(), prior),
        Planner("planner, without 304", PollingRules(), prior, answers_304=False),
    ]
    if all(trace.rates for trace in traces):
        everything.append(RateOracle())
    return everything


def bold_rules() -> PollingRules:
    """Return rules without promises, and with no floor but a minute.

    They show what a plan could do if floors did not have to be earned.
    """
    return PollingRules(
        min_period=60,
        earned_floor=60,
        expected_floor=60,
        default_floor=60,
        promised=DAY,
        promised_without_304=DAY,
        promised_awake=DAY,
    )


def habits_of_all(traces: Sequence[Trace]) -> Prior:
    """Return what the posting habits of all feeds were before their tests."""
    return prior_of(_habits_before(trace) for trace in traces)


def _habits_before(trace: Trace) -> tuple[PostingHabits, float]:
    posting = posting_before(trace)
    at = datetime.fromtimestamp(held_out_span(trace).start, UTC)
    return read_habits(posting.habits), watched_days(posting, at)


def compare(
    policies: Iterable[Policy], traces: Sequence[Trace], budget: float
) -> list[Result]:
    """Return the result of each policy, at the knob where it spends the budget.

    ``budget`` is in polls per feed and day.
    """
    return [at_budget(policy, traces, budget) for policy in policies]


def at_budget(policy: Policy, traces: Sequence[Trace], budget: float) -> Result:
    """Return the result of a policy at the knob where it spends the budget.

    The knob is found on a logarithmic scale, by secants within a bracket. If no knob
    brings the polls near the budget, the result is the nearest.
    """
    low, high = log(_LEAST_KNOB), log(_MOST_KNOB)
    at, slope = log(100.0), -0.5
    last: tuple[float, float] | None = None
    best: Result | None = None
    for _ in range(_MOST_TRIALS):
        knob = exp(at)
        outcomes = [run_policy(trace, policy.begin(trace, knob)) for trace in traces]
        result = _summarize(policy, knob, budget, outcomes)
        error = log(max(result.spend, 1e-9))
        if best is None or abs(error) < abs(log(max(best.spend, 1e-9))):
            best = result
        if abs(error) < CLOSE_ENOUGH or high - low < CLOSE_ENOUGH:
            break
        low, high = (at, high) if error > 0 else (low, at)
        if last is not None and error != last[1] and at != last[0]:
            slope = min(max((error - last[1]) / (at - last[0]), -2.0), -0.1)
        last = (at, error)
        guess = at - error / slope
        at = guess if low < guess < high else (low + high) / 2
    assert best is not None  # noqa: S101 - there was a trial
    return best


def _summarize(
    policy: Policy, knob: float, budget: float, outcomes: Sequence[Outcome]
) -> Result:
    days = sum(outcome.days for outcome in outcomes)
    return Result(
        policy=policy.name,
        knob=knob,
        delays=tuple(sorted(d for outcome in outcomes for d in outcome.delays)),
        feed_means=tuple(
            sum(outcome.delays) / len(outcome.delays)
            for outcome in outcomes
            if outcome.delays
        ),
        polls_per_day=sum(outcome.polls for outcome in outcomes) / days,
        budget=budget,
        lost=sum(outcome.lost for outcome in outcomes),
        early=sum(outcome.early for outcome in outcomes),
    )


WIDTH, HEIGHT = 860, 460
LEFT, TOP, RIGHT, BOTTOM = 60, 30, 640, 400
SHORTEST, LONGEST = 10.0, 86_400.0
_COLOURS = ("#888888", "#c77700", "#7a4fb5", "#0a7d4b", "#1769c2", "#c2185b")
_MARKS = ((10, "10 s"), (60, "1 min"), (600, "10 min"), (3_600, "1 h"), (86_400, "1 d"))
_POINTS = 120


def draw(results: Sequence[Result]) -> str:
    """Return an SVG: the share of posts found within each delay, a curve a policy."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18">Share of entries found within a delay</text>',
        *_grid(),
    ]
    for number, result in enumerate(results):
        colour = _COLOURS[number % len(_COLOURS)]
        lines += _curve(result, colour, TOP + 16 + 34 * number)
    return "\n".join([*lines, "</svg>", ""])


def _grid() -> list[str]:
    lines = []
    for seconds, label in _MARKS:
        x = _x(seconds)
        lines.append(f'<path d="M{x} {TOP}V{BOTTOM}" stroke="#ddd"/>')
        lines.append(f'<text x="{x}" y="{BOTTOM + 18}" text-anchor="middle">{label}')
        lines.append("</text>")
    for percent in range(0, 101, 25):
        y = _y(percent / 100)
        lines.append(f'<path d="M{LEFT} {y}H{RIGHT}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{percent} %')
        lines.append("</text>")
    return lines


def _curve(result: Result, colour: str, label_y: float) -> list[str]:
    points = []
    for number in range(_POINTS + 1):
        share = number / _POINTS
        delay = result.percentile(share)
        points.append(f"{_x(delay)},{_y(share)}")
    name = escape(result.policy)
    mean = f"mean {result.mean / 60:.1f} min"
    x = RIGHT + 16
    return [
        f'<polyline fill="none" stroke="{colour}" stroke-width="2"'
        f' points="{" ".join(points)}"/>',
        f'<text x="{x}" y="{label_y}" fill="{colour}">{name}</text>',
        f'<text x="{x}" y="{label_y + 15}" fill="#555">{mean}</text>',
    ]


def _x(seconds: float) -> float:
    clamped = min(max(seconds, SHORTEST), LONGEST)
    share = log10(clamped / SHORTEST) / log10(LONGEST / SHORTEST)
    return round(LEFT + share * (RIGHT - LEFT), 1)


def _y(share: float) -> float:
    return round(BOTTOM - share * (BOTTOM - TOP), 1)
