from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from protocols.urls import normal_url
from storage.errors import NotFound
from storage.records import (
    FeedState,
    NewSubscription,
    NewVerification,
    SubscriptionId,
    Verification,
    VerificationMode,
    VerificationState,
    VerificationTry,
    WorkKind,
)

from .feeds import MemoryFeeds
from .state import State, milliseconds
from .subscriptions import MemorySubscriptions


@dataclass
class ModelVerification:
    stored: Verification
    token: str
    asker: str
    kept_until: datetime | None = None

    @property
    def key(self) -> tuple[int, str, str]:
        each = self.stored
        return each.account, normal_url(each.topic), normal_url(each.callback)

    @property
    def host(self) -> str:
        return urlsplit(self.stored.callback).hostname or ""


class MemoryVerifications:
    def __init__(self, state: State) -> None:
        self._state = state
        self._feeds = MemoryFeeds(state)
        self._subscriptions = MemorySubscriptions(state)
        self._all: dict[int, ModelVerification] = {}

    async def add(
        self,
        new: NewVerification,
        now: datetime,
        *,
        most: int,
        most_of_host: int,
        most_of_asker: int | None = None,
    ) -> bool:
        added = ModelVerification(_stored(new, milliseconds(now)), new.token, new.asker)
        replaced = self._replace(added, new.mode, now)
        pending = self._pending()
        of_host = [each for each in pending if each.host == added.host]
        of_asker = [each for each in pending if each.asker == added.asker]
        is_full = len(pending) >= most or len(of_host) >= most_of_host
        if added.asker and most_of_asker is not None:
            is_full = is_full or len(of_asker) >= most_of_asker
        if is_full and not replaced:
            return False
        number = self._state.next_id("verification")
        added.stored = replace(added.stored, id=number)
        self._all[number] = added
        return True

    def _replace(
        self, added: ModelVerification, mode: VerificationMode, now: datetime
    ) -> bool:
        pending = [each for each in self._pending() if each.key == added.key]
        found = [each for each in pending if each.stored.mode is mode]
        silent = [
            each
            for each in pending
            if each.stored.mode is not mode
            and each.stored.attempts
            and each.stored.due is not None
            and each.stored.due > now
        ]
        for each in found + silent:
            each.stored = replace(
                each.stored,
                due=None,
                secret="",
                state=VerificationState.REPLACED,
            )
            each.kept_until = milliseconds(now) + timedelta(days=1)
        return bool(found)

    def _pending(self) -> list[ModelVerification]:
        return [each for each in self._all.values() if each.stored.due is not None]

    async def due(
        self,
        now: datetime,
        *,
        per_host: int,
        limit: int,
        without: Collection[int] = (),
        without_hosts: Collection[str] = (),
    ) -> list[Verification]:
        found = [
            each
            for each in self.listed(now)
            if each.stored.id not in without and each.host not in without_hosts
        ]
        hosts: Counter[str] = Counter()
        chosen = []
        for each in sorted(found, key=lambda one: (_due(one), one.stored.id)):
            hosts[each.host] += 1
            if hosts[each.host] <= per_host:
                chosen.append(each.stored)
        return chosen[:limit]

    def listed(self, now: datetime) -> list[ModelVerification]:
        """The oldest pending ones of their keys, that are due and of whose key none is
        claimed."""
        keys = {
            each.key
            for number, each in self._all.items()
            if self._state.holds(WorkKind.VERIFICATIONS, number, now)
        }
        found = []
        for each in self._pending():
            if each.key not in keys and _due(each) <= milliseconds(now):
                found.append(each)
            keys.add(each.key)
        return found

    def _ends(self, verification_id: int, lease_id: int) -> bool:
        kind = WorkKind.VERIFICATIONS
        return self._state.end_claim(kind, verification_id, lease_id)

    async def next_due(self) -> datetime | None:
        return min(map(_due, self._pending()), default=None)

    async def retry(
        self,
        verification_id: int,
        last: VerificationTry,
        due: datetime,
        *,
        lease_id: int,
    ) -> bool:
        if not self._ends(verification_id, lease_id):
            return False
        self._try(verification_id, last, due=milliseconds(due))
        return True

    async def finish(
        self,
        verification_id: int,
        state: VerificationState,
        last: VerificationTry,
        *,
        kept_until: datetime,
        lease_id: int,
    ) -> bool:
        if not self._ends(verification_id, lease_id):
            return False
        if self._try(verification_id, last, due=None, state=state, secret=""):
            self._all[verification_id].kept_until = milliseconds(kept_until)
        return True

    async def subscribe(
        self,
        verification_id: int,
        new: NewSubscription,
        last: VerificationTry,
        *,
        kept_until: datetime,
        lease_id: int,
    ) -> bool:
        kind = WorkKind.VERIFICATIONS
        if self._state.claims.get((kind, verification_id), (0,))[0] != lease_id:
            return False
        feed = await self._feeds.get(new.feed_id)
        if feed is None or feed.state is FeedState.REMOVED:
            raise NotFound("feed", new.feed_id)
        await self._subscriptions.add(new, last.at)
        self._confirm(verification_id, last, kept_until)
        return self._ends(verification_id, lease_id)

    async def unsubscribe(
        self,
        verification_id: int,
        subscription_id: SubscriptionId,
        last: VerificationTry,
        *,
        kept_until: datetime,
        lease_id: int,
    ) -> bool:
        if not self._ends(verification_id, lease_id):
            return False
        await self._subscriptions.end(
            subscription_id, "unsubscribed", last.at, tell=False
        )
        self._confirm(verification_id, last, kept_until)
        return True

    def _confirm(
        self, verification_id: int, last: VerificationTry, kept_until: datetime
    ) -> None:
        known = self._all[verification_id]
        if known.stored.state is VerificationState.REPLACED:
            known.stored = replace(known.stored, due=last.at)
        verified = VerificationState.VERIFIED
        if self._try(verification_id, last, due=None, state=verified, secret=""):
            known.kept_until = milliseconds(kept_until)

    def _try(self, verification_id: int, last: VerificationTry, **changes: Any) -> bool:
        known = self._all.get(verification_id)
        if known is None or known.stored.due is None:
            return False
        known.stored = replace(
            known.stored,
            attempts=known.stored.attempts + 1,
            last=replace(last, at=milliseconds(last.at)),
            **changes,
        )
        return True

    async def find(self, token: str) -> Verification | None:
        for each in self._all.values():
            if each.token == token:
                return each.stored
        return None

    async def trim(self, now: datetime, limit: int) -> int:
        over = sorted(
            (each.kept_until, number)
            for number, each in self._all.items()
            if each.kept_until is not None and each.kept_until < milliseconds(now)
        )[:limit]
        for _, number in over:
            del self._all[number]
        return len(over)


def _stored(new: NewVerification, now: datetime) -> Verification:
    return Verification(
        id=0,
        account=new.account,
        mode=new.mode,
        topic=new.topic,
        callback=new.callback,
        lease_seconds=new.lease_seconds,
        secret=new.secret,
        algorithm=new.algorithm,
        format=new.format,
        verify_token=new.verify_token,
        state=VerificationState.PENDING,
        created_at=now,
        attempts=0,
        due=now,
        last=None,
        account_request=new.account_request,
    )


def _due(verification: ModelVerification) -> datetime:
    """When a pending verification is due."""
    assert verification.stored.due is not None
    return verification.stored.due
