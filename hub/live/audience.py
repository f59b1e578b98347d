"""Who is connected, by what let them in, and what they listen to, by feed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from hub.live.connections import Connection
from hub.live.shares import Holder
from hub.live.subscriptions import LiveSubscription
from storage.records import FeedId, TokenId


class Audience:
    """Kept so that what ends for many is found without looking at each."""

    def __init__(self) -> None:
        self.connections: set[Connection] = set()
        self._holders: defaultdict[TokenId, set[Connection]] = defaultdict(set)
        self._listeners: defaultdict[FeedId, set[LiveSubscription]] = defaultdict(set)
        self._held: Counter[Holder] = Counter()

    @property
    def tokens(self) -> list[TokenId]:
        """Those that connections were opened with."""
        return list(self._holders)

    @property
    def feeds(self) -> list[FeedId]:
        """Those that somebody listens to, or is being caught up with."""
        return list(self._listeners)

    def holders(self, token: TokenId) -> list[Connection]:
        return list(self._holders.get(token, ()))

    def listeners(self, feed_id: FeedId) -> list[LiveSubscription]:
        return list(self._listeners.get(feed_id, ()))

    def held(self, holder: Holder) -> int:
        """How many connections are its own."""
        return self._held[holder]

    def come(self, connection: Connection) -> None:
        self.connections.add(connection)
        if connection.guest.holder is not None:
            self._held[connection.guest.holder] += 1
        if connection.guest.token is not None:
            self._holders[connection.guest.token].add(connection)

    def go(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._release(connection.guest.holder)
        token = connection.guest.token
        if token is not None:
            self._holders[token].discard(connection)
            if not self._holders[token]:
                del self._holders[token]

    def _release(self, holder: Holder | None) -> None:
        if holder is None:
            return
        self._held[holder] -= 1
        if not self._held[holder]:
            del self._held[holder]

    def listen(self, subscription: LiveSubscription) -> None:
        self._listeners[subscription.key.feed_id].add(subscription)

    def leave(self, subscription: LiveSubscription) -> None:
        feed_id = subscription.key.feed_id
        self._listeners[feed_id].discard(subscription)
        if not self._listeners[feed_id]:
            del self._listeners[feed_id]

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self.connections))

    def __len__(self) -> int:
        return len(self.connections)
