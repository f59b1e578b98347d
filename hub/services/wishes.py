"""What an account wants of a topic, also while its callback is still to be asked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from protocols.websub.leases import ENDLESS_LEASE
from protocols.websub.signatures import OF_OLD
from storage.records import (
    AccountId,
    AccountWish,
    Format,
    NewVerification,
    Verification,
    VerificationMode,
)


class Verify(StrEnum):
    """Whether the callback is asked: before the answer, or after it."""

    SYNC = "sync"
    ASYNC = "async"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What an account wants of a topic. ``callback`` "": its only subscription's."""

    mode: VerificationMode
    account: AccountId
    topic: str
    callback: str = ""
    secret: str = ""
    algorithm: str = OF_OLD
    format: Format | None = None  # None: what suits the topic
    has_digest: bool = False
    shown: tuple[tuple[str, str], ...] = ()  # further parameters, for the publisher
    headers: tuple[tuple[str, str], ...] = ()  # of the request, for the publisher
    verify: Verify | None = None
    verify_token: str = ""

    @property
    def lease_seconds(self) -> int:
        return ENDLESS_LEASE

    def put_off(self, token: str) -> NewVerification:
        """As it is stored until its callback was asked; see `from_verification`."""
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
            wish=AccountWish(
                format=self.format,
                has_digest=self.has_digest,
                shown=self.shown,
                headers=self.headers,
            ),
        )

    @classmethod
    def from_verification(cls, stored: Verification) -> Self:
        wish = stored.wish or AccountWish(format=stored.format)
        return cls(
            mode=stored.mode,
            account=stored.account,
            topic=stored.topic,
            callback=stored.callback,
            secret=stored.secret,
            algorithm=stored.algorithm,
            format=wish.format,
            has_digest=wish.has_digest,
            shown=wish.shown,
            headers=wish.headers,
            verify=Verify.ASYNC,
            verify_token=stored.verify_token,
        )
