"""The operator's subscriptions to operational events, rather than to topics."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from hub.publishing.local_topics import LocalTopics
from hub.runtime.clock import Clock
from hub.services.account_subscriptions import (
    SubscriptionMade,
    check_signing,
    make_secret,
)
from hub.services.topic_addresses import AddressCheck
from protocols.operational_events import event_topic, read_event_types
from protocols.protocol_errors import InvalidValue
from protocols.websub.callbacks import read_callback
from storage.contract import Storage
from storage.records import OPERATOR, NewSubscription, Subscription, SubscriptionState


class EventSubscriptionService:
    def __init__(
        self,
        storage: Storage,
        addresses: AddressCheck,
        clock: Clock,
        local_topics: LocalTopics,
        secret_overlap: timedelta = timedelta(0),
    ) -> None:
        """``secret_overlap``: for how long a replaced secret signs as well."""
        self._storage = storage
        self._addresses = addresses
        self._clock = clock
        self._local_topics = local_topics
        self._secret_overlap = secret_overlap

    async def add(
        self, callback: str, types: Sequence[str], secret: str = ""
    ) -> SubscriptionMade:
        """Notify a callback of events of these types from now on.

        Notifications are always signed: without a ``secret`` the hub makes one, unless
        the callback is subscribed to the same types already. Raises `InvalidValue` and
        `AddressRefused`.
        """
        topic = event_topic(read_event_types(types, "types"))
        callback = read_callback(callback, "callback")
        if self._local_topics.owns(callback):
            raise InvalidValue("callback", "a URL outside this hub")
        check_signing("sha256", secret)
        await self._addresses.check_callback("callback", callback)
        known = await self._storage.subscriptions.find(OPERATOR, topic, callback)
        kept = _secret_of(known)
        new_secret = "" if secret or kept else make_secret()
        now = self._clock.now()
        feed = await self._storage.events.topic(topic, now)
        new = NewSubscription(
            account=OPERATOR,
            topic=topic,
            feed_id=feed.id,
            callback=callback,
            secret=secret or new_secret or kept,
            former_until=now + self._secret_overlap,
        )
        subscription = await self._storage.subscriptions.add(new, now)
        return SubscriptionMade(
            subscription=subscription,
            feed=feed,
            is_new=known is None,
            new_secret=new_secret,
        )


def _secret_of(known: Subscription | None) -> str:
    """The secret of an active subscription; "" if there is none."""
    is_active = known is not None and known.state is SubscriptionState.ACTIVE
    return known.secret if known is not None and is_active else ""
