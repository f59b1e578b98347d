"""The publisher: feeds of numbered entries, and documents that change, on loopback.

Every entry can be recognized in what a subscriber gets: entry 7 of feed 3 has the id
``tag:publisher.example,2026:3/7``. A document of a feed lists all its entries, newest
first, so that no poll can miss one (unless the feed has a limit). Whatever is published
has an ETag, and is answered with 304 to a request with that tag.
"""

from __future__ import annotations

import hashlib
import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from tests.support.http_server import Origin, ServerAnswer, ServerRequest

_ENTRY_ID = re.compile(r"tag:publisher\.example,2026:(\d+)/(\d+)")
_FIRST_DAY = datetime(2026, 3, 1, tzinfo=UTC)


def entry_id(feed: int, number: int) -> str:
    return f"tag:publisher.example,2026:{feed}/{number}"


def entries_named_in(body: str) -> list[tuple[int, int]]:
    """The entries whose ids are in a body, as (feed, number), in order, each once."""
    found = ((int(feed), int(number)) for feed, number in _ENTRY_ID.findall(body))
    return list(dict.fromkeys(found))


@dataclass(slots=True)
class Document:
    """Bytes under a URL. ``instead``: what is answered in their place while it is set.

    ``links`` are ``Link`` headers, each in a line of its own.
    """

    url: str
    body: bytes = b""
    content_type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)
    instead: ServerAnswer | None = None
    requests: list[ServerRequest] = field(default_factory=list)

    def answer(self) -> ServerAnswer:
        return ServerAnswer(
            headers={"Content-Type": self.content_type, **self.headers},
            more_headers=[("Link", each) for each in self.links],
            body=self.body,
        )


@dataclass(slots=True)
class PublishedFeed:
    """One feed with ``count`` entries. ``instead``: what is answered in its place.

    A document lists its last ``most`` entries. ``links`` are further elements of the
    head.
    """

    number: int
    count: int = 1
    titles: dict[int, str] = field(default_factory=dict)
    changed_at: dict[int, datetime] = field(default_factory=dict)
    instead: ServerAnswer | None = None
    most: int = 10**9
    links: str = ""
    requests: list[ServerRequest] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/feeds/{self.number}"

    def answer(self) -> ServerAnswer:
        headers = {
            "Content-Type": "application/atom+xml",
            "Date": format_datetime(_FIRST_DAY, usegmt=True),
        }
        return ServerAnswer(headers=headers, body=self.document())

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


class Publisher(Origin):
    """Serves feeds at ``/feeds/1``, ``/feeds/2`` … and documents at any path.

    What `serve` says of a path precedes both.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(host, port, tls)
        self.feeds: dict[str, PublishedFeed] = {}  # by path
        self.documents: dict[str, Document] = {}

    def url(self, what: str | PublishedFeed = "/", *, host: str = "") -> str:
        path = what.path if isinstance(what, PublishedFeed) else what
        return super().url(path, host=host)

    def add_feed(self) -> PublishedFeed:
        feed = PublishedFeed(number=len(self.feeds) + 1)
        self.feeds[feed.path] = feed
        return feed

    def publish(self, feed: PublishedFeed) -> int:
        """Add an entry to a feed; return its number."""
        feed.count += 1
        return feed.count

    def put(
        self, path: str, content: Any, type: str = "application/json", **headers: str
    ) -> Document:
        """Add a document, or change the one that is at the path.

        Text and bytes stay as they are; anything else becomes JSON. Names of
        ``headers`` have _ in the place of -.
        """
        if isinstance(content, str):
            content = content.encode()
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        document = self.documents.setdefault(path, Document(self.url(path)))
        document.body, document.content_type, document.headers = body, type, named
        return document

    async def _answer(self, request: ServerRequest) -> ServerAnswer | None:
        path = request.path
        published = self.documents.get(path) or self.feeds.get(path)
        if published is None or path in self._scripts:
            return await super()._answer(request)
        published.requests.append(request)
        return published.instead or _unless_known(request, published.answer())


def _unless_known(request: ServerRequest, answer: ServerAnswer) -> ServerAnswer:
    """The answer with its ETag, or a 304 if the request names that."""
    said = f"{answer.headers}{answer.more_headers}".encode()
    etag = f'"{hashlib.sha256(answer.body + said).hexdigest()[:16]}"'
    answer = replace(answer, headers={"ETag": etag, **answer.headers})
    if request.headers.get("if-none-match") == etag:
        return replace(answer, status=304, body=b"")
    return answer
