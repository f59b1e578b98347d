"""How long a decision takes: when a feed is polled next, every term of it named."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from statistics import median

from msgspec.structs import replace

from hub.core.schedule.poll_period import PlanningContext, PollingRules, plan
from hub.core.schedule.posting_profile import with_posts
from scripts.benchmarks.measuring import Finding, Size, Stopwatch
from storage.records import Polling, Posting, Validators

FEEDS = 500
MOST_MICROSECONDS = 50.0
NOW = datetime(2026, 3, 2, 12, 7, tzinfo=UTC)
HISTORY = timedelta(days=60)


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    """CPU of a decision, over feeds from one post in two months to 300 a day."""
    feeds = _feeds()
    rules, planning_context = PollingRules(), PlanningContext()
    costs = []
    for _ in range(size.pick(20, 3, 1)):
        watch = Stopwatch()
        for number, polling in enumerate(feeds):
            now = NOW + timedelta(minutes=7 * number)
            plan(polling, 3, rules, now, 0.5, planning_context)
        costs.append(watch.sample(len(feeds)).microseconds)
    yield Finding(
        bench="plan",
        measure="CPU us per decision",
        hub=median(costs),
        target=f"<= {MOST_MICROSECONDS:g}",
        met=median(costs) <= MOST_MICROSECONDS,
    )


def _feeds() -> list[Polling]:
    draw = Random(1)  # noqa: S311 - hides nothing
    validators = Validators(url="https://feed.example/", etag='"1"')
    known = Polling(code=304, validators=validators, answers_304=True, entry_count=20)
    start = NOW - HISTORY
    feeds = []
    for number in range(FEEDS):
        posts = min(int(1.02**number), 18_000)
        times = sorted(
            start.timestamp() + draw.random() * HISTORY.total_seconds()
            for _ in range(posts)
        )
        posting = with_posts(Posting(since=start), times, NOW)
        feeds.append(replace(known, posting=posting, last_success=NOW))
    return feeds
