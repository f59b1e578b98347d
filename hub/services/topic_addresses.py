"""A topic's URL as people write it: parsed, checked, and looked up if it is a query.

The check of its addresses only saves people from waiting for a request that would be
refused. The guard that protects works where connections are made, on the very address
that is connected to.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from hub.core.host_set import HostSet
from hub.http.guard import Guard, parse_literal
from hub.http.resolver import LOOKUP_SECONDS, Lookup
from hub.runtime.clock import Clock
from hub.services.service_errors import AddressRefused
from protocols.feeds.document_parts import path_error
from protocols.protocol_errors import InvalidValue
from protocols.track import TrackTopic, canonical, is_track_topic, read_track_topic
from protocols.urls import (
    LONGEST_SELECTOR,
    is_meant_as_path,
    may_take_forever,
    selector_of,
)
from protocols.websub.callbacks import read_web_url
from storage.contract import TrackStore
from storage.records import (
    NOBODY,
    AccountId,
    Credentials,
    FeedState,
    Format,
    StoredFeed,
)

_WITH_CREDENTIALS = re.compile(r"(?P<scheme>[^/?#]*//)(?P<user>[^/?#]*)@(?P<rest>.*)")


@dataclass(frozen=True, slots=True)
class TopicAddress:
    url: str
    credentials: Credentials | None


def read_topic(field: str, value: str) -> TopicAddress:
    """A topic's URL and credentials. Raises `InvalidValue`, which names the field.

    ``user:password@`` becomes credentials, because a URL is shown and logged.
    """
    url = value.strip()
    found = _WITH_CREDENTIALS.fullmatch(url)
    if found is None:
        return TopicAddress(read_web_url(url, field), None)
    username, _, password = found["user"].partition(":")
    return TopicAddress(
        read_web_url(found["scheme"] + found["rest"], field),
        Credentials(username=unquote(username), password=unquote(password)),
    )


def check_path(field: str, url: str) -> None:
    """Raise `InvalidValue`, which names the field, for a fragment that begins like a
    CSS path or a JSONPath but cannot be read: it would never select anything."""
    selector = selector_of(url)
    if may_take_forever(selector):
        raise InvalidValue(field, "a JSONPath without nested quantifiers such as (a+)+")
    if not selector and is_meant_as_path(url):
        expected = f"a CSS path or a JSONPath of at most {LONGEST_SELECTOR} characters"
        raise InvalidValue(field, f"{expected} as its fragment", url)
    if reason := path_error(selector) if selector else "":
        expected = "a CSS path or a JSONPath (RFC 9535) as its fragment"
        raise InvalidValue(field, f"{expected} ({reason})", url)


DEFAULT_PORTS = {"http": 80, "https": 443}


class AddressCheck:
    def __init__(
        self,
        *,
        topics: Guard,
        callbacks: Guard,
        lookup: Lookup,
        blocked: HostSet | None = None,
    ) -> None:
        self._blocked = blocked or HostSet()
        self._topics = topics
        self._callbacks = callbacks
        self._lookup = lookup

    async def check_topic(self, field: str, url: str) -> None:
        """Raises `AddressRefused` if no address of the host may be fetched from, and
        `InvalidValue` if the operator lists the host among those that want no
        requests."""
        if self._blocked.covers(url):
            expected = "a host that is not in FANFARE_BLOCKED_HOSTS"
            raise InvalidValue(field, expected)
        if not await self._permits(self._topics, url):
            raise AddressRefused(field, url, "FANFARE_ALLOW_TOPIC_NETWORKS")

    async def check_callback(self, field: str, url: str) -> None:
        """Raises `AddressRefused` if no address of the host may be delivered to."""
        if not await self._permits(self._callbacks, url):
            raise AddressRefused(field, url, "FANFARE_ALLOW_CALLBACK_NETWORKS")

    async def _permits(self, guard: Guard, url: str) -> bool:
        """Whether an address of the host is allowed. A name that cannot be resolved now
        passes."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        addresses = await self._addresses(host)
        return not addresses or any(guard.permits(each, port) for each in addresses)

    async def _addresses(self, host: str) -> Sequence[str]:
        if parse_literal(host) is not None:
            return (host,)
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                return await self._lookup(host)
        except (OSError, UnicodeError):
            return ()


class TrackTopics:
    """Track queries as topics. The caller checks whether somebody may track, which
    requires a token."""

    def __init__(self, store: TrackStore, clock: Clock, public_url: str) -> None:
        self._store = store
        self._clock = clock
        self._public_url = public_url

    def names_query(self, topic: str) -> bool:
        """Whether a topic names a track query, even one that cannot be read."""
        return is_track_topic(topic, self._public_url)

    def read(self, topic: str) -> TrackTopic | None:
        """The query that a topic names; None if it names none. Raises
        `InvalidValue`."""
        return read_track_topic(topic, self._public_url)

    async def find(self, topic: str) -> StoredFeed | None:
        """The feed of a query, if somebody already wants that query.

        Raises `InvalidValue`; returns None also for a topic that names no query.
        """
        wanted = self.read(topic)
        if wanted is None:
            return None
        feed = await self._store.find(canonical(wanted.query))
        return None if feed is None or feed.state is FeedState.REMOVED else feed

    async def ensure(self, topic: str, owner: AccountId = NOBODY) -> StoredFeed | None:
        """The feed of the account's query, which counts as wanted from now on.

        The query finds what the account may read; that of `NOBODY` finds what is
        public. Raises `InvalidValue`; returns None for a topic that names no query.
        """
        wanted = self.read(topic)
        if wanted is None:
            return None
        return await self._store.add(
            canonical(wanted.query), wanted.text, self._clock.now(), owner
        )


def format_of(wanted: TrackTopic, requested: Format | None) -> Format:
    """The format of a query's notifications. A query has no document of its own, so "as
    it is" means the format that the topic names, or Atom. ``requested`` None: no format
    was named."""
    if requested is None or requested in (Format.AS_IS, Format.BY_TOPIC):
        return Format(wanted.format or Format.ATOM)
    return requested
