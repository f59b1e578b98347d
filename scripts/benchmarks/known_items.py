"""Documents in JSON that were read before, of which only the head has changed.

The hub: the hash of the body, and the document read (`protocols.feeds`). The floor:
orjson reading the same bytes, and one hash of them. Both take turns, and each is timed
by the CPU of this one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from random import Random
from statistics import median
from time import thread_time
from typing import Any, Final

import orjson

from hub.core.fetched import body_hash
from protocols.feeds import ParseContext, parse
from protocols.feeds.known_entries import KnownSlice, pack_known
from protocols.identity import fingerprint
from scripts.benchmarks.measuring import Finding, Size
from scripts.benchmarks.words import write_words

COUNTS: Final = (20, 100, 500)
"""Items of a document."""
MOST_RATIO: Final = 3.0
_ITEMS: Final = 20_000
"""Of all rounds together: small documents need more of them for a median to hold."""
_SITE: Final = "https://site.example"
_TIME: Final = "2026-01-01T00:00:00Z"

Members = dict[str, Any]


def measure_known_items(size: Size) -> Iterator[Finding]:
    draw = Random(1)  # noqa: S311 - hides nothing
    kinds: list[tuple[str, Callable[[int, Random], Members], Members]] = [
        ("JSON Feed", _json_feed, {"title": "Another"}),
        ("creator feed.json", _creator_feed, {"generatedAt": "2026-01-02T00:00:00Z"}),
    ]
    items = size.pick(_ITEMS, _ITEMS, max(COUNTS))
    for name, write, change in kinds:
        for count in COUNTS:
            measure = f"{name}, {count} known items"
            yield _compare(measure, write(count, draw), change, items // count)


def _compare(measure: str, document: Members, change: Members, rounds: int) -> Finding:
    context = ParseContext(
        url=f"{_SITE}/feed.json", now=datetime(2026, 1, 1, tzinfo=UTC), known=b""
    )
    known = _known(orjson.dumps(document), context)
    body = orjson.dumps({**document, **change})
    work = partial(_read, body, replace(context, known=known))
    pairs = [(_spent(work), _spent(partial(_load, body))) for _ in range(rounds)]
    ratio = median(ours / bare for ours, bare in pairs)
    return Finding(
        bench="sources",
        measure=f"CPU us per {measure}",
        hub=median(ours for ours, _ in pairs) * 1e6,
        floor=median(bare for _, bare in pairs) * 1e6,
        ratio=ratio,
        target=f"<= {MOST_RATIO:g} x",
        met=ratio <= MOST_RATIO,
    )


def _known(body: bytes, context: ParseContext) -> bytes:
    """All items, as the hub remembers them: each is known by its id."""
    parsed = parse(body, context)
    outline = parsed.outline
    if outline is None:
        raise AssertionError("a document without an outline")
    known = [
        KnownSlice(slice, fingerprint(entry.key), False)
        for slice, entry in zip(outline.slices, parsed.entries, strict=True)
    ]
    return pack_known(outline.setting, known, region=outline.region, count=len(known))


def _read(body: bytes, context: ParseContext) -> None:
    body_hash(body)
    if parse(body, context).entries:
        raise AssertionError("a known item was read again")


def _load(body: bytes) -> None:
    body_hash(body)
    orjson.loads(body)


def _spent(work: Callable[[], None]) -> float:
    begun = thread_time()
    work()
    return thread_time() - begun


def _json_feed(count: int, draw: Random) -> Members:
    """Items of some 3.2 kB, most of it HTML."""
    return {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "The site",
        "home_page_url": f"{_SITE}/",
        "feed_url": f"{_SITE}/feed.json",
        "language": "en",
        "authors": [{"name": "Ann", "url": f"{_SITE}/ann"}],
        "items": [_item(number, draw) for number in range(count)],
    }


def _item(number: int, draw: Random) -> Members:
    paragraphs = [
        f'<p>{write_words(draw, 45)} <a href="{_SITE}/{draw.random()}">more</a>'
        f" <b>{write_words(draw, 3)}</b> {write_words(draw, 20)}.</p>\n"
        for _ in range(6)
    ]
    return {
        "id": f"{_SITE}/posts/{number}",
        "url": f"{_SITE}/posts/{number}",
        "title": write_words(draw, 6),
        "content_html": "".join(paragraphs),
        "date_published": _TIME,
        "tags": [write_words(draw, 1), write_words(draw, 1)],
    }


def _creator_feed(count: int, draw: Random) -> Members:
    """Items of some 630 bytes, which say much of their media and little else."""
    return {
        "version": 1,
        "generatedAt": _TIME,
        "creator": {"handle": "ann", "displayName": "Ann", "language": "en"},
        "items": [_creation(number, draw) for number in range(count)],
    }


def _creation(number: int, draw: Random) -> Members:
    address = f"{_SITE}/posts/{number}"
    return {
        "slug": f"post-{number}",
        "title": write_words(draw, 6),
        "summary": write_words(draw, 30),
        "url": address,
        "publishedAt": _TIME,
        "updatedAt": _TIME,
        "tags": [write_words(draw, 1), write_words(draw, 1)],
        "kinds": ["text", "video"],
        "thumbnail": {"url": f"{address}.jpg", "width": 640, "height": 480},
        "media": [
            {
                "kind": "video",
                "url": f"{address}.mp4",
                "mime": "video/mp4",
                "durationSec": 100,
                "size": 1_000_000,
            }
        ],
    }
