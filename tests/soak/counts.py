"""What the hub says it did, compared with what was seen of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import aiohttp

from tests.soak.hostile import ACCEPTING, ENDLESS, RESETTING
from tests.soak.population import Population, ShortMemories

DELIVERIES = "fanfare_deliveries_total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the judge saw in the whole life of a process, which is at rest now.

    ``unknown`` requests were under way to callbacks that were let go meanwhile, or were
    made twice because their connection was reset.
    """

    entries: int
    subscriptions: int
    delivered: int
    requests: int
    unknown: int
    live: int = 0


async def read_metrics(url: str) -> dict[str, float]:
    """The hub's metrics, by name and labels."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{url}/metrics") as answer,
    ):
        answer.raise_for_status()
        text = await answer.text()
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    return {name: float(value) for name, value in lines}


def live_messages(told: dict[str, float]) -> int:
    """How many notifications the hub says it wrote to live connections."""
    return int(
        sum(
            told[f'fanfare_live_messages_total{{how="{how}"}}']
            for how in ("pushed", "replayed")
        )
    )


def see(
    population: Population, hostile: ShortMemories, *, unknown: int, live: int
) -> Seen:
    """What was seen. ``unknown``: requests still open when hostile ones were let go."""
    everybody = population.all.all.values()
    receipts = [each for one in everybody for each in one.receipts]
    told = hostile.told
    unknown += min(told[ENDLESS], 1) + told[RESETTING] // 2
    return Seen(
        entries=sum(feed.count - 1 for _id, feed in population.feeds),
        subscriptions=population.members.subscribed,
        delivered=sum(each.accepted for each in receipts)
        + sum(told[name] for name in ACCEPTING),
        requests=len(receipts) + told.total(),
        unknown=unknown,
        live=live,
    )


def differences(told: dict[str, float], live: int, seen: Seen) -> Iterator[str]:
    """Every number that differs from what was seen.

    ``live``: what the hub counted in the time in which no reader left.
    """
    requests = {
        outcome: int(told[f'{DELIVERIES}{{outcome="{outcome}"}}'])
        for outcome in ("delivered", "refused", "unanswered")
    }
    delivered = requests["delivered"]
    least = seen.delivered - seen.unknown
    if not least <= delivered <= seen.delivered:
        yield f"counted {delivered} delivered of {seen.delivered} ({seen.unknown} open)"
    total = sum(requests.values())
    if not seen.requests - seen.unknown <= total <= seen.requests:
        yield f"counted {requests} of {seen.requests} requests ({seen.unknown} open)"
    for name, number in (
        ('fanfare_entries_total{kind="entries"}', seen.entries),
        ("fanfare_subscriptions", seen.subscriptions),
    ):
        if told[name] != number:
            yield f"counted {told[name]:.0f} as {name}, which are {number}"
    if live != seen.live:
        yield f"counted {live} live messages, of which {seen.live} were read"
