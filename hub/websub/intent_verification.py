"""Verification of intent: no subscription begins or ends before its callback agrees.

The topic is examined first, and the callback is asked only about topics that can be
subscribed to.
"""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import Protocol

import msgspec
import structlog
from msgspec.structs import replace

from hub.runtime.clock import Clock
from hub.websub.callback_challenge import CallbackChallenges
from hub.websub.publisher_validation import PublisherValidation, Validator
from hub.websub.topic_admission import TopicAdmission, TopicRefused, TopicUnready
from storage.contract import Storage
from storage.errors import NotFound
from storage.records import (
    FeedId,
    NewSubscription,
    SubscriptionState,
    Verification,
    VerificationMode,
    VerificationState,
    VerificationTry,
)

PAUSES = (10.0, 60.0)
"""Seconds after the first and the second try without an answer; the third is the last.
An answer is final: "other client and server response codes (3xx, 4xx, 5xx)" mean no
(WebSub 5.3). WebSub says nothing about silence, and the subscriber may just be
starting."""
KEPT = timedelta(days=7)
"""How long the result of a request can be looked up; for a subscription, after its
end."""

REMOVED = "the topic was removed from this hub"


class AdmittedTopic(msgspec.Struct, frozen=True):
    """A topic's feed, and where its publisher wants to be asked; None: it is not
    asked."""

    feed_id: FeedId
    validator: Validator | None


Admission = AdmittedTopic | Exception
"""The admission of a topic, or why nobody can subscribe to it now."""

log = structlog.get_logger()


class SuperfeedrGrants(Protocol):
    """The part of `hub.services.account_subscriptions.SuperfeedrService` that is needed
    here."""

    async def grant(self, verification: Verification) -> str: ...


