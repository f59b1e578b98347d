"""Requests about feeds, and their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hub.core.durations import duration
from hub.sites.feed_finder import LookupKind
from protocols.protocol_errors import FeedLink, InvalidValue
from protocols.websub.websub_parameters import LONGEST_SECRET
from storage.records import Credentials, FeedChange, StoredFeed, SubscriberGroup

LONGEST_WAIT: Final = 20.0
"""Seconds for which a caller may wait for a fetch; the fetch itself goes on."""
LONGEST_CATEGORY: Final = 200
SHORTEST_PERIOD: Final = 1.0
LONGEST_PERIOD: Final = 604_800.0
LONGEST_NAME: Final = 1_000
"""Characters."""
_NO_CREDENTIALS: Final = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "te"),
        *("trailer", "upgrade", "expect", "accept-encoding", "range", "if-range"),
        *("if-none-match", "if-modified-since", "if-match", "if-unmodified-since"),
    }
)
"""Headers that frame a request or make it conditional: only the hub sets them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFeed:
    url: str
    private: bool = False
    as_anybody: bool = False  # fetch without the credentials that the hub has
    is_exact: bool = True  # refuse a known feed that differs
    category: str = ""
    title: str = ""  # used until it has its own
    description: str = ""  # used until it has its own
    credentials: Credentials | None = None
    publish_secret: str = ""  # its publisher signs pings with content with it
    subscription_callback: str | None = None  # is asked about subscriptions; "": none
    wait: float = LONGEST_WAIT  # seconds; 0: do not wait for the first fetch
    discover: bool = False  # add the feed, or site, that a page names
    kind: LookupKind = LookupKind.ANY  # what may be discovered

    def check(self) -> None:
        """Raise `InvalidValue` if a field is wrong."""
        _check_publish_secret(self.publish_secret)
        _check_names(self.category, self.title, self.description)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFeed:
    """What to change. None: unchanged. Empty credentials: from now on the feed has
    none."""

    url: str | None = None  # its new URL
    own_period: float | None = None  # seconds between polls; 0: as planned
    private: bool | None = None
    category: str | None = None
    credentials: Credentials | None = None
    publish_secret: str | None = None  # "": none
    subscription_callback: str | None = None  # "": nobody is asked

    def check(self) -> None:
        """Raise `InvalidValue` if a field is wrong."""
        _check_publish_secret(self.publish_secret or "")
        _check_names(self.category or "")
        period = self.own_period
        if period and not SHORTEST_PERIOD <= period <= LONGEST_PERIOD:
            expected = f"0, or {SHORTEST_PERIOD:g} to {LONGEST_PERIOD:g} seconds"
            raise InvalidValue("own_period", expected)

    def change_of(self, feed: StoredFeed) -> FeedChange:
        """What to store. Raises `InvalidValue`: a feed with credentials cannot be
        public.

        If a feed becomes private, the subscriptions of strangers end, who were admitted
        because it was public. Accounts keep theirs, since a private feed is open to
        those who subscribe to it. New credentials end the subscriptions of everybody
        but the operator.
        """
        given = self.credentials
        is_closed = feed.has_credentials if given is None else given != Credentials()
        if is_closed and self.private is False:
            raise InvalidValue(
                "private", "true, because a feed with credentials is private"
            )
        return FeedChange(
            url=self.url,
            own_period=self.own_period,
            private=True if is_closed else self.private,
            category=self.category,
            credentials=given,
            shuts_out=_shut_out(feed, private=bool(self.private), is_closed=is_closed),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedFeed:
    """An edited feed. ``follows``: the consequences, one sentence each, for people."""

    feed: StoredFeed
    follows: tuple[str, ...]
    ended: int  # how many subscriptions ended


def consequences(before: StoredFeed, after: StoredFeed, ended: int) -> tuple[str, ...]:
    """The consequences of an edit, for the properties of the feed that it has
    changed."""
    return tuple(_consequences(before, after, ended))


def _consequences(before: StoredFeed, after: StoredFeed, ended: int) -> Iterator[str]:
    if after.url != before.url:
        yield (
            "its entries and subscriptions stay, and its former URL"
            f" {before.url} still leads to it"
        )
    if after.own_period != before.own_period:
        period = after.own_period
        yield (
            f"it is polled every {duration(period)}, or as often as FANFARE_MIN_PERIOD"
            " and its server allow"
            if period
            else "it is polled as planned"
        )
    if after.private and not before.private:
        yield (
            "it is private: it leaves the topic pages, collections, lists and search,"
            " and its published pages are withdrawn"
        )
    if before.private and not after.private:
        yield (
            "it is public, including stored entries: it appears in topic pages,"
            " collections, lists, search and track queries"
        )
    if after.has_credentials and not before.has_credentials:
        yield (
            "only the operator can read it; other subscribers get it without"
            " credentials"
        )
    elif after.private and not before.private:
        yield "accounts that subscribe to it can still read it"
    if before.has_credentials and not after.has_credentials:
        yield (
            "it is fetched without credentials, and stays private until you make it"
            " public"
        )
    if ended:
        several = "subscription" if ended == 1 else "subscriptions"
        yield f"{ended} {several} of others ended; their callbacks are told"


def _shut_out(
    feed: StoredFeed, *, private: bool, is_closed: bool
) -> SubscriberGroup | None:
    if is_closed:
        return SubscriberGroup.OTHERS
    return SubscriberGroup.STRANGERS if private and not feed.private else None


def _check_publish_secret(secret: str) -> None:
    if len(secret.encode()) > LONGEST_SECRET:
        raise InvalidValue("publish_secret", f"at most {LONGEST_SECRET} bytes")


def _check_names(category: str, title: str = "", description: str = "") -> None:
    check_name("category", category, LONGEST_CATEGORY)
    check_name("title", title, LONGEST_NAME)
    check_name("description", description, LONGEST_NAME)


def check_name(field: str, name: str, longest: int) -> None:
    """Raise `InvalidValue`, which names the ``field``, for a name that is too long or
    not printable."""
    if len(name) > longest or not name.isprintable():
        raise InvalidValue(field, f"at most {longest} printable characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFeed:
    feed: StoredFeed
    is_new: bool


class ImportOutcome(StrEnum):
    """The outcome for one of many feeds that were to be added."""

    ADDED = "added"
    ADDABLE = "addable"  # it would have been added if this were not a dry run
    KNOWN = "known"
    UNDECIDED = "undecided"  # a page that names several feeds
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFeed:
    """The outcome for one feed. ``feeds``: those that an undecided page names."""

    url: str
    outcome: ImportOutcome
    reason: str = ""
    feed: StoredFeed | None = None
    feeds: tuple[FeedLink, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshedFeed:
    """A feed after a fetch. ``is_fetched`` is False if the server must be left alone,
    or has not answered yet."""

    feed: StoredFeed
    is_fetched: bool


def read_credentials(basic: str, headers: Mapping[str, str]) -> Credentials | None:
    """Credentials from ``basic`` (``user:password``, or "") and headers; None if there
    are neither. Raises `InvalidValue`."""
    if not basic and not headers:
        return None
    username, separator, password = basic.partition(":")
    if basic and not separator:
        raise InvalidValue("basic", "user:password")
    return Credentials(
        username=username, password=password, headers=_checked_headers(headers)
    )


def _checked_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        is_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
        if not is_name:
            raise InvalidValue("headers", "header names of letters, digits and -", name)
        if name.lower() in _NO_CREDENTIALS:
            raise InvalidValue(
                "headers", "a header that the hub does not set itself", name
            )
        if not value.isprintable() or not value.isascii():
            raise InvalidValue("headers", f"printable ASCII as the value of {name}")
    return headers
