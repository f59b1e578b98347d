"""No feed can exhaust the hub: each bomb becomes a reason in its feed's status.

All of them are given to one running hub at once. It has to refuse or read each within
its bounds, in bounded memory, and to fetch what is not hostile all the while.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import brotli
from backports import zstd

from tests.support.documents import rss
from tests.support.hub_process import HubApi, HubProcess
from tests.support.publisher import Publisher
from tests.support.waiting import eventually

MOST_MEMORY = 700_000_000  # bytes, at any moment; a hub at rest has 80 MB
PATIENCE = 240.0
ZEROS = bytes(200_000_000)


@dataclass(frozen=True, slots=True)
class Bomb:
    """What a publisher answers; ``is_read``: within bounds it is a feed after all."""

    body: bytes
    coding: str = ""
    content_type: str = "application/rss+xml"
    is_read: bool = False


def bombs() -> dict[str, Bomb]:
    """By the name of the feed's path."""
    packed = gzip.compress(ZEROS, 9)
    page = b"<!DOCTYPE html><html><body>"
    as_json = "application/feed+json"
    laughs = b"".join(
        b'<!ENTITY a%d "%s">' % (level, b"&a%d;" % (level - 1) * 10)
        for level in range(1, 10)
    )
    squared = b'<!DOCTYPE r [<!ENTITY a "%s">]><rss>%s</rss>' % (
        b"x" * 50_000,
        b"&a;" * 50_000,
    )
    return {
        "gzip": Bomb(packed, "gzip"),
        "gzip-in-gzip": Bomb(gzip.compress(packed), "gzip"),
        "gzip-twice-said": Bomb(gzip.compress(packed), "gzip, gzip"),
        "gzip-unsaid": Bomb(packed),
        "deflate": Bomb(zlib.compress(ZEROS, 9), "deflate"),
        "brotli": Bomb(brotli.compress(ZEROS, quality=1), "br"),
        "zstd-unsaid": Bomb(zstd.compress(ZEROS)),
        "zstd": Bomb(zstd.compress(ZEROS), "zstd"),
        "laughs": Bomb(
            b'<!DOCTYPE r [<!ENTITY a0 "ha">' + laughs + b"]><rss>&a9;</rss>"
        ),
        "squared-entities": Bomb(squared),
        "external-entity": Bomb(
            b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + rss("<item/>"),
        ),
        "depth": Bomb(b"<rss>" + b"<a>" * 200_000),
        "attributes": Bomb(b"<rss " + b'a="" ' * 2_100_000 + b"/>"),
        "tags": Bomb(b"<rss>" + b"<a/>" * 1_500_000),
        "one-text": Bomb(
            rss(f"<item><title>{'x' * 9_900_000}</title></item>"), is_read=True
        ),
        "entries": Bomb(rss("<item><guid>1</guid></item>" * 150_000), is_read=True),
        "sections": Bomb(rss("<![CDATA[" * 300_000)),
        "comments": Bomb(b"<!---->" * 500_000),
        "nul": Bomb(b"\x00" * 5_000_000),
        "utf-7": Bomb(b'<?xml version="1.0" encoding="utf-7"?>+ADw-rss+AD4-'),
        "utf-16": Bomb(("<rss>" + "<a>" * 100_000).encode("utf-16")),
        "json-depth": Bomb(b"[" * 100_000, content_type=as_json),
        "json-objects": Bomb(b'{"a":' * 100_000, content_type=as_json),
        "json-number": Bomb(
            b'{"version":"https://jsonfeed.org/version/1.1","items":[{"id":'
            + b"9" * 500_000
            + b"}]}",
            content_type=as_json,
        ),
        "json-surrogates": Bomb(
            b'{"version":"https://jsonfeed.org/version/1.1","title":"\\ud800","items":[]}',
            content_type=as_json,
            is_read=True,
        ),
        "json-keys": Bomb(
            b"{" + b'"version":"https://jsonfeed.org/version/1.1",' * 100_000 + b"}",
            content_type=as_json,
            is_read=True,
        ),
        "creator": Bomb(
            json.dumps({"feed": {"items": [[]] * 300_000}}).encode(),
            content_type="application/json",
        ),
        "page-depth": Bomb(page + b"<div>" * 300_000, content_type="text/html"),
        "page-links": Bomb(
            page
            + b'<link rel="alternate" type="application/rss+xml" href="/x">' * 9_999,
            content_type="text/html",
        ),
        "outlines": Bomb(
            b'<opml version="2.0"><body>' + b"<outline>" * 200_000,
            content_type="text/x-opml",
        ),
        "sitemap": Bomb(
            b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
            + b"<url><loc>x</loc></url>" * 300_000,
            content_type="application/xml",
        ),
        "openfeeder": Bomb(
            json.dumps(
                {"version": "1.0", "feed": {"endpoint": "x" * 4_000_000}}
            ).encode(),
            content_type="application/json",
        ),
    }


async def test_nothing_that_is_published_exhausts_the_hub(tmp_path: Path) -> None:
    hostile = bombs()
    async with (
        Publisher() as publisher,
        HubProcess(directory=tmp_path) as hub,
        HubApi(hub.url) as api,
    ):
        for name, bomb in hostile.items():
            document = publisher.put(f"/{name}", bomb.body, bomb.content_type)
            if bomb.coding:
                document.headers = {"Content-Encoding": bomb.coding}
        feed = publisher.add_feed()
        good = await api.add_feed(publisher.url(feed))
        adding = (api.add_feed(publisher.url(f"/{name}")) for name in hostile)
        ids = dict(zip(hostile, await asyncio.gather(*adding), strict=True))
        found: dict[str, dict[str, Any]] = {}
        await eventually(partial(all_were_fetched, api, ids, found), PATIENCE)
        before = len(feed.requests)
        publisher.publish(feed)
        await api.fetch(good)
        assert len(feed.requests) == before + 1
        shown = await api.feed(good)
        assert (shown["error"], shown["entries"]) == ("", 2)
        memory = peak_memory(hub.pid)
    read = {name for name, feed in found.items() if not feed["error"]}
    assert read == {name for name, bomb in hostile.items() if bomb.is_read}
    assert "root:" not in json.dumps(found)
    assert memory < MOST_MEMORY


async def all_were_fetched(
    api: HubApi, ids: dict[str, int], found: dict[str, dict[str, Any]]
) -> bool:
    for name in ids.keys() - found.keys():
        feed = await api.feed(ids[name])
        if feed["last_fetch"]:
            found[name] = feed
    return len(found) == len(ids)


def peak_memory(pid: int) -> int:
    """Bytes that the process had at most."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the system does not say")
