"""Publishers: one of numbered entries, and a web site of documents that change.

Whatever a subscriber gets of numbered entries can be told apart:
entry 7 of feed 3 has the id ``tag:publisher.example,2026:3/7``. Every document lists
all entries of its feed, newest first, so that no poll can miss one (unless the feed has
a limit); it has an ETag and the publisher answers 304 when it is asked with it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from tests.support.http_server import Served, ServerAnswer, ServerRequest

_ENTRY_ID = re.compile(r"tag:publisher\.example,2026:(\d+)/(\d+)")
_FIRST_DAY = datetime(2026, 3, 1, tzinfo=UTC)


def entry_id(feed: int, number: int) -> str:
    return f"tag:publisher.example,2026:{feed}/{number}"


def entries_named_in(body: str) -> list[tuple[int, int]]:
    """(feed, number) of every entry id in a body, in order, each once."""
    found = ((int(feed), int(number)) for feed, number in _ENTRY_ID.findall(body))
    return list(dict.fromkeys(found))


@dataclass(slots=True)
class PublishedFeed:
    """One feed; ``count`` entries, and what it answers instead, if anything.

    A document lists the ``most`` last of them. ``links`` are further elements of its
    head.
    """

    number: int
    count: int = 1
    titles: dict[int, str] = field(default_factory=dict)
    changed_at: dict[int, datetime] = field(default_factory=dict)
    instead: ServerAnswer | None = None
    most: int = 10**9
    links: str = ""

    def document(self) -> bytes:
        last = max(self.count - self.most, 0)
        items = "".join(self._item(number) for number in range(self.count, last, -1))
        return (
            '<?xml version="1.0" encoding="utf-8"?>\n'
            '<feed xmlns="http://www.w3.org/2005/Atom">'
            f"<id>tag:publisher.example,2026:feed-{self.number}</id>"
            f"<title>Feed {self.number}</title>{self.links}"
            f"<updated>{self._date(self.count)}</updated>{items}</feed>"
        ).encode()

    def _item(self, number: int) -> str:
        title = self.titles.get(number, f"Entry {number}")
        return (
            f"<entry><id>{entry_id(self.number, number)}</id><title>{title}</title>"
            f'<link href="https://publisher.example/{self.number}/{number}"/>'
            f"<updated>{self._date(number)}</updated>"
            f"<summary>Entry {number} of feed {self.number}.</summary></entry>\n"
        )

    def _date(self, number: int) -> str:
        return self.changed_at.get(
            number, _FIRST_DAY + timedelta(minutes=number)
        ).isoformat()


class Publisher(Served):
    """Serves feeds at ``/feeds/1``, ``/feeds/2`` … and remembers who asked how."""

    def __init__(self) -> None:
        self.feeds: dict[int, PublishedFeed] = {}
        self.requests: dict[int, list[ServerRequest]] = defaultdict(list)
        super().__init__()

    def add_feed(self) -> PublishedFeed:
        feed = PublishedFeed(number=len(self.feeds) + 1)
        self.feeds[feed.number] = feed
        return feed

    def url(self, feed: PublishedFeed) -> str:
        return f"{self._server.url}/feeds/{feed.number}"

    def publish(self, feed: PublishedFeed) -> int:
        """Add an entry; its number."""
        feed.count += 1
        return feed.count

    async def _answer(self, request: ServerRequest) -> ServerAnswer:
        number = int(request.path.rpartition("/")[2])
        feed = self.feeds[number]
        self.requests[number].append(request)
        if feed.instead is not None:
            return feed.instead
        headers = {
            "Content-Type": "application/atom+xml",
            "Date": format_datetime(_FIRST_DAY, usegmt=True),
        }
        return _unless_known(request, feed.document(), headers)


class Site(Served):
    """Serves ``pages`` (type and body by path), with ETags; everything else is a 404.

    ``asked`` are the paths of all requests.
    """

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, bytes]] = {}
        self.headers: dict[str, Mapping[str, str]] = {}
        self.asked: list[str] = []
        super().__init__()

    def url(self, path: str = "/") -> str:
        return f"{self._server.url}{path}"

    def put(self, path: str, content: Any, type: str = "application/json") -> None:
        """Text and bytes as they are, anything else as JSON."""
        if isinstance(content, str):
            content = content.encode()
        is_written = isinstance(content, bytes)
        body = content if is_written else json.dumps(content).encode()
        self.pages[path] = (type, body)

    async def _answer(self, request: ServerRequest) -> ServerAnswer:
        self.asked.append(request.path)
        if request.path not in self.pages:
            return ServerAnswer(status=404)
        type, body = self.pages[request.path]
        more = self.headers.get(request.path, {})
        return _unless_known(request, body, {"Content-Type": type, **more})


def _unless_known(
    request: ServerRequest, body: bytes, headers: Mapping[str, str]
) -> ServerAnswer:
    """The body with its ETag, or 304 to who names that."""
    etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    headers = {"ETag": etag, **headers}
    if request.headers.get("if-none-match") == etag:
        return ServerAnswer(status=304, headers=headers)
    return ServerAnswer(headers=headers, body=body)
