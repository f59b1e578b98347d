from __future__ import annotations

from random import Random
from typing import cast

from hub.core.catch_up import CatchUp
from hub.core.replies import Reply
from hub.delivery.acknowledgements import Acknowledgements
from hub.delivery.catch_up_requests import CatchUpRequests
from hub.delivery.catch_ups import CatchUps
from hub.delivery.endings import Endings
from hub.delivery.leases import Leases
from hub.delivery.notifications import Notifications
from hub.delivery.poster import Poster
from storage.interface import DeliveryStore, LogStore
from storage.records import Position, Subscription, SubscriptionId
from tests.support.clock import ManualClock
from tests.support.fake_log import FakeLog
from tests.support.subscriptions import a_record, a_subscription

ONE, OTHER = SubscriptionId(1), SubscriptionId(2)


def test_what_was_claimed_before_an_ending_is_over() -> None:
    endings = Endings()
    before = endings.count

    endings.note([ONE])

    assert endings.has_ended(ONE, before)
    assert not endings.has_ended(OTHER, before)


def test_what_was_claimed_after_an_ending_is_not() -> None:
    endings = Endings()
    endings.note([ONE])
    begun_anew = endings.count
    assert not endings.has_ended(ONE, begun_anew)

    endings.note([ONE])

    assert endings.has_ended(ONE, begun_anew)


def test_the_oldest_endings_are_forgotten() -> None:
    endings = Endings(capacity=2)
    endings.note([ONE, OTHER])
    endings.note([ONE])
    endings.note([SubscriptionId(3)])

    kept = [each for each in (1, 2, 3) if endings.has_ended(SubscriptionId(each), 0)]

    assert kept == [1, 3]


class FatalPoster:
    """Each subscription ends while its first request is under way."""

    def __init__(self, endings: Endings) -> None:
        self.posted: list[Position] = []
        self._endings = endings

    def admits(self, origin: str) -> bool:
        return True

    async def post(
        self,
        subscription: Subscription,
        document: object,
        position: Position,
        **more: object,
    ) -> Reply:
        self.posted.append(position)
        self._endings.note([subscription.id])
        return Reply(status=200, milliseconds=1)


async def test_a_catch_up_goes_no_further_once_its_subscription_has_ended() -> None:
    clock, endings = ManualClock(), Endings()
    poster = FatalPoster(endings)
    log = cast("LogStore", FakeLog(*(a_record(number) for number in range(1, 4))))
    catch_ups = CatchUps(
        log,
        clock,
        cast("Poster", poster),
        CatchUpRequests(log, Notifications(log, "https://hub.example/hub")),
        Acknowledgements(cast("DeliveryStore", None), clock),
        Leases(clock, Random(1)),
        Random(1),
        endings,
    )
    standing = CatchUp(subscription=a_subscription(), lease_id=5, position=Position(0))

    await catch_ups.pursue(standing, endings.count, lambda: None)

    assert poster.posted == [1]
