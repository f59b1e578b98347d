"""Permission to listen live: who may listen to which topic, and to how many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from hub.live.connection_quotas import Holder, HolderKind
from hub.live.live_connections import (
    ChannelKey,
    Client,
    Interest,
    LiveConnection,
    NotSubscribed,
    TooManyTopics,
    UnknownTopic,
)
from hub.live.live_stream import LiveStream
from hub.publishing.local_topics import LocalTopics
from hub.runtime.caching import SingleFlight
from hub.services.token_authentication import WITHOUT_TOKEN, Principal
from hub.services.topic_addresses import TrackTopics, read_topic
from protocols.live.live_messages import Subscribe, Unsubscribe
from protocols.protocol_errors import InvalidValue
from storage.contract import FeedStore
from storage.records import (
    NOBODY,
    OPERATOR,
    AccountId,
    Format,
    StoredFeed,
    TokenScope,
    Updates,
)

Lookup: TypeAlias = tuple[str, AccountId | None]
"""A topic, and the account as which it is looked up."""
MOST_TOPICS = 1_000
"""Topics that one connection may listen to."""
NEEDS_TOKEN = "tracking requires a token with the `retrieve` scope"  # noqa: S105


class LiveService:
    """Who may listen live. ``is_open``: public topics need no token."""

    def __init__(
        self,
        feeds: FeedStore,
        stream: LiveStream,
        tracks: TrackTopics,
        *,
        is_open: bool,
        local_topics: LocalTopics | None = None,
    ) -> None:
        self.stream = stream
        self._feeds = feeds
        self._tracks = tracks
        self._is_open = is_open
        self.most_topics = MOST_TOPICS
        self._local_topics = local_topics or LocalTopics()
        self._lookups: SingleFlight[Lookup, StoredFeed | None] = SingleFlight()

    def may_listen(self, principal: Principal | None) -> bool:
        """Whether the principal may listen at all. None: a client without a token."""
        return self._is_open or _may_retrieve(principal)

    def client(
        self, principal: Principal | None, *, may_ask: bool, address: str = ""
    ) -> Client:
        """The client that a connection is admitted as, for a principal that may listen.

        Without a token it counts among the connections of the ``address``; if that is
        "", it is not counted.
        """
        return Client(
            token=None if principal is None else principal.token,
            holder=_holder(principal, address),
            viewer=_viewer(principal),
            may_ask=may_ask,
            account=(principal or WITHOUT_TOKEN).account.name,
            address=address,
        )

    async def find(self, principal: Principal | None, request: Subscribe) -> Interest:
        """The interest that a request to listen means.

        A topic that the principal may not read counts as unknown. Tracking requires the
        scope ``retrieve``. Raises `InvalidValue` and `UnknownTopic`.
        """
        topic = read_topic("topic", request.topic).url
        feed = await self._feed_behind(topic, principal)
        if feed is None:
            raise UnknownTopic(topic)
        key = ChannelKey(
            feed_id=feed.id,
            topic=topic,
            format=Format(request.format.value),
            updates=Updates(request.updates.value),
        )
        return Interest(key=key, cursor=request.cursor, id=request.id)

    async def _feed_behind(
        self, topic: str, principal: Principal | None
    ) -> StoredFeed | None:
        if not self._tracks.names_query(topic):
            return await self._found(topic, _viewer(principal))
        if principal is None or not _may_retrieve(principal):
            raise InvalidValue("topic", f"a feed: {NEEDS_TOKEN}")
        return await self._tracks.ensure(topic, principal.account.id)

    async def _found(self, topic: str, viewer: AccountId | None) -> StoredFeed | None:
        """The feed behind a topic, read once for all who ask for it at the same time as
        the same viewer."""
        found, is_shared = await self._lookups.get(
            (topic, viewer),
            partial(self._local_topics.find_readable, self._feeds, topic, viewer),
        )
        self.stream.count_read(is_shared=is_shared)
        return found

    async def subscribe(
        self, connection: LiveConnection, interests: Sequence[Interest]
    ) -> None:
        """Begin to listen. Raises `TooManyTopics`, `InvalidValue` for a cursor, and
        `StorageError`."""
        wanted = {each.key.topic: each for each in interests}
        self.check_count(len(connection.subscriptions.keys() | wanted.keys()))
        await self.stream.subscribe(connection, list(wanted.values()))

    def check_count(self, topics: int) -> None:
        """Raise `TooManyTopics` if one connection may not listen to so many topics."""
        if topics > self.most_topics:
            raise TooManyTopics(self.most_topics)

    def unsubscribe(self, connection: LiveConnection, request: Unsubscribe) -> None:
        """Stop listening to a topic. Raises `InvalidValue` and `NotSubscribed`."""
        topic = read_topic("topic", request.topic).url
        if not self.stream.unsubscribe(connection, topic, request.id):
            raise NotSubscribed(topic)


def _holder(principal: Principal | None, address: str) -> Holder | None:
    if principal is None:
        return Holder(HolderKind.ADDRESS, address) if address else None
    if principal.is_admin or principal.account.id == OPERATOR:
        return None
    return Holder(HolderKind.ACCOUNT, str(principal.account.id))


def _viewer(principal: Principal | None) -> AccountId | None:
    return NOBODY if principal is None else principal.viewer


def _may_retrieve(principal: Principal | None) -> bool:
    return principal is not None and principal.may(TokenScope.RETRIEVE)
