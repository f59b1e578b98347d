"""Accounts and the tokens that open them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from storage.records.identities import AccountId, TokenId


class Right(StrEnum):
    """What a token lets its holder do; each is given by itself."""

    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    LIST = "list"
    RETRIEVE = "retrieve"  # read topics: live, and what there was
    ADMIN = "admin"  # administer the hub, and act for every account


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who subscriptions belong to."""

    id: AccountId
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    account: str  # its name; an unknown one becomes a new account
    digest: bytes  # SHA-256 of the token, which itself is not stored
    rights: frozenset[Right]
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What opens the API for an account; the token itself is known to its holder."""

    id: TokenId
    account: Account
    rights: frozenset[Right]
    label: str
    created_at: datetime
    used_at: datetime | None  # to the hour or so
    revoked_at: datetime | None
