"""What people and programs did to the hub: the rows of the audit trail."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from storage.records.identities import AccountId, AuditId, TokenId
from storage.records.subscriptions import Account


class AuditSource(StrEnum):
    """How somebody acted: the API, the command line, a page, or Superfeedr's
    interface."""

    API = "api"
    CLI = "cli"  # the API, called by a client that names itself the command
    OPERATOR_PAGES = "pages"
    ACCOUNT_PAGES = "account pages"
    SUPERFEEDR = "superfeedr"


class AuditTarget(StrEnum):
    """The kind of thing that was acted upon, if it has an id or an address."""

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

    ``account`` is the anonymous account if a login failed. ``token`` None: the admin
    token, or none. ``session``: a name of the browser's session; "" without one.
    ``operation`` is the operationId, by whatever means it was called. ``status`` is
    that of the answer, 0 if the connection was lost before it. ``detail`` says what
    changed, and holds no secrets. ``is_admin``: done with all scopes. ``id`` 0: not
    stored yet.
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
    """For how many ``seconds`` records are kept, and how many at most: so many of
    administrators, and as many again of everybody else."""

    seconds: float = 90 * 86_400.0
    count: int = 100_000


class AuditOutcome(StrEnum):
    """What came of a request, by the status of its answer."""

    DONE = "done"  # below 400
    REFUSED = "refused"  # 400 to 499: it was not allowed, or not as expected
    FAILED = "failed"  # 500 and above: the hub could not; or the connection was lost

    @classmethod
    def of_status(cls, status: int) -> AuditOutcome:
        if 0 < status < 400:
            return cls.DONE
        return cls.REFUSED if 400 <= status < 500 else cls.FAILED


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which records are wanted; None: any. Records of the operation ``without`` are
    left out. ``until`` is exclusive."""

    account: AccountId | None = None
    token: TokenId | None = None
    session: str | None = None
    source: AuditSource | None = None
    operation: str | None = None
    without: str | None = None
    target: AuditTarget | None = None
    target_id: int | None = None
    outcome: AuditOutcome | None = None
    since: datetime | None = None
    until: datetime | None = None


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """Records, the latest first. ``next``: the place before which the rest begins; None
    if there is no more. A page looks at some thousand records, so it may be short or
    even empty without being the last."""

    records: tuple[AuditRecord, ...]
    next: tuple[datetime, int] | None
