"""Subscriptions that accounts make, pause and end; the operator is one of them.

`SubscriptionService` has the rules for all accounts. `SuperfeedrService` uses it for
the Superfeedr-compatible API: there the account's token replaces verification of
intent, and a callback is verified only on request, while the request waits (``sync``)
or afterwards (``async``).
"""

from __future__ import annotations

import asyncio
import secrets
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol, Self, TypeVar

from hub.core.status.subscription_explanation import (
    NewBeginning,
    SubscriptionFacts,
    SubscriptionGap,
    advise_on,
    explain_delivery,
    new_beginning,
)
from hub.delivery.digests import DAY
from hub.publishing.local_topics import LocalTopics
from hub.runtime.clock import Clock
from hub.services.feed_registration import FeedService
from hub.services.feed_requests import AddFeed
from hub.services.open_hub_requests import (
    MOST_PENDING,
    MOST_PENDING_OF_ASKER,
    MOST_PENDING_OF_HOST,
    SHOWN_ATTEMPTS,
)
from hub.services.service_errors import (
    Conflict,
    DeliveryUnderWay,
    NotAllowed,
    NotConfirmed,
    ServiceError,
    TooManyWaiting,
)
from hub.services.subscription_gaps import SubscriptionGaps
from hub.services.topic_addresses import (
    AddressCheck,
    TrackTopics,
    check_path,
    format_of,
    read_topic,
)
from hub.websub.callback_challenge import ChallengeReply, Question
from protocols.operational_events import types_of_topic
from protocols.protocol_errors import InvalidValue
from protocols.track import TrackTopic
from protocols.websub.callbacks import read_callback
from protocols.websub.signatures import SIGNINGS, STANDARD_WEBHOOKS_PREFIX
from protocols.websub.websub_parameters import ENDLESS_LEASE, LONGEST_SECRET
from storage.contract import Storage
from storage.errors import NotFound, StorageBusy
from storage.records import (
    OPERATOR,
    AccountId,
    AccountRequest,
    Attempt,
    DeadLetter,
    DeliveryLag,
    Format,
    NewSubscription,
    NewVerification,
    Position,
    RetryingSubscription,
    SelectedSubscription,
    StoredFeed,
    Subscription,
    SubscriptionCondition,
    SubscriptionId,
    SubscriptionState,
    UndeliveredFilter,
    Updates,
    Verification,
    VerificationMode,
)


