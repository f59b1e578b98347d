"""Feeds as storage gives them, and answers as the fetcher does, for tests."""

from __future__ import annotations

from datetime import UTC, datetime

from hub.core.fetched import Fetched
from storage.records import (
    FeedId,
    FeedState,
    FetchTarget,
    Polling,
    StoredFeed,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


def a_feed(
    id: int = 1,
    url: str = "https://feed.example/feed",
    *,
    polling: Polling | None = None,
    next_fetch: datetime = START,
    state: FeedState = FeedState.ACTIVE,
    format: str = "",
    title: str = "",
) -> StoredFeed:
    return StoredFeed(
        id=FeedId(id),
        url=url,
        state=state,
        private=False,
        category="",
        title=title,
        format=format,
        next_fetch=next_fetch,
        created_at=START,
        removed_at=None,
        polling=polling or Polling(),
    )


def a_target(
    feed: StoredFeed | None = None,
    *,
    seen: bytes = b"",
    keeps_body: bool = False,
    subscribers: int = 0,
) -> FetchTarget:
    return FetchTarget(
        feed=feed or a_feed(),
        credentials=None,
        seen=seen,
        keeps_body=keeps_body,
        subscribers=subscribers,
    )


def an_answer(
    status: int = 200,
    body: bytes = b"",
    *,
    at: datetime = START,
    url: str = "https://feed.example/feed",
    error: str = "",
    etag: str = "",
    retry_after: str = "",
    cache_control: str = "",
) -> Fetched:
    """An answer without ``error`` is good if it is a 200 or a 304."""
    if not error and status not in (200, 304):
        error = f"answered {status}"
    return Fetched(
        at=at,
        started=at,
        url=url,
        status=status,
        error=error,
        body=body,
        conditional=status == 304,
        etag=etag,
        content_type="application/rss+xml",
        retry_after=retry_after,
        cache_control=cache_control,
    )
