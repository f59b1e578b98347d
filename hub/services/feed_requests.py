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
"""Seconds a caller may wait for a fetch; the fetch itself goes on."""
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
"""Headers by which a request is framed, or made conditional: the hub sets them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFeed:
    url: str
    private: bool = False
    as_anybody: bool = False  # fetched without the credentials the hub has
    is_exact: bool = True  # a known feed that is not as it is to be is a conflict
    category: str = ""
    title: str = ""  # until it has its own
    description: str = ""  # as well
    credentials: Credentials | None = None
    publish_secret: str = ""  # what its publisher signs pings with content with
    subscription_callback: str | None = None  # asked about subscriptions; "": nobody
    wait: float = LONGEST_WAIT  # seconds; 0: do not wait for the first fetch
    discover: bool = False  # of a page, add the feed that it names, or its site
    kind: LookupKind = LookupKind.ANY  # of what is discovered

    def check(self) -> None:
        """Raises `InvalidValue`."""
        _check_publish_secret(self.publish_secret)
        _check_names(self.category, self.title, self.description)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFeed:
    """What to change. None: unchanged. Empty credentials: from now on the feed takes
    none."""

    url: str | None = None  # where it is from now on
    own_period: float | None = None  # seconds between polls; 0: as it is planned
    private: bool | None = None
    category: str | None = None
    credentials: Credentials | None = None
    publish_secret: str | None = None  # "": none
    subscription_callback: str | None = None  # "": nobody is asked

    def check(self) -> None:
        """Raises `InvalidValue`."""
        _check_publish_secret(self.publish_secret or "")
        _check_names(self.category or "")
        period = self.own_period
        if period and not SHORTEST_PERIOD <= period <= LONGEST_PERIOD:
            expected = f"0, or {SHORTEST_PERIOD:g} to {LONGEST_PERIOD:g} seconds"
            raise InvalidValue("own_period", expected)

    def change_of(self, feed: StoredFeed) -> FeedChange:
        """What is to be stored. Raises `InvalidValue`: credentials make a feed private.

        A feed that becomes private ends the subscriptions of strangers, who were
        admitted because it was public. Accounts keep theirs, since a private feed is
        open to those who subscribe to it. Credentials end those of everybody but the
        operator.
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
    """``follows``: the consequences, a sentence each, for people."""

    feed: StoredFeed
    follows: tuple[str, ...]
    ended: int  # subscriptions


def consequences(before: StoredFeed, after: StoredFeed, ended: int) -> tuple[str, ...]:
    """The consequences of how a feed is now, as far as that has changed."""
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
    """Raises `InvalidValue`, which names the ``field``."""
    if len(name) > longest or not name.isprintable():
        raise InvalidValue(field, f"at most {longest} printable characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFeed:
    feed: StoredFeed
    is_new: bool


class ImportOutcome(StrEnum):
    """What became of one feed of many that were to be added."""

    ADDED = "added"
    ADDABLE = "addable"  # would have been added, if that had been asked for
    KNOWN = "known"
    UNDECIDED = "undecided"  # a page that names several feeds
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFeed:
    """``feeds`` are those that an undecided page names."""

    url: str
    outcome: ImportOutcome
    reason: str = ""
    feed: StoredFeed | None = None
    feeds: tuple[FeedLink, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshedFeed:
    """``is_fetched`` is False while the server must be left alone, or still answers."""

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