class Verify(StrEnum):
    """When the callback is asked: before the answer, or after it."""

    SYNC = "sync"
    ASYNC = "async"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRequest:
    """An account's request to subscribe to a topic, or to end that subscription.

    Its callback may be asked about it (`hub.websub.callback_challenge.Question`).
    """

    topic: str
    callback: str = ""  # "" to end the account's only subscription
    mode: VerificationMode = VerificationMode.SUBSCRIBE
    account: AccountId = OPERATOR
    secret: str = ""
    algorithm: str = "sha256"
    format: Format | None = Format.JSON  # None: the format that suits the topic
    updates: Updates = Updates.FRESH
    batch: bool = False
    has_digest: bool = False
    is_silent: bool = False  # listed like any other, but never notified
    shown: tuple[tuple[str, str], ...] = ()  # further parameters, for the publisher
    headers: tuple[tuple[str, str], ...] = ()  # of the request, for the publisher
    verify: Verify | None = None
    verify_token: str = ""

    @property
    def lease_seconds(self) -> int:
        return ENDLESS_LEASE

    def as_verification(self, token: str) -> NewVerification:
        """The request as it is stored until its callback is asked; see
        `from_verification`."""
        return NewVerification(
            account=self.account,
            mode=self.mode,
            topic=self.topic,
            callback=self.callback,
            token=token,
            lease_seconds=self.lease_seconds,
            secret=self.secret,
            algorithm=self.algorithm,
            verify_token=self.verify_token,
            asker=f"account {self.account}",
            account_request=AccountRequest(
                format=self.format,
                has_digest=self.has_digest,
                shown=self.shown,
                headers=self.headers,
            ),
        )

    @classmethod
    def from_verification(cls, stored: Verification) -> Self:
        wanted = stored.account_request or AccountRequest(format=stored.format)
        return cls(
            mode=stored.mode,
            account=stored.account,
            topic=stored.topic,
            callback=stored.callback,
            secret=stored.secret,
            algorithm=stored.algorithm,
            format=wanted.format,
            has_digest=wanted.has_digest,
            shown=wanted.shown,
            headers=wanted.headers,
            verify=Verify.ASYNC,
            verify_token=stored.verify_token,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionMade:
    """A new subscription. ``new_secret``: the secret that the hub made for it; "" if
    none."""

    subscription: Subscription
    feed: StoredFeed
    is_new: bool
    new_secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionReport:
    """A subscription, its last attempts newest first, and what it waits for.

    ``explanation`` says in words what the hub does about it, and ``advice`` what
    somebody may do. At most `SHOWN_LAG` records of the ``lag`` are counted. ``gap``:
    what it did not get. ``new_beginning``: None unless it has ended.
    """

    subscription: Subscription
    condition: SubscriptionCondition
    explanation: str
    advice: tuple[str, ...]
    lag: DeliveryLag
    attempts: tuple[Attempt, ...]
    retrying: RetryingSubscription | None
    dead_letters: tuple[DeadLetter, ...]
    gap: SubscriptionGap | None = None
    new_beginning: NewBeginning | None = None


ReplayStart = datetime | Position
"""Where a replay begins: at a time, with the records found from then on, or at a
record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotatedSecret:
    """``new_secret``: the secret that the hub made; "" if one was given."""

    subscription: Subscription
    new_secret: str


SECRET_BYTES: Final = 32
"""Standard Webhooks: "between 24 bytes (192 bits) and 64 bytes (512 bits)"."""


def make_secret() -> str:
    """A new secret in the form of Standard Webhooks."""
    key = b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
    return f"{STANDARD_WEBHOOKS_PREFIX}{key}"


SHOWN_DEAD_LETTERS: Final = 100
SHOWN_LAG: Final = 10_000


class PublisherRefusals(Protocol):
    """The part of `hub.websub.publisher_validation.PublisherValidation` that is needed
    here."""

    async def refusal(
        self,
        feed: StoredFeed,
        parameters: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> str: ...


class SubscriptionService:
    def __init__(
        self,
        storage: Storage,
        feeds: FeedService,
        addresses: AddressCheck,
        clock: Clock,
        tracks: TrackTopics,
        local_topics: LocalTopics | None = None,
        publishers: PublisherRefusals | None = None,
        secret_overlap: timedelta = timedelta(0),
    ) -> None:
        """``publishers`` None: publishers are not asked. ``secret_overlap``: for how
        long a replaced secret signs as well."""
        self._storage = storage
        self._gaps = SubscriptionGaps(storage)
        self._feeds = feeds
        self._addresses = addresses
        self._clock = clock
        self._tracks = tracks
        self._local_topics = local_topics or LocalTopics()
        self._publishers = publishers
        self._secret_overlap = secret_overlap

    async def add(
        self, request: SubscriptionRequest, *, prefix: str = ""
    ) -> SubscriptionMade:
        """Subscribe for an account, without end, and without asking the callback.

        A topic that nobody has added becomes a private feed. Its first document is
        fetched before, so that the subscriber is told only of new entries. A feed with
        credentials is for the operator only: for other accounts its topic counts as one
        that nobody has added. A feed that was given up is polled again. A track query
        has no document of its own. Raises `InvalidValue`, `AddressRefused` and
        `NotAllowed`, which name the field with the ``prefix`` that it has in the
        request.
        """
        self.check(request, prefix=prefix)
        callback = read_callback(request.callback, f"{prefix}callback")
        if not request.is_silent:
            await self._addresses.check_callback(f"{prefix}callback", callback)
        field = f"{prefix}topic"
        wanted = self._tracks.read(request.topic)
        feed = await self._feed_behind(request.topic, request.account, field)
        topic = read_topic(field, request.topic).url
        if wanted is None:
            await self._ask_publisher(request, feed, field)
        known = await self._storage.subscriptions.find(request.account, topic, callback)
        now = self._clock.now()
        new = NewSubscription(
            account=request.account,
            topic=topic,
            feed_id=feed.id,
            callback=callback,
            secret=request.secret,
            algorithm=request.algorithm,
            format=self._format(request, wanted),
            updates=request.updates,
            batch=request.batch,
            is_silent=request.is_silent,
            former_until=now + self._secret_overlap,
        )
        subscription = await self._storage.subscriptions.add(new, now)
        return SubscriptionMade(
            subscription=subscription, feed=feed, is_new=known is None
        )

    async def subscribe_again(
        self, subscription_id: SubscriptionId, *, account: AccountId | None = None
    ) -> SelectedSubscription:
        """Have a subscription that has ended begin anew, from now on and without end:
        with its callback, topic, format and secret.

        Raises `NotFound`, also if it belongs to another account than the given one,
        `Conflict` if it has not ended or only its subscriber can ask for it, and what
        `add` raises.
        """
        found = await self._existing(subscription_id, account)
        if not _is_over(found):
            raise Conflict(f"subscription {found.id} has not ended")
        if refusal := new_beginning(found).refusal:
            raise Conflict(refusal)
        end = await self._storage.log.end()
        made = await self.add(
            SubscriptionRequest(
                topic=found.topic,
                callback=found.callback,
                account=found.account,
                secret=found.secret,
                algorithm=found.algorithm,
                format=found.format,
                updates=found.updates,
                batch=found.batch,
                is_silent=found.from_position > end.position,
            )
        )
        return await self._selected(made.subscription)

    async def present_secret(
        self, account: AccountId, topic: str, callback: str
    ) -> str:
        """The secret of the active subscription; "" if there is none."""
        found = await self._storage.subscriptions.find(account, topic, callback)
        is_active = found is not None and found.state is SubscriptionState.ACTIVE
        return found.secret if found is not None and is_active else ""

    async def edit(
        self, subscription: Subscription, change: SubscriptionChange
    ) -> Subscription:
        """Change how a callback is notified; its place in the log stays.

        A new secret replaces the former one, which signs as well for a while. Raises
        `Conflict` and `InvalidValue`.
        """
        if subscription.state is not SubscriptionState.ACTIVE:
            raise _has_ended(subscription.id)
        if types_of_topic(subscription.topic):
            change.check_of_events()
        request = SubscriptionRequest(
            topic=subscription.topic,
            callback=subscription.callback,
            account=subscription.account,
            secret=_given(change.secret, subscription.secret),
            algorithm=_given(change.algorithm, subscription.algorithm),
            format=_given(change.format, subscription.format),
            updates=_given(change.updates, subscription.updates),
            batch=_given(change.batch, subscription.batch),
        )
        check_signing(request.algorithm, request.secret)
        now = self._clock.now()
        new = NewSubscription(
            account=subscription.account,
            topic=subscription.topic,
            feed_id=subscription.feed_id,
            callback=subscription.callback,
            secret=request.secret,
            algorithm=request.algorithm,
            format=self._format(request, self._tracks.read(request.topic)),
            updates=request.updates,
            batch=request.batch,
            former_until=now + self._secret_overlap,
        )
        edited = await self._storage.subscriptions.edit(subscription.id, new, now)
        if edited is None:  # it ended meanwhile
            raise _has_ended(subscription.id)
        return edited

    def check(self, request: SubscriptionRequest, *, prefix: str = "") -> None:
        """Raise `InvalidValue` if something is wrong with the request itself."""
        callback = read_callback(request.callback, f"{prefix}callback")
        if self._local_topics.owns(callback) and not request.is_silent:
            raise InvalidValue(f"{prefix}callback", "a URL outside this hub")
        check_signing(request.algorithm, request.secret, prefix)
        if self._tracks.read(request.topic) is None:
            field = f"{prefix}topic"
            check_path(field, read_topic(field, request.topic).url)

    def _format(
        self, request: SubscriptionRequest, wanted: TrackTopic | None
    ) -> Format:
        """The format of a subscription. If none is requested, it is that of the page of
        this hub, or else the one that suits the topic."""
        if wanted is not None:
            return format_of(wanted, request.format)
        return (
            request.format
            or self._local_topics.format(request.topic)
            or Format.BY_TOPIC
        )

    async def _ask_publisher(
        self, request: SubscriptionRequest, feed: StoredFeed, field: str
    ) -> None:
        """Ask the publisher, unless the operator subscribes; raises `NotAllowed`."""
        if self._publishers is None or request.account == OPERATOR:
            return
        parameters = {
            **dict(request.shown),
            "hub.mode": "subscribe",
            "hub.topic": request.topic,
            "hub.callback": request.callback,
        }
        headers = dict(request.headers)
        if reason := await self._publishers.refusal(feed, parameters, headers):
            raise NotAllowed(field, reason)

    async def get(
        self,
        subscription_id: SubscriptionId,
        *,
        account: AccountId | None = None,
        most_attempts: int = SHOWN_ATTEMPTS,
    ) -> SubscriptionReport:
        """A report on a subscription. Raises `NotFound`, also if it belongs to another
        account than the given one."""
        found = await self._existing(subscription_id, account)
        deliveries, whose = self._storage.deliveries, found.id
        [condition] = await self._storage.subscription_selections.conditions([whose])
        dead_letters = await deliveries.dead_letters(
            after=0,
            limit=SHOWN_DEAD_LETTERS,
            wanted=UndeliveredFilter(subscription_id=whose),
        )
        attempts = await deliveries.attempts(whose, most_attempts)
        facts = SubscriptionFacts(
            subscription=found,
            health=condition.health,
            retrying=await deliveries.retrying_subscription(whose),
            lag=await deliveries.lag(whose, SHOWN_LAG),
            dead_letter=dead_letters[-1] if dead_letters else None,
            took=attempts[0].milliseconds / 1_000 if attempts else None,
            is_refused=bool(attempts and attempts[0].error),
            gap=await self._gaps.of(found),
        )
        return SubscriptionReport(
            subscription=found,
            condition=condition,
            explanation=explain_delivery(facts, self._clock.now()),
            advice=advise_on(facts),
            lag=facts.lag,
            attempts=tuple(attempts),
            retrying=facts.retrying,
            dead_letters=tuple(dead_letters),
            gap=facts.gap,
            new_beginning=new_beginning(found) if _is_over(found) else None,
        )

    async def replay(
        self,
        subscription_id: SubscriptionId,
        start: ReplayStart,
        *,
        account: AccountId | None = None,
    ) -> DeliveryLag:
        """Send its callback everything in the log from ``start`` on once more, in
        order, and then new records; returns what it is now behind by.

        Raises `NotFound`, also if it belongs to another account than the given one;
        `Conflict` if it has ended or is never notified, `DeliveryUnderWay` if it is
        being sent something; and `SubscriptionPaused`.
        """
        found = await self._existing(subscription_id, account)
        if found.state is not SubscriptionState.ACTIVE:
            raise _has_ended(found.id)
        if found.from_position > (await self._storage.log.end()).position:
            raise Conflict("the callback of this subscription is never notified")
        if isinstance(start, datetime):
            after = await self._storage.log.last_before(found.feed_id, start)
        else:
            after = Position(start - 1)
        deliveries = self._storage.deliveries
        try:
            await deliveries.replay(found.id, after, self._clock.now())
        except StorageBusy as error:
            raise DeliveryUnderWay from error
        return await deliveries.lag(found.id, SHOWN_LAG)

    async def rotate_secret(
        self,
        subscription_id: SubscriptionId,
        secret: str = "",
        *,
        account: AccountId | None = None,
    ) -> RotatedSecret:
        """Sign with another secret from now on. The hub makes it unless one is given;
        the former secret signs as well for a while.

        Raises `NotFound`, also if the subscription belongs to another account than the
        given one, `Conflict` and `InvalidValue`.
        """
        found = await self._existing(subscription_id, account)
        new_secret = "" if secret else make_secret()
        edited = await self.edit(found, SubscriptionChange(secret=secret or new_secret))
        return RotatedSecret(subscription=edited, new_secret=new_secret)

    async def remove(
        self,
        subscription_id: SubscriptionId,
        *,
        tell: bool,
        account: AccountId | None = None,
    ) -> Subscription:
        """End a subscription; ``tell``: its callback gets a denial.

        Raises `NotFound`, also if it belongs to another account than the given one.
        """
        who = "the operator" if account in (None, OPERATOR) else "the subscriber"
        await self._existing(subscription_id, account)
        return await self._storage.subscriptions.end(
            subscription_id, f"ended by {who}", self._clock.now(), tell=tell
        )

    async def pause(
        self, subscription_id: SubscriptionId, *, account: AccountId | None = None
    ) -> SelectedSubscription:
        """Send nothing to the callback of a subscription; it keeps its place in the
        log.

        Raises `NotFound`, also if it belongs to another account than the given one, and
        `Conflict` if it has ended.
        """
        change = self._storage.subscriptions.pause
        return await self._change(subscription_id, account, change)

    async def resume(
        self, subscription_id: SubscriptionId, *, account: AccountId | None = None
    ) -> SelectedSubscription:
        """Send its callback the records that it lacks, in order, and then new ones.

        Raises the same errors as `pause`.
        """
        change = self._storage.subscriptions.resume
        return await self._change(subscription_id, account, change)

    async def _change(
        self,
        subscription_id: SubscriptionId,
        account: AccountId | None,
        change: Callable[[SubscriptionId, datetime], Awaitable[bool]],
    ) -> SelectedSubscription:
        found = await self._existing(subscription_id, account)
        if not await change(found.id, self._clock.now()):
            raise _has_ended(found.id)
        return await self._selected(found)

    async def _selected(self, found: Subscription) -> SelectedSubscription:
        [condition] = await self._storage.subscription_selections.conditions([found.id])
        return SelectedSubscription(subscription=found, condition=condition)

    async def _existing(
        self, subscription_id: SubscriptionId, account: AccountId | None
    ) -> Subscription:
        found = await self._storage.subscriptions.get(subscription_id)
        if found is None or account not in (None, found.account):
            raise NotFound("subscription", subscription_id)
        return found

    async def _feed_behind(
        self, topic: str, account: AccountId, field: str
    ) -> StoredFeed:
        tracked = await self._tracks.ensure(topic, account)
        return tracked or await self._fetched_feed(topic, account, field)

    async def _fetched_feed(
        self, topic: str, account: AccountId, field: str
    ) -> StoredFeed:
        address = read_topic(field, topic)
        url = address.url
        is_operator = account == OPERATOR
        if address.credentials is not None and not is_operator:
            raise InvalidValue(field, "a URL without credentials")
        find = self._feeds.find if is_operator else self._feeds.find_open
        known = await find(url)
        if known is None:
            new = AddFeed(
                url=topic, private=True, as_anybody=not is_operator, is_exact=False
            )
            known = (await self._feeds.add(new, field=field)).feed
        if known.state.is_stopped:
            return await self._feeds.resume(known.id)
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionChange:
    """How a callback is notified from now on. None: unchanged; ``secret`` "": no
    secret."""

    secret: str | None = None
    algorithm: str | None = None
    format: Format | None = None
    updates: Updates | None = None
    batch: bool | None = None

    def check_of_events(self) -> None:
        """Raise `InvalidValue` for fields that a subscription to events does not
        have."""
        for field in ("format", "updates", "batch"):
            if getattr(self, field) is not None:
                raise InvalidValue(field, "nothing: events have one form only")


_Value = TypeVar("_Value")


def _given(value: _Value | None, before: _Value) -> _Value:
    return before if value is None else value


def check_signing(algorithm: str, secret: str, prefix: str = "") -> None:
    """Raise `InvalidValue` if the algorithm is unknown, or does not go with the
    secret."""
    if algorithm not in SIGNINGS:
        expected = f"one of {', '.join(SIGNINGS)}"
        raise InvalidValue(f"{prefix}algorithm", expected, algorithm)
    if len(secret.encode()) > LONGEST_SECRET:
        raise InvalidValue(f"{prefix}secret", f"at most {LONGEST_SECRET} bytes")


CONFIRM_SECONDS: Final = 25.0
"""Seconds for which the answer to a request waits for the answer of its callback."""
MOST_WAITING_OF_ACCOUNTS: Final = 1_000
"""Requests of accounts that may wait for their callbacks, besides those of the open
hub, so that strangers cannot take this room from accounts."""
PREFIX: Final = "hub."
"""The prefix of parameter names in errors."""
_NULL_DEVICES: Final = ("push.superfeedr.com/dev/null", "superfeedr.com/dev/null")


class ChallengeSender(Protocol):
    """The part of `hub.websub.callback_challenge.CallbackChallenges` that is needed
    here."""

    async def ask(
        self, verification: Question, *, tells_callback: bool = False
    ) -> ChallengeReply: ...


def is_null_device(callback: str, public_url: str) -> bool:
    """Whether it is the callback that receives nothing, for clients that only retrieve
    or stream: Superfeedr's, or that of the hub at ``public_url``."""
    own = public_url.partition("://")[2]
    return callback.partition("://")[2] in (*_NULL_DEVICES, f"{own}/dev/null")


class SuperfeedrService:
    def __init__(
        self,
        storage: Storage,
        subscriptions: SubscriptionService,
        asker: ChallengeSender,
        clock: Clock,
        public_url: str,
        wake_verifier: Callable[[], None],
    ) -> None:
        self._storage = storage
        self._subscriptions = subscriptions
        self._asker = asker
        self._clock = clock
        self._public_url = public_url
        self._wake_verifier = wake_verifier
        self.confirm_seconds = CONFIRM_SECONDS

    async def subscribe(self, request: SubscriptionRequest) -> SubscriptionMade | None:
        """Subscribe now; or have the callback asked first, and return None, and then
        the callback's answer decides.

        Raises `InvalidValue`, `AddressRefused`, `NotAllowed`, `NotConfirmed` and
        `TooManyWaiting`.
        """
        request = self._silenced(request)
        self._subscriptions.check(request, prefix=PREFIX)
        if await self._is_put_off(request):
            return None
        await self._confirm(request)
        return await self._make(request)

    async def unsubscribe(self, request: SubscriptionRequest) -> bool:
        """End a subscription; False if the callback is asked first.

        It is no error if the subscription has ended or never existed, since a client
        that starts anew does not know that. Raises the same errors as `subscribe`, and
        `InvalidValue` if there are several and no callback is given.
        """
        request = self._silenced(request)
        found = await self._find(request)
        if request.verify is not None and not request.callback:
            raise InvalidValue("hub.callback", "the callback to verify")
        if await self._is_put_off(request):
            return False
        await self._confirm(request)
        if found is not None and found.state is SubscriptionState.ACTIVE:
            await self._storage.subscriptions.end(
                found.id, "ended by the subscriber", self._clock.now(), tell=False
            )
        return True

    async def grant(self, verification: Verification) -> str:
        """Make the subscription that a callback has confirmed. Returns why it cannot be
        made, or "". Raises `StorageError`."""
        request = SubscriptionRequest.from_verification(verification)
        try:
            await self._make(self._silenced(request))
        except (InvalidValue, ServiceError) as error:
            return str(error)
        return ""

    def _silenced(self, request: SubscriptionRequest) -> SubscriptionRequest:
        is_silent = is_null_device(request.callback, self._public_url)
        return replace(request, is_silent=is_silent)

    async def _make(self, request: SubscriptionRequest) -> SubscriptionMade:
        made = await self._subscriptions.add(request, prefix=PREFIX)
        has_digest = request.has_digest and not request.is_silent
        if has_digest or not made.is_new:
            due = self._clock.now() + DAY if has_digest else None
            await self._storage.digests.set(made.subscription.id, due)
        return made

    async def _find(self, request: SubscriptionRequest) -> Subscription | None:
        """The subscription that is meant, even if it has ended; None if there never was
        one.

        Raises `InvalidValue` if there are several and no callback is given.
        """
        subscriptions = self._storage.subscriptions
        if request.callback:
            return await subscriptions.find(
                request.account, request.topic, request.callback
            )
        several = await subscriptions.page(
            after=SubscriptionId(0),
            limit=2,
            account=request.account,
            topic=request.topic,
        )
        if len(several) > 1:
            raise InvalidValue(
                "hub.callback", "a callback that is subscribed to this topic"
            )
        return several[0] if several else None

    async def _is_put_off(self, request: SubscriptionRequest) -> bool:
        """Store the request if its callback is asked later; returns whether that is so.
        It is stored before the answer, so that an accepted request outlives a crash."""
        if request.verify is not Verify.ASYNC or request.is_silent:
            return False
        is_taken = await self._storage.verifications.add(
            request.as_verification(secrets.token_urlsafe(24)),
            self._clock.now(),
            most=MOST_PENDING + MOST_WAITING_OF_ACCOUNTS,
            most_of_host=MOST_PENDING_OF_HOST + MOST_WAITING_OF_ACCOUNTS,
            most_of_asker=None
            if request.account == OPERATOR
            else MOST_PENDING_OF_ASKER,
        )
        if not is_taken:
            raise TooManyWaiting("too many verifications are waiting")
        self._wake_verifier()
        return True

    async def _confirm(self, request: SubscriptionRequest) -> None:
        if request.verify is None or request.is_silent:
            return
        try:
            async with asyncio.timeout(self.confirm_seconds):
                reply = await self._asker.ask(request, tells_callback=True)
        except TimeoutError:
            raise NotConfirmed(request.callback, "ETIMEDOUT") from None
        if not reply.is_confirmed:
            reason = "" if reply.last.status else reply.last.reason
            raise NotConfirmed(request.callback, reason)


def _is_over(subscription: Subscription) -> bool:
    return subscription.state in (SubscriptionState.ENDING, SubscriptionState.ENDED)


def _has_ended(subscription_id: SubscriptionId) -> Conflict:
    return Conflict(f"subscription {subscription_id} has ended; subscribe again")
