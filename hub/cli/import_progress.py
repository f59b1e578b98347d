"""Adds many feeds part by part, and shows how far that has come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from hub.cli import say, say_in_place
from hub.cli.hub_client import Document, Hub
from hub.cli.progress import Progress
from hub.cli.wording import Failure

PART_FEEDS: Final = 250
PART_CHARACTERS: Final = 256 * 1024
"""Most characters of URLs and categories in a part: a request may have a megabyte."""
PARTS_AT_ONCE: Final = 2
"""The hub works on one part while the outcomes of another are printed."""


def import_feeds(
    hub: Hub,
    feeds: Sequence[Document],
    terms: Mapping[str, object],
    *,
    wait: int = 0,
    part_feeds: int = PART_FEEDS,
) -> Iterator[Document]:
    """Add many feeds; yield what became of each, in their order.

    ``terms`` hold for all of them; ``wait``: for how many seconds the hub may wait for
    first fetches before it answers for a part. A repeat continues where it was
    interrupted: known feeds stay as they are. Raises `Failure`, after it has printed
    how many feeds were done.
    """
    progress = Progress(len(feeds))
    ask = partial(_import_part, hub, terms, wait)
    with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
        parts = [*_parts(feeds, part_feeds)]
        waiting = [pool.submit(ask, part) for part in parts[:PARTS_AT_ONCE]]
        try:
            for number in range(len(parts)):
                outcomes = waiting.pop(0).result()
                if number + PARTS_AT_ONCE < len(parts):
                    waiting.append(pool.submit(ask, parts[number + PARTS_AT_ONCE]))
                yield from outcomes
                progress.add(len(outcomes))
        except Failure:
            say_in_place("")
            if progress.done:
                done = f"{progress.done:,} of {len(feeds):,} feeds were done"
                say(f"{done}; repeat the command to continue", err=True)
            raise


def _import_part(
    hub: Hub, terms: Mapping[str, object], wait: int, part: Sequence[Document]
) -> Sequence[Document]:
    answer = hub.post(f"/api/imports?wait={wait}", {"feeds": part, **terms})
    outcomes: Sequence[Document] = answer["feeds"]
    return outcomes


def _parts(feeds: Sequence[Document], most: int) -> Iterator[list[Document]]:
    part: list[Document] = []
    size = 0
    for feed in feeds:
        length = sum(map(len, feed.values()))
        if part and (len(part) == most or size + length > PART_CHARACTERS):
            yield part
            part, size = [], 0
        part.append(feed)
        size += length
    if part:
        yield part
