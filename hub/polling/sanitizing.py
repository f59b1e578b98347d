"""News made safe to show before it is stored, and after it was compared.

What is new and what changed is decided by what publishers say, so that switching the
setting on or off makes no updates; only what is written anyway is cleaned.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hub.parsing.sanitizing import Sanitizer
from protocols.model import Entry
from storage.packing import pack, unpack
from storage.records import EntryWrite, FetchCommit


async def sanitize_news(commit: FetchCommit, sanitizer: Sanitizer) -> FetchCommit:
    """The commit with its entries' new states cleaned."""
    told = [write for write in commit.entries if not write.deleted]
    if not told:
        return commit
    entries = await asyncio.to_thread(_unpack, told)
    cleaned = await sanitizer.sanitize(entries)
    bodies = await asyncio.to_thread(lambda: [pack(entry) for entry in cleaned])
    by_key = {
        write.key: replace(write, body=body)
        for write, body in zip(told, bodies, strict=True)
    }
    return replace(
        commit,
        entries=tuple(by_key.get(write.key, write) for write in commit.entries),
    )


def _unpack(writes: list[EntryWrite]) -> tuple[Entry, ...]:
    return tuple(unpack(write.body, Entry) for write in writes)
