"""Filters for feeds, subscriptions and deliveries, from a query or a body."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final, TypeVar

import msgspec
from starlette.requests import Request

from hub.core.durations import read_moment
from hub.services.account_subscriptions import ReplayStart
from hub.services.committed_entries import CommittedFilter, EntryCursor
from hub.services.token_authentication import TokenService
from hub.web.authentication import own_account, principal_of, require
from hub.web.operation import PAGE, Parameter
from hub.web.request_input import (
    LARGEST_ID,
    LARGEST_PAGE,
    RequestBody,
    query_choice,
    query_flag,
    query_number,
)
from protocols.model import FeedFormat
from protocols.protocol_errors import InvalidValue
from storage.records import (
    ENDED_SUBSCRIPTIONS,
    AccountId,
    AttemptFilter,
    AttemptRange,
    FeedFilter,
    FeedHealth,
    FeedId,
    FeedSort,
    ListPlace,
    Position,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionId,
    SubscriptionSort,
    TokenScope,
    UndeliveredFilter,
    UndeliveredOutcome,
)

LEAST_TEXT: Final = 3
"""The fewest characters that can be searched for: no index covers fewer."""
LONGEST_TEXT: Final = 500
AGE: Final = "an age such as 7d or 12h, or a time such as 2026-11-21T10:00Z"

Health = TypeVar("Health", FeedHealth, SubscriptionHealth)
Sort = TypeVar("Sort", FeedSort, SubscriptionSort)

_STATES_OF_FEEDS: Final[Mapping[str, tuple[FeedHealth, ...]]] = {
    **{each.value: (each,) for each in FeedHealth},
    "active": (FeedHealth.OK, FeedHealth.PUSHED, FeedHealth.SLOW, FeedHealth.FAILING),
    "dead": (FeedHealth.GONE,),
}
OVER: Final = "over"
"""The name of all states of subscriptions that have ended."""
_STATES_OF_SUBSCRIPTIONS: Final[Mapping[str, tuple[SubscriptionHealth, ...]]] = {
    **{each.value: (each,) for each in SubscriptionHealth},
    OVER: ENDED_SUBSCRIPTIONS,
}

# --- what is asked for ---

Id = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_ID)]
Ids = Annotated[list[Id], msgspec.Meta(min_length=1, max_length=LARGEST_PAGE)]
"""Ids, at least one: an empty list could mean all as well as none."""


class FeedSelection(RequestBody):
    """Which feeds: those that meet every given condition.

    ``since``: in their state since then, or longer; ``within``: no longer than that.
    Either is an age or a time. ``ids``: only these. ``host``: of the URL, without a
    port.
    """

    state: list[str] = msgspec.field(default_factory=list)
    failing: bool = False
    category: str | None = None
    search: str = ""
    since: str = ""
    within: str = ""
    ids: Ids | None = None
    host: str = ""
    format: FeedFormat | None = None

    def filter(self, now: datetime) -> FeedFilter:
        """The filter of these conditions. Raises `InvalidValue`."""
        named = [*self.state, *(["failing"] if self.failing else [])]
        return FeedFilter(
            health=_health(named, _STATES_OF_FEEDS),
            category=self.category,
            text=_checked_text(self.search),
            since=moment_named("since", self.since, now),
            after=moment_named("within", self.within, now),
            ids=tuple(map(FeedId, self.ids or ())),
            host=_checked_host(self.host),
            format=self.format or "",
        )


class SubscriptionSelection(RequestBody):
    """Which subscriptions: those that meet every given condition; see feeds.

    ``account``: by its name.
    """

    state: list[str] = msgspec.field(default_factory=list)
    failing: bool = False
    topic: str | None = None
    callback: str | None = None
    feed: Id | None = None
    account: str = ""
    search: str = ""
    since: str = ""
    within: str = ""
    ids: Ids | None = None

    def filter(self, now: datetime, account: AccountId | None) -> SubscriptionFilter:
        """The filter of these conditions. Raises `InvalidValue`."""
        named = [*self.state, *(["failing"] if self.failing else [])]
        return SubscriptionFilter(
            health=_health(named, _STATES_OF_SUBSCRIPTIONS),
            account=account,
            topic=self.topic,
            callback=self.callback,
            feed_id=None if self.feed is None else FeedId(self.feed),
            text=_checked_text(self.search),
            since=moment_named("since", self.since, now),
            after=moment_named("within", self.within, now),
            ids=tuple(map(SubscriptionId, self.ids or ())),
        )


class DeliverySelection(RequestBody):
    """Which deliveries: those of failed requests that meet every given condition.

    Without a condition: all that callbacks did not get. ``host``: of the callback,
    without a port. ``outcome``: only what was given up, or what is retried.
    """

    status: str = ""
    host: str = ""
    topic: str | None = None
    since: str = ""
    until: str = ""
    subscription: Id | None = None
    outcome: UndeliveredOutcome | None = None

    def filter(self, now: datetime) -> UndeliveredFilter:
        """The filter of these conditions. Raises `InvalidValue`."""
        whose = self.subscription
        return UndeliveredFilter(
            statuses=_statuses(self.status),
            host=_checked_host(self.host),
            topic=self.topic,
            since=moment_named("since", self.since, now),
            until=moment_named("until", self.until, now),
            subscription_id=None if whose is None else SubscriptionId(whose),
            outcome=self.outcome,
        )


async def account_named(request: Request, tokens: TokenService, name: str) -> AccountId:
    """The account that a request names, which only an administrator may for others.

    ``name`` "": the caller's own. Raises `Problem` and `InvalidValue`.
    """
    principal = principal_of(request)
    if not name or name.lower() == principal.account.name:
        return principal.account.id
    require(principal, TokenScope.ADMIN)
    return (await tokens.account("account", name)).id


async def listed_account(
    request: Request, tokens: TokenService, name: str
) -> AccountId | None:
    """The only account whose subscriptions are listed; None: all accounts."""
    if name:
        return await account_named(request, tokens, name)
    return own_account(request)


def _health(
    named: Sequence[str], known: Mapping[str, tuple[Health, ...]]
) -> tuple[Health, ...]:
    for each in named:
        if each not in known:
            raise InvalidValue("state", f"one of {', '.join(known)}", each)
    return tuple(dict.fromkeys(one for each in named for one in known[each]))


def _checked_text(text: str) -> str:
    if text and not LEAST_TEXT <= len(text) <= LONGEST_TEXT:
        raise InvalidValue("search", f"{LEAST_TEXT} to {LONGEST_TEXT} characters")
    return text


_WITH_PORT = re.compile(r"(?:\[[^/]*\]|[^:/]*):[0-9]+")


def _checked_host(text: str) -> str:
    """The host in lower case, an IPv6 address without brackets.

    Raises `InvalidValue` for a port: what is selected may be discarded, so a port is
    not left out silently.
    """
    if _WITH_PORT.fullmatch(text):
        raise InvalidValue(
            "host", "a host without a port, such as you.example (all its ports)", text
        )
    return text.lower().removeprefix("[").removesuffix("]")


def moment_named(field: str, text: str, now: datetime) -> datetime | None:
    if not text:
        return None
    at = read_moment(text, now)
    if at is None:
        raise InvalidValue(field, AGE, text)
    return at


_STATUS = re.compile(r"([1-5])(?:xx|([0-9]{2}))")


def _statuses(text: str) -> tuple[int, int] | None:
    """The first and the last status that ``404``, ``5xx`` or ``none`` stands for.

    None for an empty text. Raises `InvalidValue`.
    """
    if not text:
        return None
    if text == "none":
        return 0, 0
    found = _STATUS.fullmatch(text.lower())
    if found is None:
        raise InvalidValue("status", "a status such as 404, 5xx, or none", text)
    hundred, rest = 100 * int(found[1]), found[2]
    if rest is None:
        return hundred, hundred + 99
    return hundred + int(rest), hundred + int(rest)


# --- queries ---


def _states(names: Iterable[str]) -> Parameter:
    return Parameter(
        name="state",
        help="only those in one of these states; by default all that have not ended",
        choices=tuple(names),
        is_repeated=True,
    )


_COMMON: Final = (
    Parameter(name="failing", help="only failing ones", kind="boolean", default=False),
    Parameter(
        name="search",
        help="only those with this text in an address or title",
        longest=LONGEST_TEXT,
    ),
    Parameter(
        name="since", help=f"only those in their state since then, or longer: {AGE}"
    ),
    Parameter(name="within", help="only those in their state for no longer than that"),
)
_CURSOR: Final = Parameter(
    name="cursor",
    help="cursor of the page before, in the same order",
)


def _sorts(sorts: type[StrEnum]) -> Parameter:
    return Parameter(
        name="sort",
        help="the order; `since`: the longest in their state first; a minus reverses"
        " it",
        choices=tuple(sorts),
    )


FEED_LIST: Final = (
    *PAGE,
    _CURSOR,
    _states(_STATES_OF_FEEDS),
    *_COMMON,
    Parameter(name="category", help='only those of this category; "": without one'),
    Parameter(name="section", help="former name of `category`", is_deprecated=True),
    Parameter(name="host", help="only feeds at this host, without a port"),
    Parameter(
        name="format", help="only feeds of this format", choices=tuple(FeedFormat)
    ),
    _sorts(FeedSort),
)
SUBSCRIPTION_LIST: Final = (
    *PAGE,
    _CURSOR,
    _states(_STATES_OF_SUBSCRIPTIONS),
    *_COMMON,
    Parameter(name="topic", help="only subscriptions to this topic"),
    Parameter(name="callback", help="only subscriptions of this callback"),
    Parameter(
        name="feed",
        help="only subscriptions to this feed, by its id",
        kind="integer",
        least=1,
        largest=LARGEST_ID,
    ),
    Parameter(name="account", help="only subscriptions of this account, by its name"),
    _sorts(SubscriptionSort),
)
DELIVERY_LIST: Final = (
    Parameter(name="status", help="only this status: 404, 5xx, or none for no answer"),
    Parameter(name="host", help="only callbacks at this host, without a port"),
    Parameter(name="topic", help="only subscriptions to this topic"),
    Parameter(name="since", help=f"only requests since then: {AGE}"),
    Parameter(name="until", help=f"only requests before then: {AGE}"),
    Parameter(
        name="subscription",
        help="only this subscription",
        kind="integer",
        least=1,
        largest=LARGEST_ID,
    ),
)
"""Parameters of a list of failed requests."""


def query_feeds(request: Request) -> FeedSelection:
    query = request.query_params
    return FeedSelection(
        state=query.getlist("state"),
        failing=query_flag(request, "failing", False),
        category=query.get("category", query.get("section")),
        search=query.get("search", ""),
        since=query.get("since", ""),
        within=query.get("within", ""),
        host=query.get("host", ""),
        format=query_choice(request, "format", FeedFormat),
    )


def query_subscriptions(request: Request) -> SubscriptionSelection:
    query = request.query_params
    return SubscriptionSelection(
        state=query.getlist("state"),
        failing=query_flag(request, "failing", False),
        topic=query.get("topic"),
        callback=query.get("callback"),
        feed=query_number(request, "feed", 0, LARGEST_ID, least=1) or None,
        account=query.get("account", ""),
        search=query.get("search", ""),
        since=query.get("since", ""),
        within=query.get("within", ""),
    )


def query_deliveries(request: Request) -> DeliverySelection:
    query = request.query_params
    whose = query_number(request, "subscription", 0, LARGEST_ID, least=1)
    return DeliverySelection(
        status=query.get("status", ""),
        host=query.get("host", ""),
        topic=query.get("topic"),
        since=query.get("since", ""),
        until=query.get("until", ""),
        subscription=whose or None,
    )


SENT_LIST: Final = (
    Parameter(name="topic", help="only what the feed of this topic had to tell"),
    Parameter(name="since", help=f"only requests since then: {AGE}"),
    Parameter(name="until", help=f"only requests before then: {AGE}"),
    Parameter(
        name="before",
        help="next of the page before",
        kind="integer",
        least=1,
        largest=LARGEST_ID,
    ),
)


def query_sent(request: Request, now: datetime) -> tuple[AttemptFilter, int | None]:
    """The filter of the query, and the id before which the page begins.

    The id is None for the first page. Raises `InvalidValue`.
    """
    before = query_number(request, "before", 0, LARGEST_ID)
    return query_deliveries(request).filter(now), before or None


class AttemptOutcome(StrEnum):
    DELIVERED = "delivered"  # answered with a 2xx
    FAILED = "failed"


ATTEMPT_LIST: Final = (
    Parameter(
        name="outcome",
        help="only those with this outcome",
        choices=tuple(AttemptOutcome),
    ),
    Parameter(name="since", help=f"only requests since then: {AGE}"),
    Parameter(name="until", help=f"only requests before then: {AGE}"),
    Parameter(
        name="record",
        help="only those that told of this record, as the last one in them",
        kind="integer",
        least=1,
        largest=LARGEST_ID,
    ),
    Parameter(name="before", help="next of the page before"),
)


def query_attempts(request: Request, now: datetime) -> AttemptRange:
    """The attempts that the query asks for. Raises `InvalidValue`."""
    query = request.query_params
    outcome = query_choice(request, "outcome", AttemptOutcome)
    before = read_place(query.get("before", ""))
    record = query_number(request, "record", 0, LARGEST_ID, least=1)
    return AttemptRange(
        position=Position(record) if record else None,
        is_delivered=None if outcome is None else outcome is AttemptOutcome.DELIVERED,
        since=moment_named("since", query.get("since", ""), now),
        until=moment_named("until", query.get("until", ""), now),
        before=before and (before[0], Position(before[1])),
    )


DEFAULT_SPAN: Final = timedelta(minutes=10)
EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
AHEAD: Final = timedelta(days=1)
"""How far ahead of the clock a span may end, since dates may lie in the future."""
SPAN: Final = (
    Parameter(name="since", help=f"from then on, by default ten minutes ago: {AGE}"),
    Parameter(name="until", help=f"before then, by default now: {AGE}"),
)


def query_span(request: Request, now: datetime) -> tuple[datetime, datetime]:
    """Start and end of the span. Raises `InvalidValue`.

    Neither is before `EARLIEST` or later than `AHEAD`, so that the spans beside this
    one are valid times as well.
    """
    query = request.query_params
    until = moment_named("until", query.get("until", ""), now) or now
    until = min(max(until, EARLIEST), now + AHEAD)
    since = moment_named("since", query.get("since", ""), now)
    if since is None:
        return min(now, until) - DEFAULT_SPAN, until
    return min(max(since, EARLIEST), now + AHEAD), until


COMMITTED: Final = (
    Parameter(name="feed", help="only entries of this feed, by its id", kind="integer"),
    Parameter(name="search", help="words of the title, up to 200 characters"),
)
"""Which committed entries are wanted."""


def query_committed(request: Request) -> CommittedFilter:
    """Raises `InvalidValue`."""
    words = request.query_params.get("search", "")
    if len(words) > LONGEST_WORDS:
        raise InvalidValue("search", f"up to {LONGEST_WORDS} characters")
    feed = query_number(request, "feed", 0, LARGEST_ID, least=1)
    return CommittedFilter(
        feed_id=FeedId(feed) if feed else None, words=tuple(words.split())
    )


LONGEST_WORDS: Final = 200
HISTORY_SPAN: Final = (
    Parameter(name="since", help=f"from then on: {AGE}"),
    Parameter(name="until", help=f"before then: {AGE}"),
)


def query_history_span(
    request: Request, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """Start and end of the span of which a history is wanted; None: none is named.
    Raises `InvalidValue`."""
    query = request.query_params
    return (
        moment_named("since", query.get("since", ""), now),
        moment_named("until", query.get("until", ""), now),
    )


def read_start(since: str, record: int | None, now: datetime) -> ReplayStart:
    """The start of a replay, a time or a record. Raises `InvalidValue`."""
    at = moment_named("since", since, now)
    match at, record:
        case datetime(), None:
            return at
        case None, int():
            return Position(record)
    raise InvalidValue("since", f"{AGE}; or a record")


# --- places ---


def query_order(request: Request, first: Sort) -> tuple[Sort, ListPlace | None]:
    """The order of a list, ``first`` by default, and where its page begins.

    Raises `InvalidValue`.
    """
    sort = query_choice(request, "sort", type(first)) or first
    cursor = request.query_params.get("cursor")
    if cursor is not None:
        return sort, _read_cursor(cursor, sort)
    after = query_number(request, "after", 0, LARGEST_ID)
    if after and sort.rising != "id":
        raise InvalidValue("after", "a cursor, not an id, in this order")
    return sort, ListPlace(after) if after else None


def cursor_of(place: ListPlace | None) -> str | None:
    """A place of a list as a cursor for clients; None if there is none."""
    if place is None:
        return None
    packed = msgspec.json.encode((place.id, place.key))
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def id_of(place: ListPlace | None) -> int | None:
    """The ``after`` of the next page of a list ordered by id; None for other orders."""
    return place.id if place is not None and place.key is None else None


_PLACE = re.compile(r"([0-9]{1,15})-([0-9]{1,18})")
_START = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def read_place(text: str) -> tuple[datetime, int] | None:
    """The place where a page of requests begins; None: the first page.

    Raises `InvalidValue`.
    """
    if not text:
        return None
    found = _PLACE.fullmatch(text)
    if found is None:
        raise InvalidValue("before", "next of the page before", text)
    try:
        return _START + int(found[1]) * _MILLISECOND, int(found[2])
    except OverflowError:
        raise InvalidValue("before", "next of the page before", text) from None


def place_of(at: datetime, id: int) -> str:
    """The place where a page of requests ended, as a cursor for clients."""
    return f"{(at - _START) // _MILLISECOND}-{id}"


def query_entry_cursor(request: Request) -> EntryCursor | None:
    """The place where a page of committed entries goes on. Raises `InvalidValue`."""
    raw = request.query_params.get("cursor", "")
    if not raw:
        return None
    found = _ENTRY_CURSOR.fullmatch(raw)
    if found is None:
        raise InvalidValue("cursor", "next of the page before", raw)
    return EntryCursor(Position(int(found[1])), int(found[2]))


def entry_cursor_text(cursor: EntryCursor | None) -> str | None:
    return None if cursor is None else f"{cursor.position}-{cursor.number}"


_ENTRY_CURSOR: Final = re.compile(r"([0-9]{1,18})-([0-9]{1,9})")

_BAD_CURSOR: Final = InvalidValue(
    "cursor", "the cursor of a page of this list, in the same order"
)


def _read_cursor(cursor: str, sort: FeedSort | SubscriptionSort) -> ListPlace:
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        id, key = msgspec.json.decode(packed, type=tuple[int, str | int | None])
        place = ListPlace(id, _read_key(key, sort.rising.value))
    except (ValueError, OverflowError, msgspec.MsgspecError):
        raise _BAD_CURSOR from None
    if not 0 <= id <= LARGEST_ID:
        raise _BAD_CURSOR
    return place


def _read_key(key: str | int | None, sort: str) -> str | datetime | int | None:
    """The key as a value of the order. Raises ValueError if it is of another kind."""
    match sort, key:
        case ("id", None) | ("url", str()) | ("subscribers", int()):
            return key
        case "since", str(time):
            return datetime.fromisoformat(time).astimezone(UTC)
        case _:
            raise ValueError(key)
