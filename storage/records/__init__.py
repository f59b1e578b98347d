"""What is stored: frozen values, the same for every engine.

Times are aware UTC datetimes with millisecond precision. Positions are dense and
increasing over the whole hub. Packed bodies (``bytes``) are made and read with
`storage.packing`, outside the writer.
"""

from __future__ import annotations

from storage.records.accounts import (
    Account,
    NewToken,
    Right,
    Token,
)
from storage.records.database import (
    Backlog,
    DatabaseStatus,
    Retention,
)
from storage.records.deliveries import (
    Attempt,
    ChunkOutcome,
    ClaimedChunk,
    DeadRange,
    DeliveryFlush,
    Flushed,
    GivenUp,
    Straggler,
    StragglerMoved,
    StragglerOpened,
)
from storage.records.feeds import (
    FEED_REMOVED,
    Credentials,
    DueFeed,
    FeedState,
    FetchTarget,
    HiddenFeeds,
    NewFeed,
    Polling,
    Posting,
    Redirect,
    StoredFeed,
    Validators,
)
from storage.records.identities import (
    ANONYMOUS,
    BEFORE_ALL,
    OPERATOR,
    AccountId,
    EntryId,
    FeedId,
    Position,
    SubscriptionId,
    TokenId,
)
from storage.records.log import (
    Cursor,
    EntryRef,
    EntryWrite,
    FeedTrail,
    FetchCommit,
    Record,
    RecordKind,
    RecordWrite,
    StoredBody,
    StoredEntry,
)
from storage.records.standings import (
    Standing,
    StandingWrite,
)
from storage.records.subscriptions import (
    Format,
    NewSubscription,
    Subscription,
    SubscriptionState,
    Updates,
)
from storage.records.tracking import (
    Matched,
    MatchWrite,
    SourceFeed,
    TrackQuery,
)
from storage.records.verifications import (
    NewVerification,
    Verification,
    VerificationMode,
    VerificationState,
    VerificationTry,
)

__all__ = [
    "ANONYMOUS",
    "BEFORE_ALL",
    "FEED_REMOVED",
    "OPERATOR",
    "Account",
    "AccountId",
    "Attempt",
    "Backlog",
    "ChunkOutcome",
    "ClaimedChunk",
    "Credentials",
    "Cursor",
    "DatabaseStatus",
    "DeadRange",
    "DeliveryFlush",
    "DueFeed",
    "EntryId",
    "EntryRef",
    "EntryWrite",
    "FeedId",
    "FeedState",
    "FeedTrail",
    "FetchCommit",
    "FetchTarget",
    "Flushed",
    "Format",
    "GivenUp",
    "HiddenFeeds",
    "MatchWrite",
    "Matched",
    "NewFeed",
    "NewSubscription",
    "NewToken",
    "NewVerification",
    "Polling",
    "Position",
    "Posting",
    "Record",
    "RecordKind",
    "RecordWrite",
    "Redirect",
    "Retention",
    "Right",
    "SourceFeed",
    "Standing",
    "StandingWrite",
    "StoredBody",
    "StoredEntry",
    "StoredFeed",
    "Straggler",
    "StragglerMoved",
    "StragglerOpened",
    "Subscription",
    "SubscriptionId",
    "SubscriptionState",
    "Token",
    "TokenId",
    "TrackQuery",
    "Updates",
    "Validators",
    "Verification",
    "VerificationMode",
    "VerificationState",
    "VerificationTry",
]