class IntentVerification:
    def __init__(
        self,
        storage: Storage,
        topics: TopicAdmission,
        questions: CallbackChallenges,
        clock: Clock,
        validation: PublisherValidation | None = None,
        accounts: SuperfeedrGrants | None = None,
        secret_overlap: timedelta = timedelta(0),
    ) -> None:
        """``validation`` None: publishers are not asked. ``accounts`` None: there is
        only the anonymous account. ``secret_overlap``: see `_take_over`."""
        self._feeds = storage.feeds
        self._validation = validation
        self._accounts = accounts
        self._verifications = storage.verifications
        self._subscriptions = storage.subscriptions
        self._topics = topics
        self._questions = questions
        self._clock = clock
        self._secret_overlap = secret_overlap

    async def admit(self, topic: str) -> Admission:
        """Examine a topic once for all requests that name it now: see `verify`."""
        try:
            feed_id = await self._topics.admit(topic)
            return AdmittedTopic(feed_id, await self._validator_of(feed_id))
        except Exception as error:
            return error

    async def verify(
        self, verification: Verification, admission: Awaitable[Admission] | None = None
    ) -> None:
        """Process one request as far as possible now.

        It is held under its lease. ``admission``: of its topic, begun after the request
        came in. If `TopicBusy` or `StorageError` is raised, the request stays due.
        """
        if verification.mode is VerificationMode.UNSUBSCRIBE:
            await self._unsubscribe(verification)
        elif verification.account_request is not None:
            await self._grant(verification)
        else:
            admission = admission or self.admit(verification.topic)
            await self._subscribe(verification, admission)

    async def _subscribe(
        self, verification: Verification, admission: Awaitable[Admission]
    ) -> None:
        try:
            admitted = _admitted(await admission)
        except TopicRefused as refused:
            await self._deny(verification, refused.reason)
            return
        except TopicUnready as unready:
            last = VerificationTry(at=self._clock.now(), reason=unready.reason)
            if not await self._try_later(verification, last):
                await self._deny(verification, unready.reason)
            return
        if reason := await self._refusal(verification, admitted.validator):
            await self._deny(verification, reason)
            return
        asked_at = self._clock.now()
        confirmed = await self._ask(verification)
        if confirmed is not None:
            lease_end = asked_at + timedelta(seconds=verification.lease_seconds)
            await self._take_over(verification, admitted.feed_id, lease_end, confirmed)

    async def _grant(self, verification: Verification) -> None:
        """Give an account what its callback confirms.

        The account is not told of a failure: "Async failure: silent" (Superfeedr 1.5).
        """
        confirmed = await self._ask(verification)
        if confirmed is None or self._accounts is None:
            return
        reason = await self._accounts.grant(verification)
        is_denied = bool(reason)
        state = VerificationState.DENIED if is_denied else VerificationState.VERIFIED
        await self._finish(verification, state, replace(confirmed, reason=reason))

    async def _validator_of(self, feed_id: FeedId) -> Validator | None:
        if self._validation is None:
            return None
        feed = await self._feeds.get(feed_id)
        return None if feed is None else await self._validation.validator_of(feed)

    async def _refusal(
        self, verification: Verification, validator: Validator | None
    ) -> str:
        """Why the topic's publisher refuses, "" if it does not: the hub "MAY" validate
        (WebSub 5.2)."""
        if self._validation is None or validator is None:
            return ""
        parameters = {
            "hub.mode": verification.mode.value,
            "hub.topic": verification.topic,
            "hub.callback": verification.callback,
            "hub.lease_seconds": str(verification.lease_seconds),
        }
        return await self._validation.ask(validator, parameters)

    async def _take_over(
        self,
        verification: Verification,
        feed_id: FeedId,
        lease_end: datetime,
        confirmed: VerificationTry,
    ) -> None:
        """Store the subscription. Only now its new secret and lease count; the new
        request may also have no secret.

        When a secret is replaced by another one, the former one signs as well for
        ``secret_overlap`` from now on.
        """
        new = NewSubscription(
            account=verification.account,
            topic=verification.topic,
            feed_id=feed_id,
            callback=verification.callback,
            secret=verification.secret,
            algorithm=verification.algorithm,
            format=verification.format,
            lease_end=lease_end,
            former_until=confirmed.at + self._secret_overlap,
        )
        try:
            is_held = await self._verifications.subscribe(
                verification.id,
                new,
                confirmed,
                kept_until=lease_end + KEPT,
                lease_id=verification.lease_id,
            )
        except NotFound:
            await self._deny(verification, REMOVED)
        else:
            _tell(verification, VerificationState.VERIFIED, confirmed, is_held)

    async def _unsubscribe(self, verification: Verification) -> None:
        known = await self._subscriptions.find(
            verification.account, verification.topic, verification.callback
        )
        if known is None or known.state is not SubscriptionState.ACTIVE:
            last = VerificationTry(at=self._clock.now(), reason="no such subscription")
            await self._finish(verification, VerificationState.NEEDLESS, last)
            return
        confirmed = await self._ask(verification)
        if confirmed is not None:
            is_held = await self._verifications.unsubscribe(
                verification.id,
                known.id,
                confirmed,
                kept_until=confirmed.at + KEPT,
                lease_id=verification.lease_id,
            )
            _tell(verification, VerificationState.VERIFIED, confirmed, is_held)

    async def _ask(self, verification: Verification) -> VerificationTry | None:
        """The answer that confirms; None if there is none, and then that result is
        stored."""
        reply = await self._questions.ask(
            verification, tells_callback=verification.account_request is not None
        )
        if reply.is_confirmed:
            return reply.last
        if reply.is_final or not await self._try_later(verification, reply.last):
            await self._finish(verification, VerificationState.FAILED, reply.last)
        return None

    async def _try_later(
        self, verification: Verification, last: VerificationTry
    ) -> bool:
        """Plan another try; False if there was no try left."""
        if verification.attempts >= len(PAUSES):
            return False
        pause = timedelta(seconds=PAUSES[verification.attempts])
        due = self._clock.now() + pause
        await self._verifications.retry(
            verification.id, last, due, lease_id=verification.lease_id
        )
        return True

    async def _deny(self, verification: Verification, reason: str) -> None:
        """Deny a request: the hub "MUST inform the subscriber" of that (WebSub 5.2)."""
        status = await self._questions.deny(verification, reason)
        last = VerificationTry(at=self._clock.now(), status=status, reason=reason)
        await self._finish(verification, VerificationState.DENIED, last)

    async def _finish(
        self,
        verification: Verification,
        state: VerificationState,
        last: VerificationTry,
    ) -> None:
        is_held = await self._verifications.finish(
            verification.id,
            state,
            last,
            kept_until=last.at + KEPT,
            lease_id=verification.lease_id,
        )
        _tell(verification, state, last, is_held)


def _admitted(admission: Admission) -> AdmittedTopic:
    if isinstance(admission, Exception):
        raise admission
    return admission


def _tell(
    verification: Verification,
    state: VerificationState,
    last: VerificationTry,
    is_held: bool,
) -> None:
    if not is_held:  # it took too long, and was given to somebody else
        log.warning("verification_lost", verification=verification.id)
        return
    tell = log.debug if state is VerificationState.VERIFIED else log.info
    tell(
        "verification_finished",
        verification=verification.id,
        mode=verification.mode.value,
        state=state.value,
        status=last.status,
    )
