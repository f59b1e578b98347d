"""What people and programs did to the hub: the rows of the audit trail."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from storage.records.identities import AccountId, AuditId, TokenId
from storage.records.subscriptions import Account


class AuditSource(StrEnum):
    """The means by which somebody acted."""

    API = "api"
    CLI = "cli"  # the same, asked by what names itself the command
    OPERATOR_PAGES = "pages"
    ACCOUNT_PAGES = "account pages"
    SUPERFEEDR = "superfeedr"


class AuditTarget(StrEnum):
    """What something was done to, where it has an id or an address."""

    FEED = "feed"
    SUBSCRIPTION = "subscription"
    TOKEN = "token"  # noqa: S105 - no password
    PLAN = "plan"
    IMPORT = "import"
    WATCHED_LIST = "watched list"
    DEAD_LETTER = "dead letter"
    CONNECTION = "connection"  # a live one
    PLAYGROUND = "playground"
    CALLBACK = "callback"
    TOPIC = "topic"
    OTHER = "other"


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that somebody did, or tried to do.

    ``account`` is the anonymous one of who failed to log in. ``token`` None: the admin
    token, or none. ``session``: a name of the browser's session; "": there was none.
    ``operation`` is its operationId, whatever it was asked by. ``status`` is that of
    the answer, 0 if the connection was lost before. ``detail`` says what changed, and
    holds no secrets. ``is_admin``: done with all scopes. ``id`` 0: not stored yet.
    """

    at: datetime
    account: Account
    token: TokenId | None = None
    is_admin: bool = False
    session: str = ""
    address: str = ""
    source: AuditSource
    operation: str
    target: AuditTarget | None = None
    target_id: int | None = None
    target_name: str = ""
    status: int
    detail: str = ""
    id: AuditId = AuditId(0)


class AuditRetention(msgspec.Struct, frozen=True, kw_only=True):
    """For how many ``seconds`` records are kept, and how many at most: of
    administrators, and as many again of everybody else."""

    seconds: float = 90 * 86_400.0
    count: int = 100_000


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which records are meant; None: any. ``without`` is an operation whose records are
    not. ``is_done``: whether it was answered below 400. ``until`` is the first moment
    that is not meant any more."""

    account: AccountId | None = None
    token: TokenId | None = None
    operation: str | None = None
    without: str | None = None
    target: AuditTarget | None = None
    target_id: int | None = None
    is_done: bool | None = None
    since: datetime | None = None
    until: datetime | None = None


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """Records, the latest first. ``next``: before which the rest begins; None: there is
    none. Some thousand records are looked at for a page, so that it may be short, and
    even empty, and not the last one."""

    records: tuple[AuditRecord, ...]
    next: tuple[datetime, int] | None
