"""Where a topic that is a track query becomes a feed, for every door."""

from __future__ import annotations

from hub.runtime.clock import Clock
from protocols.track import (
    TrackTopic,
    canonical,
    is_track_topic,
    read_track_topic,
)
from storage.contract import TrackStore
from storage.records import NOBODY, AccountId, FeedState, Format, StoredFeed


class TrackTopics:
    """Whoever may ask is asked before: tracking needs a token."""

    def __init__(self, store: TrackStore, clock: Clock, public_url: str) -> None:
        self._store = store
        self._clock = clock
        self._public_url = public_url

    def names_query(self, topic: str) -> bool:
        """Whether a topic names a track query, readable or not."""
        return is_track_topic(topic, self._public_url)

    def read(self, topic: str) -> TrackTopic | None:
        """None for a topic that is none of these. Raises `InvalidValue`."""
        return read_track_topic(topic, self._public_url)

    async def find(self, topic: str) -> StoredFeed | None:
        """The feed of its query, if somebody wants that already.

        Raises `InvalidValue`; None also for a topic that is none of these.
        """
        wanted = self.read(topic)
        if wanted is None:
            return None
        feed = await self._store.find(canonical(wanted.query))
        return None if feed is None or feed.state is FeedState.REMOVED else feed

    async def ensure(self, topic: str, owner: AccountId = NOBODY) -> StoredFeed | None:
        """The feed of the account's query, which counts as wanted now. It finds what
        the account may read; nobody's, what is public.

        Raises `InvalidValue`; None for a topic that is none of these.
        """
        wanted = self.read(topic)
        if wanted is None:
            return None
        return await self._store.add(
            canonical(wanted.query), wanted.text, self._clock.now(), owner
        )


def format_of(wanted: TrackTopic, asked: Format | None) -> Format:
    """A query has no document of its own: as it is means as its topic says, or Atom.

    None: nothing was asked for.
    """
    if asked is None or asked in (Format.AS_IS, Format.BY_TOPIC):
        return Format(wanted.format or Format.ATOM)
    return asked
