"""The result of a fetch, as a value: the answer, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from protocols.model import ParsedFeed
from protocols.protocol_errors import FeedError


class Occasion(StrEnum):
    """Why a fetch was made; shown in the status line."""

    RING = "ring"  # our own schedule
    PING = "ping"  # told from outside


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedRedirect:
    """One redirect that was followed: its status, from and to."""

    status: int
    source: str
    target: str


class Fetched(Struct, frozen=True, kw_only=True):
    """One finished request for a feed, redirects included.

    ``status`` is that of the last answer, 0 when there was none; ``is_unanswered``: and
    one was asked for, of the host of ``url``. ``error`` is "" only
    for a whole 200 or a 304. Headers are as sent, "" when absent. ``body`` is
    decompressed and complete, ``b""`` unless the answer is a 200.
    """

    at: datetime  # when the answer was complete
    started: datetime
    url: str  # of the last request
    instead_of: str = ""  # the URL of a later version of it, which nobody here reads
    status: int
    error: str = ""
    is_lasting: bool = False  # the error: to ask again soon would bring the same
    is_unanswered: bool = False
    redirects: tuple[FollowedRedirect, ...] = ()
    body: bytes = b""
    conditional: bool = False  # validators were sent
    etag: str = ""
    last_modified: str = ""
    content_type: str = ""
    cache_control: str = ""
    expires: str = ""
    date: str = ""
    age: str = ""
    retry_after: str = ""
    rate_limit_reset: str = ""  # X-RateLimit-Reset
    refusal: bytes = b""  # the body of a 429, or its beginning
    link: str = ""
    speaks_openfeeder: bool = False  # X-OpenFeeder
    is_partial: bool = False  # the publisher brought it: perhaps the new entries alone
    is_pushed: bool = False  # a hub of others did: is_partial, and to be held in doubt
    heeds_until: datetime | None = None
    """Of what was pushed: hints up to then are done with. None: of earlier ones some
    are yet to be stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseOutcome:
    """What the parser made of a 200: a feed, or why not. Both None: not parsed.

    ``body_hash``: of its bytes, if that was taken (`hub.core.news.document_bodies`).
    """

    feed: ParsedFeed | None = None
    error: FeedError | None = None
    body_hash: str = ""


NOT_PARSED = ParseOutcome()
