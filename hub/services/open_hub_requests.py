"""The open hub: requests that anybody may make, and their outcome."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import replace

from hub.publishing.local_topics import LocalTopics
from hub.runtime.clock import Clock
from hub.services.service_errors import HubClosed, TooManyWaiting
from hub.websub.ping_queue import PingDecision, PingQueue
from hub.websub.topic_admission import OpenHub
from protocols.protocol_errors import InvalidValue
from protocols.track import is_track_topic
from protocols.websub.websub_parameters import (
    SHORTEST_LEASE,
    PublishRequest,
    SubscribeRequest,
    UnsubscribeRequest,
)
from storage.contract import Storage
from storage.errors import NotFound
from storage.records import (
    ANONYMOUS,
    Attempt,
    FeedState,
    Format,
    NewVerification,
    RetryingSubscription,
    StoredFeed,
    Subscription,
    SubscriptionState,
    Verification,
    VerificationMode,
    VerificationState,
)

SHOWN_ATTEMPTS = 20
"""Attempts shown of a subscription that somebody looks at."""
MOST_PENDING = 20_000
MOST_PENDING_OF_HOST = 2_000
MOST_PENDING_OF_ASKER = 2_000
"""How many requests may wait for their callbacks to answer: in all, of one callback
host, and of one address or account, so that nobody fills the whole queue. Any more are
refused."""

MOST_PARTS = 500
"""Feeds of parts of a page that are fetched after a ping."""

NOT_LISTED = "the topic is not public here; if the hub has it, it is fetched"


NEEDS_ACCOUNT = "tracking requires a token, which this endpoint does not take"
_NEVER_PINGED = (
    FeedState.REMOVED,
    FeedState.PAUSED,
    FeedState.TRACK,
    FeedState.EVENTS,
)


class PingOutcome(StrEnum):
    """What the hub does about a URL that was published."""

    FETCHED = "fetching"
    COALESCED = "coalesced"  # an earlier ping is yet to be served
    LIMITED = "rate-limited"  # too often; or the server wants patience
    NOT_LISTED = "not-listed"  # unknown, or private: these look alike
    INVALID = "invalid"


_OUTCOMES = {
    PingDecision.ACCEPTED: PingOutcome.FETCHED,
    PingDecision.COALESCED: PingOutcome.COALESCED,
    PingDecision.PUT_OFF: PingOutcome.LIMITED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedUrl:
    url: str
    outcome: PingOutcome
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """A request to the open hub, and the subscription that it made, if it still exists.

    Before it is verified it shows nothing about the topic, or about a subscription of
    the same callback, because the sender of the request may own neither. After the end
    of the subscription nothing about the feed is shown.
    """

    verification: Verification
    subscription: Subscription | None = None
    feed: StoredFeed | None = None
    attempts: tuple[Attempt, ...] = ()
    retrying: RetryingSubscription | None = None


class WebSubService:
    def __init__(
        self,
        storage: Storage,
        wake_verifier: Callable[[], None],
        pings: PingQueue,
        clock: Clock,
        *,
        policy: OpenHub,
        public_url: str,
        shortest_lease: int = SHORTEST_LEASE,
    ) -> None:
        self._storage = storage
        self._wake_verifier = wake_verifier
        self._pings = pings
        self._clock = clock
        self.policy = policy
        self._public_url = public_url
        self._local_topics = LocalTopics(public_url)
        self.shortest_lease = shortest_lease

    async def request(
        self, request: SubscribeRequest | UnsubscribeRequest, asker: str = ""
    ) -> str:
        """Store a request; returns the URL of its diagnostics. Nothing is decided yet.

        ``asker``: the address that the request came from, if known. Raises `HubClosed`,
        `TooManyWaiting`, and `InvalidValue` for a track query.
        """
        if self.policy is OpenHub.OFF:
            raise HubClosed
        if is_track_topic(request.topic, self._public_url):
            raise InvalidValue("hub.topic", f"a feed: {NEEDS_ACCOUNT}")
        token = secrets.token_urlsafe(24)
        is_taken = await self._storage.verifications.add(
            replace(_pending(request, token, self._local_topics), asker=asker),
            self._clock.now(),
            most=MOST_PENDING,
            most_of_host=MOST_PENDING_OF_HOST,
            most_of_asker=MOST_PENDING_OF_ASKER,
        )
        if not is_taken:
            raise TooManyWaiting("too many requests are waiting for verification")
        self._wake_verifier()
        return f"{self._public_url}/hub/subscriptions/{token}"

    async def publish(self, request: PublishRequest) -> list[PublishedUrl]:
        """Have the known ones of these topics fetched soon.

        Raises `TooManyWaiting`; and `StorageError` while nothing can be stored: then
        nobody is told that anything will be fetched.
        """
        if self._storage.write_error():
            await self._storage.check()
        pinged = [await self._ping(topic) for topic in request.topics]
        return pinged + [
            PublishedUrl(url=each.url, outcome=PingOutcome.INVALID, reason=each.reason)
            for each in request.refused
        ]

    async def _ping(self, topic: str) -> PublishedUrl:
        """Fetch the feed of a topic soon, and the feeds of parts of the same page."""
        feed = await self._local_topics.find_public(self._storage.feeds, topic)
        parts = await self._storage.feeds.parts(topic, MOST_PARTS)
        outcomes = [self._fetch_soon(each) for each in (feed, *parts) if each]
        seen = next(
            (each for each in outcomes if each is not PingOutcome.NOT_LISTED), None
        )
        if seen is None:
            return PublishedUrl(
                url=topic, outcome=PingOutcome.NOT_LISTED, reason=NOT_LISTED
            )
        return PublishedUrl(url=topic, outcome=seen)

    def _fetch_soon(self, feed: StoredFeed) -> PingOutcome:
        """Have a feed fetched soon. The answer reveals nothing about a private feed."""
        if feed.state in _NEVER_PINGED:
            return PingOutcome.NOT_LISTED
        taken = self._pings.add(feed)
        if taken is PingDecision.REFUSED:
            raise TooManyWaiting("too many topics are waiting to be fetched")
        return PingOutcome.NOT_LISTED if feed.private else _OUTCOMES[taken]

    async def diagnose(self, token: str) -> Diagnosis:
        """A request and its outcome. Raises `NotFound`."""
        verification = await self._storage.verifications.find(token)
        if verification is None:
            raise NotFound("request", "with this token")
        found = None
        if verification.state is VerificationState.VERIFIED:
            found = await self._storage.subscriptions.find(
                verification.account, verification.topic, verification.callback
            )
        if found is None:
            return Diagnosis(verification=verification)
        is_active = found.state is SubscriptionState.ACTIVE
        deliveries = self._storage.deliveries
        return Diagnosis(
            verification=verification,
            subscription=found,
            feed=await self._storage.feeds.get(found.feed_id) if is_active else None,
            attempts=tuple(await deliveries.attempts(found.id, SHOWN_ATTEMPTS)),
            retrying=await deliveries.retrying_subscription(found.id),
        )


def _pending(
    request: SubscribeRequest | UnsubscribeRequest, token: str, own: LocalTopics
) -> NewVerification:
    """The request as it is stored. A page of this hub is subscribed to in the page's
    format, any other topic without a format of its own."""
    if isinstance(request, UnsubscribeRequest):
        return NewVerification(
            account=ANONYMOUS,
            mode=VerificationMode.UNSUBSCRIBE,
            topic=request.topic,
            callback=request.callback,
            token=token,
            verify_token=request.verify_token,
        )
    return NewVerification(
        account=ANONYMOUS,
        mode=VerificationMode.SUBSCRIBE,
        topic=request.topic,
        callback=request.callback,
        token=token,
        lease_seconds=request.lease_seconds,
        secret=request.secret,
        algorithm=request.algorithm,
        format=Format(request.format or own.format(request.topic) or Format.AS_IS),
        verify_token=request.verify_token,
    )
