"""The planner with one number changed, against itself: which of its ideas help?

    .venv/bin/python -m scripts.variants traces.json
    .venv/bin/python -m scripts.variants traces.json --half even "beta 0" "no minutes"
    .venv/bin/python -m scripts.variants kinds

A file is replayed in six ways: trained on 50, 60 and 70 % of each feed's span, and each
again half an hour later, as it is chance where polls fall. Each line is a variant, with
the ratio of its mean delay to the planner's in each of the six, and their mean: within
2 % it is noise. ``kinds`` are the generated feeds of `tests.support.feed_families`:
there the numbers are minutes, each a mean over some seeds. Equal input, equal output.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from statistics import mean

from msgspec.structs import replace

from hub.core.schedule.poll_period import PollingRules
from hub.simulation.comparison import at_budget, bold_rules, habits_of_all
from hub.simulation.policies import Planner, Policy, RootOfRate
from hub.simulation.traces import Trace, read_traces
from tests.support.feed_families import FAMILIES, family

DAY = 86_400.0
POLLS_A_DAY = 24.0
SPLITS = tuple((share, later) for share in (0.5, 0.6, 0.7) for later in (0.0, 1_800.0))
"""The part of a span that is learnt from, and seconds after it that the test begins."""
KINDS = "kinds"
FEEDS_OF_A_KIND = 12
_NEVER = 1e9

Numbers = dict[str, float]
"""What is set, by the name of a constant in a module of `hub.core`."""

_MEMORY = "posting_profile.MEMORY_DAYS"
VARIANTS: dict[str, Numbers] = {
    "planner": {},
    "before young hubs, imports": {
        "posting_profile.DAYS_SEEN": 1e-6,
        "posting_profile.WEEKS_SEEN": 1e-6,
        "posting_profile.EVEN_POSTS": 1.0,
        "posting_profile.TOGETHER": -1.0,
    },
    "own hours at once": {
        "posting_profile.DAYS_SEEN": 1e-6,
        "posting_profile.WEEKS_SEEN": 1e-6,
    },
    "hours after 7 d, weekdays 28 d": {
        "posting_profile.DAYS_SEEN": 7,
        "posting_profile.WEEKS_SEEN": 28,
    },
    "entries at once count in full": {"posting_profile.TOGETHER": -1.0},
    "all feeds' habits believed": {"posting_profile.EVEN_POSTS": 1.0},
    "no habits of its own": {
        "posting_profile.DAYS_SEEN": _NEVER,
        "posting_profile.WEEKS_SEEN": _NEVER,
    },
    "habits believed in any case": {
        "posting_profile.LEAST_TRUST": 1.0,
        "posting_profile.MOST_TRUST": 1.0,
    },
    "no minutes": {"posting_profile.PRIOR_MINUTES": _NEVER},
    "beta 0": {"forecast.EXCITED": 0.0},
    "beta 0.15": {"forecast.EXCITED": 0.15},
    "beta 0.4": {"forecast.EXCITED": 0.4},
    "tau 7 d": {_MEMORY: 7.0, "posting_profile._MEMORY": 7 * DAY},
    "tau 60 d": {_MEMORY: 60.0, "posting_profile._MEMORY": 60 * DAY},
}


@contextmanager
def numbers_set(numbers: Numbers) -> Iterator[None]:
    """While a variant is replayed; these are constants to everybody else."""
    before = {name: _set(name, value) for name, value in numbers.items()}
    try:
        yield
    finally:
        for name, value in before.items():
            _set(name, value)


def _set(name: str, value: float) -> float:
    module_name, _, constant = name.rpartition(".")
    module = import_module(f"hub.core.schedule.{module_name}")
    before: float = getattr(module, constant)
    setattr(module, constant, value)
    return before


def mean_delay(variant: str, traces: Sequence[Trace]) -> float:
    """Seconds, at the budget."""
    with numbers_set(VARIANTS[variant]):
        return _mean(Planner(variant, bold_rules(), habits_of_all(traces)), traces)


def _mean(policy: Policy, traces: Sequence[Trace]) -> float:
    return at_budget(policy, traces, POLLS_A_DAY).mean


def begun(trace: Trace, share: float, later: float) -> Trace:
    """With a test that begins after so much of the span, and so many seconds later."""
    span = trace.posts[-1] - trace.posts[0]
    return replace(trace, trained=min(share + later / span, 0.99))


def compare_splits(
    traces: Sequence[Trace], variants: Sequence[str], pool: ProcessPoolExecutor
) -> None:
    splits = [[begun(each, *split) for each in traces] for split in SPLITS]
    names = ["planner", *(name for name in variants if name != "planner")]
    runs = {
        name: [pool.submit(mean_delay, name, split) for split in splits]
        for name in names
    }
    base = [run.result() for run in runs["planner"]]
    print(f"{len(traces)} feeds; the planner's mean delays in minutes, then ratios")
    _print("planner", [each / 60 for each in base])
    for name in names[1:]:
        delays = [run.result() for run in runs[name]]
        _print(name, [one / other for one, other in zip(delays, base, strict=True)])


def _print(name: str, numbers: Sequence[float]) -> None:
    shown = "  ".join(f"{number:6.3f}" for number in numbers)
    print(f"{name:31} {mean(numbers):6.3f}   {shown}", flush=True)


def compare_kinds(seeds: int, feeds: int, pool: ProcessPoolExecutor) -> None:
    """Each kind with a budget of its own, and all of them together."""
    print(f"{feeds} feeds of a kind, means of {seeds} seeds, in minutes")
    print(f"{'kind':12} {'root':>7} {'planner':>8} {'earned':>8}")
    for number in range(len(FAMILIES) + 1):
        runs = [pool.submit(_kind, number, seed + 1, feeds) for seed in range(seeds)]
        columns = zip(*(run.result() for run in runs), strict=True)
        root, planner, earned = (mean(column) / 60 for column in columns)
        name = FAMILIES[number].__name__ if number < len(FAMILIES) else "all"
        print(f"{name:12} {root:7.1f} {planner:8.1f} {earned:8.1f}", flush=True)


def _kind(number: int, seed: int, feeds: int) -> tuple[float, float, float]:
    draws = FAMILIES[number : number + 1] or FAMILIES
    traces = [feed for draw in draws for feed in family(draw, seed, feeds)]
    prior = habits_of_all(traces)
    return (
        _mean(RootOfRate(), traces),
        _mean(Planner("planner", bold_rules(), prior), traces),
        _mean(Planner("earned", PollingRules(), prior), traces),
    )


def main() -> None:
    wanted = _arguments()
    with ProcessPoolExecutor(wanted.workers) as pool:
        if wanted.traces == KINDS:
            compare_kinds(wanted.seeds, wanted.feeds, pool)
        else:
            compare_splits(_chosen(wanted), wanted.variants or list(VARIANTS), pool)


def _chosen(wanted: argparse.Namespace) -> list[Trace]:
    traces = read_traces(Path(wanted.traces).read_bytes())
    first = {"all": 0, "even": 0, "odd": 1}[wanted.half]
    half = traces[first :: 1 if wanted.half == "all" else 2]
    longest = wanted.longest_span * DAY
    return [each for each in half if each.posts[-1] - each.posts[0] <= longest]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts.variants", description=__doc__)
    parser.add_argument("traces", help=f"a file of posting times, or {KINDS}")
    parser.add_argument("variants", nargs="*", help=f"of: {', '.join(VARIANTS)}")
    parser.add_argument("--half", choices=("all", "even", "odd"), default="all")
    parser.add_argument("--longest-span", type=float, default=200.0, help="in days")
    parser.add_argument("--seeds", type=int, default=5, help="of kinds")
    parser.add_argument("--feeds", type=int, default=FEEDS_OF_A_KIND, help="of a kind")
    parser.add_argument("--workers", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
