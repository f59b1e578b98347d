"""A crawler of the Site Content Protocol, written from its specification alone.

It shares no code with the hub. It starts at ``robots.txt``, keeps what it has fetched
by its validators, applies deltas as the specification says, and believes only snapshots
about deletions.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import httpx2
from backports import zstd

SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
SCP = "{https://scp-protocol.org/schemas/sitemap/1.0}"


@dataclass(frozen=True)
class Advertised:
    section: str
    is_snapshot: bool
    url: str
    generated: str
    expires: str
    pages: int
    size: int
    since: str


@dataclass
class ScpCrawler:
    """A crawler with a copy of one section: ``pages``, by URL."""

    client: httpx2.AsyncClient
    section: str = "all"
    pages: dict[str, dict[str, Any]] = field(default_factory=dict)
    generated: str = ""  # of the last collection that was applied
    snapshot: str = ""  # URL of the last one
    etags: dict[str, str] = field(default_factory=dict)
    raw: list[bytes] = field(default_factory=list)  # all that was read, as it is
    history: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    async def crawl(self) -> None:
        advertised = await self.advertised()
        snapshots = [each for each in advertised if each.is_snapshot]
        newest = max(snapshots, key=lambda each: each.generated)
        deltas = sorted(
            (each for each in advertised if not each.is_snapshot),
            key=lambda each: each.generated,
        )
        if newest.url != self.snapshot:
            await self._take_snapshot(newest)
        for delta in deltas:
            if delta.generated > self.generated:
                await self._apply(delta)

    async def follow_deltas(self) -> None:
        """Apply the deltas newer than its copy; their windows must leave no gap."""
        deltas = [each for each in await self.advertised() if not each.is_snapshot]
        for delta in sorted(deltas, key=lambda each: each.generated):
            if delta.generated > self.generated:
                assert delta.since <= self.generated, "a window is missing"
                await self._apply(delta)

    async def advertised(self) -> list[Advertised]:
        robots = (await self.client.get("/robots.txt")).text
        lines = [line for line in robots.splitlines() if line.startswith("Sitemap: ")]
        (sitemap_url,) = [line.removeprefix("Sitemap: ") for line in lines]
        answer = await self.client.get(_path(sitemap_url))
        assert answer.status_code == 200
        self.raw.append(answer.content)
        root = ElementTree.fromstring(answer.content)  # noqa: S314 - the hub's own
        assert root.findtext(f"{SCP}version") == "0.1"
        assert root.find(f"{SITEMAP}url/{SITEMAP}loc") is not None
        found = [*root.iter(f"{SCP}collection"), *root.iter(f"{SCP}delta")]
        return [
            Advertised(
                section=each.attrib["section"],
                is_snapshot=each.tag == f"{SCP}collection",
                url=each.attrib["url"],
                generated=each.attrib["generated"],
                expires=each.attrib["expires"],
                pages=int(each.attrib["pages"]),
                size=int(each.attrib["size"]),
                since=each.attrib.get("since", ""),
            )
            for each in found
            if each.attrib["section"] == self.section
        ]

    async def _take_snapshot(self, advertised: Advertised) -> None:
        """Delete the pages that it lacks, and keep the newer of each other page."""
        pages = await self._read(advertised)
        urls = {page["url"] for page in pages}
        self.pages = {url: page for url, page in self.pages.items() if url in urls}
        self._merge(pages)
        self.snapshot = advertised.url
        self.generated = max(self.generated, advertised.generated)

    async def _apply(self, advertised: Advertised) -> None:
        self._merge(await self._read(advertised))
        self.generated = advertised.generated

    def _merge(self, pages: list[dict[str, Any]]) -> None:
        for page in pages:
            known = self.pages.get(page["url"])
            if known is None or page["modified"] > known["modified"]:
                self.pages[page["url"]] = page

    async def _read(self, advertised: Advertised) -> list[dict[str, Any]]:
        raw = await self.download(advertised)
        head, *pages = map(json.loads, raw.splitlines())
        self._check_head(head["collection"], advertised)
        assert len(pages) == advertised.pages
        for page in pages:
            assert page["modified"] <= advertised.generated
            content = json.dumps(page["content"]) + page["title"]
            self.history.setdefault(page["url"], []).append((page["modified"], content))
        return pages

    def _check_head(self, head: dict[str, Any], advertised: Advertised) -> None:
        assert head["version"] == "0.1"
        assert head["section"] == advertised.section
        assert head["type"] == ("snapshot" if advertised.is_snapshot else "delta")
        assert head["generated"] == advertised.generated
        assert head.get("since", "") == advertised.since

    async def download(self, advertised: Advertised) -> bytes:
        """Return the uncompressed bytes; check all that the headers promise."""
        path = _path(advertised.url)
        async with self.client.stream("GET", path) as answer:
            assert answer.status_code == 200
            sent = b"".join([chunk async for chunk in answer.aiter_raw()])
        assert answer.headers["content-type"] == "application/scp"
        assert int(answer.headers["content-length"]) == len(sent) == advertised.size
        raw = _uncompressed(sent, answer.headers.get("content-encoding", ""))
        assert len(raw) < 2**20 or len(raw) <= 100 * len(sent)
        etag = answer.headers["etag"]
        assert etag == f'"sha256:{hashlib.sha256(raw).hexdigest()}"'
        again = await self.client.get(path, headers={"If-None-Match": etag})
        assert again.status_code == 304
        date = answer.headers["last-modified"]
        again = await self.client.get(path, headers={"If-Modified-Since": date})
        assert again.status_code == 304
        self.raw.append(raw)
        return raw


def _path(url: str) -> str:
    return urlsplit(url).path


def _uncompressed(sent: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        assert sent[:2] == b"\x1f\x8b"
        return gzip.decompress(sent)
    if encoding == "zstd":
        assert sent[:4] == b"\x28\xb5\x2f\xfd"
        return zstd.decompress(sent)
    assert not encoding
    return sent
