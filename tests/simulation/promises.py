"""What is known in the end, and whether the hub has kept its promises."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.backups import Backups
from tests.simulation.branches import Branch
from tests.simulation.membership import Membership
from tests.simulation.network import SLOWEST_WAY
from tests.simulation.pauses import Pauses
from tests.simulation.simulated_hub import SimulatedHub
from tests.support.oracle import Evidence, Kill, duplicates, judge, missing, with_news
from tests.support.subscribers import Subscriber

WINDOW = 0.1 + 0.2
"""Seconds: acknowledgements are gathered, and a write takes at most so long."""
IN_FLIGHT = 256 + 64
LATE = 2 * SLOWEST_WAY + 20.0
"""Virtual seconds after the end of a subscription in which what was under way may come,
when the process was stalled meanwhile."""


class Promises:
    def __init__(
        self,
        simulated: SimulatedHub,
        membership: Membership,
        backups: Backups,
        pauses: Pauses,
    ) -> None:
        self._simulated = simulated
        self._pauses = pauses
        self._membership = membership
        self._backups = backups
        self._kills: dict[str, Kill] = {}

    def note_kill(self) -> None:
        process = self._simulated.process
        lag = self._simulated.lag(process.died_at)
        self._simulated.late_since = None
        self._kills[f"{process.hub_url}/hub"] = Kill(process.died_at, lag)

    def note_cut(self, at: float) -> None:
        """A process that was told to stop has waited for as long as it may: what was
        not answered by then comes again."""
        self._kills[f"{self._simulated.process.hub_url}/hub"] = Kill(at)

    async def has_all(self) -> bool:
        """Whether everybody has everything, as far as it is owed."""
        backlog = await self._simulated.process.storage.backlog()
        if backlog.fanouts or backlog.chunks or backlog.retrying:
            return False
        evidence = await self.evidence()
        if any(missing(each, evidence) for each in evidence.subscribers):
            return False
        return not any(
            each.judge(self._last(each.feed)) for each in self._simulated.listeners
        )

    async def evidence(self) -> Evidence:
        """Of the branch of time that is now."""
        deliveries = self._simulated.process.storage.deliveries
        dead = await deliveries.dead_letters(after=0, limit=1_000)
        return self._evidence(
            self._simulated.branch, frozenset(each.callback for each in dead)
        )

    def _evidence(self, branch: Branch, dead: frozenset[str]) -> Evidence:
        world = self._simulated.world
        return Evidence(
            subscribers=[
                with_news(branch.history(each)) for each in world.subscribers.values()
            ],
            expected={each.number: (2, each.count) for each in world.feeds.values()},
            kills={**self._kills, **branch.kills},
            window=WINDOW,
            in_flight=IN_FLIGHT,
            reading=SLOWEST_WAY + WINDOW,
            dead=dead,
            gapped=frozenset().union(
                *(each.gapped for each in world.other_hubs.values())
            ),
        )

    def conclude(self, evidence: Evidence) -> None:
        outcome, world = self._simulated.outcome, self._simulated.world
        outcome.complaints += dict.fromkeys(self._complaints(evidence))
        outcome.kills = len(self._kills)
        outcome.published = sum(last for _first, last in evidence.expected.values())
        outcome.delivered = sum(len(each.accepted) for each in evidence.subscribers)
        outcome.copies = sum(
            len(list(duplicates(each, evidence.kills))) for each in evidence.subscribers
        )
        outcome.relived = sum(map(self._relived, world.subscribers.values()))
        outcome.listened = sum(len(each.numbers) for each in self._simulated.listeners)
        outcome.fingerprint = world.fingerprint

    def _complaints(self, evidence: Evidence) -> Iterator[str]:
        yield from judge(evidence)
        for branch in self._backups.abandoned:
            yield from judge(_without_end(self._evidence(branch, evidence.dead)))
        for listener in self._simulated.listeners:
            yield from listener.judge(self._last(listener.feed))
        yield from self._late_comers()
        yield from self._pauses.breaches()
        yield from self._inventions()
        world = self._simulated.world
        for hub in world.other_hubs.values():
            yield from hub.complaints
        if world.strays:
            yield f"asked for {world.strays[:3]}"

    def _late_comers(self) -> Iterator[str]:
        for subscriber, left_at in self._membership.left:
            receipts = self._simulated.branch.history(subscriber).receipts
            last = max((each.started for each in receipts), default=0.0)
            if last > left_at + LATE:
                yield f"{subscriber.name} was sent more {last - left_at:.0f} s late"

    def _inventions(self) -> Iterator[str]:
        """Whatever is told was published."""
        for subscriber in self._simulated.world.subscribers.values():
            last = self._last(subscriber.feed)
            told = {
                number
                for each in subscriber.receipts
                for feed, number in each.entries
                if feed == subscriber.feed
            }
            if told and max(told) > last:
                yield f"{subscriber.name} was told {max(told)}, which nobody published"

    def _relived(self, subscriber: Subscriber) -> int:
        """Notifications that came once more because a backup was put in place."""
        subscriber = with_news(subscriber)
        once = len({each.entries for each in subscriber.accepted})
        copies = len(
            list(duplicates(self._simulated.branch.history(subscriber), self._kills))
        )
        return max(0, len(subscriber.accepted) - once - copies)

    def _last(self, number: int) -> int:
        return self._simulated.world.feed(number).count


def _without_end(evidence: Evidence) -> Evidence:
    """Of what was broken off nobody can say what would have come."""
    nothing = dict.fromkeys(evidence.expected, (2, 1))
    return Evidence(
        subscribers=evidence.subscribers,
        expected=nothing,
        kills=evidence.kills,
        window=evidence.window,
        in_flight=evidence.in_flight,
        reading=evidence.reading,
        gapped=evidence.gapped,
    )
