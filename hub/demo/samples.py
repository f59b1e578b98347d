"""Three sample feeds, one of each format, to which entries can be added."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from enum import StrEnum
from html import escape

import orjson


class FeedKind(StrEnum):
    RSS = "rss"
    ATOM = "atom"
    JSON = "json"


CONTENT_TYPES = {
    FeedKind.RSS: "application/rss+xml",
    FeedKind.ATOM: "application/atom+xml",
    FeedKind.JSON: "application/feed+json",
}
SITE = "https://publisher.example"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleEntry:
    kind: FeedKind
    number: int
    published: datetime

    @property
    def id(self) -> str:
        return f"tag:publisher.example,2026:{self.kind}/{self.number}"

    @property
    def title(self) -> str:
        return f"Entry {self.number} of the {self.kind.upper()} feed"

    @property
    def link(self) -> str:
        return f"{SITE}/{self.kind}/{self.number}"


@dataclass(slots=True)
class SampleFeed:
    """A feed whose document has its last 20 entries, the newest first."""

    kind: FeedKind
    entries: list[SampleEntry] = field(default_factory=list)

    def add(self, now: datetime) -> SampleEntry:
        entry = SampleEntry(kind=self.kind, number=len(self.entries) + 1, published=now)
        self.entries.append(entry)
        return entry

    def document(self, self_url: str, hub_url: str) -> bytes:
        newest = self.entries[:-21:-1]
        match self.kind:
            case FeedKind.RSS:
                return _rss(newest, self_url, hub_url).encode()
            case FeedKind.ATOM:
                return _atom(newest, self_url, hub_url).encode()
            case FeedKind.JSON:
                return _json(newest, self_url, hub_url)


def _rss(entries: list[SampleEntry], self_url: str, hub_url: str) -> str:
    items = "".join(
        f'<item><guid isPermaLink="false">{escape(each.id)}</guid>'
        f"<title>{escape(each.title)}</title><link>{escape(each.link)}</link>"
        f"<pubDate>{format_datetime(each.published)}</pubDate></item>"
        for each in entries
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?><rss version="2.0"'
        ' xmlns:atom="http://www.w3.org/2005/Atom"><channel>'
        f"<title>Sample RSS</title><link>{SITE}/</link><description/>"
        f'<atom:link rel="self" href="{escape(self_url)}"/>'
        f'<atom:link rel="hub" href="{escape(hub_url)}"/>{items}</channel></rss>'
    )


def _atom(entries: list[SampleEntry], self_url: str, hub_url: str) -> str:
    items = "".join(
        f"<entry><id>{escape(each.id)}</id><title>{escape(each.title)}</title>"
        f'<link href="{escape(each.link)}"/>'
        f"<published>{each.published.isoformat()}</published>"
        f"<updated>{each.published.isoformat()}</updated></entry>"
        for each in entries
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>'
        '<feed xmlns="http://www.w3.org/2005/Atom">'
        "<id>tag:publisher.example,2026:atom</id><title>Sample Atom</title>"
        f"<updated>{entries[0].published.isoformat()}</updated>"
        f'<link rel="self" href="{escape(self_url)}"/>'
        f'<link rel="hub" href="{escape(hub_url)}"/>{items}</feed>'
    )


def _json(entries: list[SampleEntry], self_url: str, hub_url: str) -> bytes:
    return orjson.dumps(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "title": "Sample JSON Feed",
            "feed_url": self_url,
            "hubs": [{"type": "WebSub", "url": hub_url}],
            "items": [
                {
                    "id": each.id,
                    "url": each.link,
                    "title": each.title,
                    "content_text": each.title,
                    "date_published": each.published.isoformat(),
                }
                for each in entries
            ],
        }
    )
