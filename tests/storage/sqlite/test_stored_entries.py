from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from storage.database_url import open_storage, read_entry_times
from storage.errors import DatabaseUnusable
from storage.records import FetchCommit, NewFeed, Polling
from tests.support.documents import an_entry

START = datetime(2026, 3, 2, tzinfo=UTC)


async def test_times_are_read_beside_whoever_uses_the_file(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'hub.db'}"
    storage = await open_storage(url)
    try:
        feed, _ = await storage.feeds.add(NewFeed(url="https://feed.example/"), START)
        times = [START + timedelta(hours=hour) for hour in (3, 1)]
        entries = tuple(an_entry(str(at), published=at) for at in times)
        await storage.log.commit(
            FetchCommit(
                feed_id=feed.id,
                at=START + timedelta(hours=5),
                next_fetch=START,
                polling=Polling(),
                entries=entries,
            )
        )

        found = read_entry_times(url)
    finally:
        await storage.close()

    assert found == {
        "https://feed.example/": tuple(at.timestamp() for at in sorted(times))
    }


@pytest.mark.parametrize("name", ["sqlite:missing.db", "elsewhere:x"])
def test_what_cannot_be_read_is_named(name: str) -> None:
    with pytest.raises(DatabaseUnusable):
        read_entry_times(name)
