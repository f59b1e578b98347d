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
        keys: set[tuple[int, str, str]] = set()
        found: list[tuple[datetime, int, ModelVerification]] = []
        for each in self._pending():
            is_due = _due(each) <= milliseconds(now)
            has_turn = each.stored.id not in without and each.host not in without_hosts
            if each.key not in keys and is_due and has_turn:
                found.append((_due(each), each.stored.id, each))
            keys.add(each.key)
        hosts: Counter[str] = Counter()
        chosen = []
        for _, _, each in sorted(found, key=lambda one: one[:2]):
            hosts[each.host] += 1
            if hosts[each.host] <= per_host:
                chosen.append(each.stored)
        return chosen[:limit]

    async def next_due(self) -> datetime | None:
        return min(map(_due, self._pending()), default=None)

    async def retry(
        self, verification_id: int, last: VerificationTry, due: datetime
    ) -> None:
        self._try(verification_id, last, due=milliseconds(due))

    async def finish(
        self,
        verification_id: int,
        state: VerificationState,
        last: VerificationTry,
        *,
        kept_until: datetime,
    ) -> None:
        if self._try(verification_id, last, due=None, state=state, secret=""):
            self._all[verification_id].kept_until = milliseconds(kept_until)

    async def subscribe(
        self,
        verification_id: int,
        new: NewSubscription,
        last: VerificationTry,
        *,
        kept_until: datetime,
    ) -> None:
        feed = await self._feeds.get(new.feed_id)
        if feed is None or feed.state is FeedState.REMOVED:
            raise NotFound("feed", new.feed_id)
        await self._subscriptions.add(new, last.at)
        self._confirm(verification_id, last, kept_until)

    async def unsubscribe(
        self,
        verification_id: int,
        subscription_id: SubscriptionId,
        last: VerificationTry,
        *,
        kept_until: datetime,
    ) -> None:
        await self._subscriptions.end(
            subscription_id, "unsubscribed", last.at, tell=False
        )
        self._confirm(verification_id, last, kept_until)

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
