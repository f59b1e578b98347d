"""What happens around a hub while it lives: traffic, and what its operator does."""

from __future__ import annotations

from contextlib import suppress

from protocols.websub.websub_parameters import PublishRequest
from storage.errors import NotFound, SubscriptionPaused
from storage.records import SubscriptionId
from tests.simulation.backups import Backups
from tests.simulation.hub_faults import HubFaults
from tests.simulation.membership import Membership
from tests.simulation.simulated_hub import SimulatedHub

_JOBS = ("log_trimmed", "attempts_trimmed", "removals_finished", "leases_expired")


class Actions:
    def __init__(
        self,
        simulated: SimulatedHub,
        membership: Membership,
        backups: Backups,
        troubles: HubFaults,
    ) -> None:
        self._simulated = simulated
        self._membership = membership
        self._backups = backups
        self._hub_faults = troubles

    async def play(self) -> None:
        """One of them, or nothing where it makes no sense now."""
        simulated = self._simulated
        await self._membership.pause_or_resume()
        throw = simulated.random.random()
        if throw < 0.45:
            simulated.world.publish()
        elif throw < 0.70:
            await self._fetch()
        elif throw < 0.75:
            simulated.world.disturb()
            simulated.count("publisher in trouble")
        elif throw < 0.83:
            await self._hub_faults.befall(simulated.process.disk)
        elif throw < 0.85:
            await self._ping()
        elif throw < 0.88:
            await self._membership.churn()
        elif throw < 0.91:
            await self._membership.take_out_or_return()
        elif throw < 0.94:
            await self._backups.make()
        elif throw < 0.97:
            await self._keep_house()
        else:
            await self.hurry()

    async def fetch_all(self) -> None:
        for feed_id in self._simulated.feed_ids.values():
            await self._simulated.process.hub.services.feeds.fetch(feed_id)

    async def hurry(self) -> None:
        """The operator has retrying subscriptions tried now."""
        process = self._simulated.process
        deliveries = process.storage.deliveries
        for each in await deliveries.retrying(after=SubscriptionId(0), limit=10):
            with suppress(NotFound, SubscriptionPaused):  # it was caught up meanwhile
                await deliveries.retry_now(each.subscription.id, process.clock.now())

    async def _fetch(self) -> None:
        url = self._simulated.random.choice(list(self._simulated.feed_ids))
        if self._simulated.world.is_there(url):
            feed_id = self._simulated.feed_ids[url]
            await self._simulated.process.hub.services.feeds.fetch(feed_id)

    async def _ping(self) -> None:
        """A publisher says that there is something new, which is so."""
        url = self._simulated.world.url(self._simulated.world.publish())
        self._simulated.count("pings")
        websub = self._simulated.process.hub.services.websub
        await websub.publish(PublishRequest(topics=(url,)))

    async def _keep_house(self) -> None:
        house = self._simulated.process.housekeeping
        jobs = [job for job in house.jobs if job.name in _JOBS]
        await house.do(self._simulated.random.choice(jobs))
