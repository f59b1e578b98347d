"""Verification of intent: requests to the open hub until they are confirmed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from storage.records.identities import AccountId
from storage.records.subscriptions import Format


class VerificationMode(StrEnum):
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"


class VerificationState(StrEnum):
    PENDING = "pending"  # the callback is still to be asked
    VERIFIED = "verified"
    FAILED = "failed"  # the callback did not confirm: nothing was changed
    DENIED = "denied"  # the hub refuses the topic, and has told the callback
    REPLACED = "replaced"  # the same was asked for again before it was verified
    NEEDLESS = "needless"  # nothing was subscribed that could be unsubscribed


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountWish:
    """What an account asks for beside what anybody may.

    ``format`` None: Atom of a feed, else as it is. ``shown``: further parameters of its
    request, for the topic's publisher, and ``headers`` its headers; no secrets.
    """

    format: Format | None = None
    has_digest: bool = False
    shown: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVerification:
    """A request that its callback must confirm before it counts.

    ``wish`` None: to the open hub.
    """

    account: AccountId
    mode: VerificationMode
    topic: str  # as the subscriber spells it, and so the callback
    callback: str
    token: str  # opens the diagnostics of this request; only its hash is stored
    lease_seconds: int = 0
    secret: str = ""
    algorithm: str = "sha256"
    format: Format = Format.AS_IS
    verify_token: str = ""
    wish: AccountWish | None = None
    asker: str = ""  # an address or an account, known while it is pending; "": nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationTry:
    """The last that was done for it. ``status`` 0: no answer of the callback."""

    at: datetime
    status: int = 0
    excerpt: str = ""  # of the answer
    reason: str = ""  # what was wrong, for people


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A request, pending or done, with what became of it."""

    id: int
    account: AccountId
    mode: VerificationMode
    topic: str
    callback: str
    lease_seconds: int
    secret: str  # "" once it is done
    algorithm: str
    format: Format
    verify_token: str
    state: VerificationState
    created_at: datetime
    attempts: int
    due: datetime | None  # the next try; None when it is done
    last: VerificationTry | None
    wish: AccountWish | None = None
