"""Whether an entry is a page that everybody may see, and under which URL."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from protocols.model import Entry, Feed
from protocols.scp.collection import section_name
from protocols.scp.page import page_url
from storage.packing import unpack
from storage.records import JudgedEntry, PageNews


def judge_entry(news: PageNews, public_url: str, now: datetime) -> JudgedEntry:
    """An entry without an address of its own has one at this hub."""
    if news.entry is None:
        return JudgedEntry(entry_id=news.entry_id, revision=0, is_dropped=True)
    none = JudgedEntry(entry_id=news.entry_id, revision=news.revision)
    if not news.is_public or news.entry.deleted or read_head(news.head).unlisted:
        return none
    entry = unpack(news.entry.body, Entry)
    if entry.unlisted:
        return none
    stated = entry.updated or entry.published or now
    own = f"{public_url}/topics/{news.entry.feed_id}.json#{news.entry_id}"
    return JudgedEntry(
        entry_id=news.entry_id,
        revision=news.revision,
        url=page_url(entry) or own,
        section=section_name(news.section),
        dated=news.dated,
        modified=min(stated, now),
    )


@lru_cache(maxsize=1_024)
def read_head(packed: bytes | None) -> Feed:
    """Of a feed; entries of one feed come together, so that few are kept."""
    return Feed() if packed is None else unpack(packed, Feed)
