"""A hub with entries in it, and an account that subscribes to some of their feeds."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hub.search.index_follower import SearchIndex
from hub.services.token_authentication import CreateToken
from protocols.model import Author, Entry, Feed, FeedFormat, Status
from storage.records import (
    AccountId,
    Credentials,
    DocumentWrite,
    FeedChange,
    FeedId,
    FeedStatistics,
    FeedStatisticsWrite,
    FetchCommit,
    Format,
    Matched,
    MatchWrite,
    NewFeed,
    NewSubscription,
    Polling,
    RecordKind,
    RecordWrite,
    StoredFeed,
    Subscription,
    TokenScope,
)
from tests.support.documents import an_entry
from tests.support.services import Hub
from tests.support.work_claims import save_statistics

START = datetime(2026, 11, 21, tzinfo=UTC)
RETRIEVE = frozenset({TokenScope.RETRIEVE})
CALLBACK = "https://you.example/callback"


def topic_of(name: str) -> str:
    return f"https://{name}.example/feed"


@dataclass
class Library:
    """A hub with entries, and an account whose ``token`` may retrieve."""

    hub: Hub
    account: AccountId
    token: str
    feeds: dict[str, FeedId] = field(default_factory=dict)

    @classmethod
    async def open(cls, hub: Hub, account: str = "me") -> Library:
        """A library for an account of that name."""
        made = await hub.services.tokens.create(
            CreateToken(account=account, scopes=RETRIEVE)
        )
        return cls(hub, made.token.account.id, made.secret)

    @property
    def credential(self) -> str:
        """The login for the parameter ``authorization``."""
        return base64.b64encode(f"me:{self.token}".encode()).decode()

    async def add_feed(
        self, name: str, *, private: bool = False, fetched: bool = True
    ) -> StoredFeed:
        new = NewFeed(url=topic_of(name), private=private)
        feed, _ = await self.hub.storage.feeds.add(new, START)
        self.feeds[name] = feed.id
        if fetched:
            await self._commit(name)
        return feed

    async def subscribe(
        self,
        name: str,
        callback: str = CALLBACK,
        format: Format = Format.JSON,
    ) -> Subscription:
        new = NewSubscription(
            account=self.account,
            topic=topic_of(name),
            feed_id=self.feeds[name],
            callback=callback,
            format=format,
        )
        return await self.hub.storage.subscriptions.add(new, START)

    async def publish(
        self,
        name: str,
        *titles: str,
        minutes: int = 0,
        text: str = "",
        key_of: str = "//entries.example/",
        matching: Sequence[FeedId] = (),
        unlisted: bool = False,
        kind: RecordKind = RecordKind.ENTRIES,
        days: float = 1,
    ) -> None:
        """Publish entries a second apart, the last one the newest; they are committed
        so many days after the start.

        `id_of` has their ids. ``key_of`` stands before the titles in their keys;
        ``matching`` are the track queries that match them all.
        """
        first = START + timedelta(minutes=minutes)
        entries = [
            an_entry(
                f"{key_of}{title}",
                id=id_of(title),
                title=title,
                link=f"https://pages.example/{title}",
                text=f"<p>{text or title}</p>",
                authors=(Author(name="Ann Author"),),
                published=first + timedelta(seconds=number),
                unlisted=unlisted,
            )
            for number, title in enumerate(titles)
        ]
        await self._commit(name, *entries, matching=matching, kind=kind, days=days)

    async def append_records(self, name: str, count: int, *, days: float) -> None:
        """Append records that tell of no entries, so many days after the start."""
        record = RecordWrite(kind=RecordKind.ENTRIES, status=Status(code=200))
        await self._commit(name, records=(record,) * count, days=days)

    async def index(self) -> None:
        await SearchIndex(self.hub.storage, self.hub.clock).catch_up()

    async def make_private(self, name: str) -> None:
        login = FeedChange(credentials=Credentials(username="u"))
        await self.hub.storage.feeds.edit(self.feeds[name], login, "", START)

    async def maintain(self, name: str, statistics: FeedStatistics) -> None:
        write = FeedStatisticsWrite(
            feed_id=self.feeds[name],
            statistics=statistics,
            site="",
            places=frozenset(),
            due=START + timedelta(days=9),
        )
        await save_statistics(self.hub.storage, write)

    async def _commit(
        self,
        name: str,
        *entries: Entry,
        matching: Sequence[FeedId] = (),
        kind: RecordKind = RecordKind.ENTRIES,
        records: tuple[RecordWrite, ...] = (),
        days: float = 1,
    ) -> None:
        keys = tuple((each.key, True) for each in entries)
        kept = DocumentWrite(content_type="text/xml", body=b"as it came")
        commit = FetchCommit(
            feed_id=self.feeds[name],
            at=START + timedelta(days=days),
            next_fetch=START + timedelta(days=2),
            polling=Polling(
                code=200,
                message="Fetched (ring) 200 900 and parsed 0/20 entries",
                period=900.0,
                last_fetch=START,
                last_parse=START,
            ),
            title=f"About {name}",
            format=FeedFormat.RSS,
            head=Feed(title=f"About {name}", id=f"id of {name}"),
            entries=entries,
            records=(RecordWrite(kind=kind, status=Status(code=200), entries=keys),)
            if entries
            else records,
            body=kept if entries else None,
            matched=await self._matched(matching, entries) if matching else None,
        )
        assert await self.hub.storage.log.commit(commit) is not None

    async def _matched(
        self, queries: Sequence[FeedId], entries: Sequence[Entry]
    ) -> Matched:
        keys = tuple(each.key for each in entries)
        return Matched(
            version=await self.hub.storage.tracking.version(),
            matches=tuple(MatchWrite(each, keys) for each in queries),
        )


def id_of(title: str) -> str:
    return f"https://entries.example/{title}"
