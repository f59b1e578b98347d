"""A hub that is stopped during deliveries for twice as long as its leases last.

When it goes on, what it still writes under these leases changes nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from hub.runtime.work_leases import LEASE_SECONDS
from tests.support.http_server import ServerAnswer
from tests.support.stage import Stage, open_stage
from tests.support.subscribers import Subscriber
from tests.support.waiting import eventually

SUBSCRIBERS = 60
FORMATS = ("json", "atom")
THINKING = 0.4
"""Seconds that a subscriber takes to answer: less than the hub waits."""


@dataclass(slots=True)
class Outcome:
    in_flight: int = 0  # when the process was stopped
    copies: int = 0
    ready: float = 0.0  # seconds from its going on to ``/readyz``
    settled: float = 0.0  # until everybody had everything
    complaints: list[str] = field(default_factory=list)


async def stall(seconds: float, directory: Path) -> Outcome:
    outcome = Outcome()
    async with open_stage(directory) as stage:
        feed_id, feed = await stage.add_feed()
        subscribers = [
            await stage.subscribe(
                f"s{number}", feed, format=("json", "atom")[number % 2]
            )
            for number in range(SUBSCRIBERS)
        ]
        asked = _think_once(subscribers)
        await stage.publish(feed_id, feed)
        await eventually(lambda: len(asked) >= SUBSCRIBERS // 2)
        os.kill(stage.hub.pid, signal.SIGSTOP)
        outcome.in_flight = SUBSCRIBERS - sum(
            len(each.accepted) for each in subscribers
        )
        await asyncio.sleep(seconds)
        os.kill(stage.hub.pid, signal.SIGCONT)
        continued = monotonic()
        await stage.hub.wait_ready()
        outcome.ready = monotonic() - continued
        await stage.publish(feed_id, feed)
        await eventually(lambda: all(3 in each.numbers for each in subscribers))
        await eventually(lambda: _is_settled(stage))
        outcome.settled = monotonic() - continued
        await stage.hub.terminate()
        _judge(subscribers, stage.hub.log, outcome)
    return outcome


def _think_once(subscribers: list[Subscriber]) -> list[str]:
    """Let subscribers answer slowly once; return the names of those asked so far."""
    asked: list[str] = []

    def replies(name: str) -> Iterator[ServerAnswer]:
        asked.append(name)
        yield ServerAnswer(delay=THINKING)

    for each in subscribers:
        each.answers = replies(each.name)
    return asked


async def _is_settled(stage: Stage) -> bool:
    health = await stage.api.request("GET", "/api/health")
    backlog = health["backlog"]
    return not (backlog["fanouts"] or backlog["chunks"] or backlog["retrying"])


def _judge(subscribers: list[Subscriber], log: list[str], outcome: Outcome) -> None:
    for each in subscribers:
        outcome.copies += len(each.numbers) - 2
        if sorted(set(each.numbers)) != [2, 3] or each.numbers[-1] != 3:
            outcome.complaints.append(f"{each.name} got {each.numbers}")
    if outcome.copies > outcome.in_flight:
        outcome.complaints.append("more came twice than was under way")
    outcome.complaints += [line for line in log if "Traceback" in line]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak stall", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2 * LEASE_SECONDS + 5)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="fanfare-stall-") as directory:
        outcome = asyncio.run(stall(asked.seconds, Path(directory)))
    print(
        f"stopped for {asked.seconds:g} s, {outcome.in_flight} deliveries under way:"
        f" {outcome.copies} came again; ready {outcome.ready:.2f} s after it went on,"
        f" all delivered after {outcome.settled:.2f} s"
    )
    print("\n".join(f"BROKEN  {each}" for each in outcome.complaints) or "none lost")
    return 1 if outcome.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
