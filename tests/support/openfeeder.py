"""An OpenFeeder site that behaves as real servers do, in one way at a time.

`answer` takes a path, a query and headers and knows no sockets; `appear` puts the site
on a server. Its clock is a count of seconds that a test advances.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from tests.support.http_server import Origin, ServerAnswer, ServerRequest

START = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
WELL_KNOWN = "/.well-known/openfeeder.json"
ENDPOINT = "/openfeeder"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How a server behaves; the defaults follow the specification."""

    discovery: str = WELL_KNOWN
    version: str = "1.0"
    endpoint: str = ENDPOINT
    site_url: str = ""  # "": its real one
    has_since: bool = True
    since_is_published: bool = False  # it goes by the first publication only
    tracks_deletions: bool = True
    marks_all: bool = False  # everything is updated whenever anything is
    keeps_tombstones: bool = False  # of pages that are there again
    late_seconds: float = 0.0  # between looking for changes and saying when that was
    shuffles: bool = False  # chunks, by a hash of them
    default_limit: int = 10
    most_limit: int = 0  # above which it answers 422; 0: none
    most_chunks: int = 50
    is_absolute: bool = False  # URLs in the index
    page_is_absolute: bool = False  # and those of pages
    drops_query: bool = False  # of ?url=
    repeats_page: bool = False  # 1, under any number
    total_pages: int | None = None  # that it claims, whatever it has
    page_size: int = 0  # that it keeps to, whatever is asked for
    empty_pages: tuple[int, ...] = ()
    is_sparse: bool = False  # neither author nor updated, and no date
    has_etags: bool = True
    token: str = ""  # that is asked for as Bearer
    lists_chunks: bool = False  # differential answers have the whole pages
    summaries: bool = True  # that follow the text
    date: str = ""  # of all its answers; "": the true one


@dataclass(slots=True)
class Post:
    path: str
    text: str
    published: datetime
    updated: datetime

    @property
    def chunks(self) -> list[str]:
        return self.text.split("\n\n")


@dataclass
class FeederSite:
    """A site, whose endpoint answers ``refusal`` if that is set."""

    base: str = "https://site.example"
    ways: Ways = field(default_factory=Ways)
    posts: dict[str, Post] = field(default_factory=dict)
    tombstones: dict[str, datetime] = field(default_factory=dict)
    now: datetime = START
    asked: list[str] = field(default_factory=list)
    refusal: Answer | None = None
    refuses_since: int = 0  # with this status
    spoils_items: bool = False  # what an index lists begins with no item
    hidden: set[str] = field(default_factory=set)  # from the index
    broken: dict[str, Answer] = field(default_factory=dict)  # pages, by their path

    # --- what its owner does ---

    def add(self, path: str, text: str = "") -> None:
        self.tick()
        made = text or f"All about {path}."
        self.posts[path] = Post(path, made, self.now, self.now)
        if not self.ways.keeps_tombstones:
            self.tombstones.pop(path, None)
        self._touch()

    def edit(self, path: str, text: str) -> None:
        self.tick()
        self.posts[path].text = text
        self.posts[path].updated = self.now
        self._touch()

    def remove(self, path: str) -> None:
        self.tick()
        del self.posts[path]
        self.tombstones[path] = self.now
        self._touch()

    def forget(self, path: str) -> None:
        """Remove a page without a tombstone."""
        self.remove(path)
        del self.tombstones[path]

    def tick(self, seconds: float = 60) -> None:
        self.now += timedelta(seconds=seconds)

    def _touch(self) -> None:
        if self.ways.marks_all:
            for post in self.posts.values():
                post.updated = self.now

    # --- what it answers ---

    @property
    def front(self) -> str:
        """The URL of its discovery document."""
        return f"{self.base}{self.ways.discovery}"

    def appear(self, publisher: Origin) -> None:
        """Answer on that server from now on."""
        self.base = publisher.url("")
        for path in (self.ways.discovery, urlsplit(self.ways.endpoint).path):
            publisher.serve(path, self._respond)

    def _respond(self, request: ServerRequest) -> ServerAnswer:
        answer = self.answer(request.path, request.query, request.headers)
        return ServerAnswer(
            status=answer.status, headers=answer.headers, body=answer.body
        )

    def answer(
        self, path: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> Answer:
        if path == self.ways.discovery:
            return self._document(self._discovery(), headers)
        if path != urlsplit(self.ways.endpoint).path:
            return self._error(404, "NOT_FOUND")
        shown = "&".join(f"{name}={value}" for name, value in query.items())
        self.asked.append(shown)
        if self.ways.token and headers.get("authorization") != (
            f"Bearer {self.ways.token}"
        ):
            return self._error(401, "UNAUTHORIZED")
        if self.refusal is not None:
            return self.refusal
        return self._content(query, headers)

    def _content(self, query: Mapping[str, str], headers: Mapping[str, str]) -> Answer:
        limit = int(query.get("limit", self.ways.default_limit))
        if self.ways.most_limit and limit > self.ways.most_limit:
            return self._document({"detail": [{"msg": "too many"}]}, {}, 422)
        if "url" in query:
            return self._page(query["url"], limit)
        if "since" in query and self.refuses_since:
            return self._error(self.refuses_since, "INVALID_PARAM")
        if "since" in query and self.ways.has_since:
            return self._changes(query["since"])
        return self._index(int(query.get("page", 1)), limit, headers)

    def _discovery(self) -> dict[str, Any]:
        return {
            "version": self.ways.version,
            "site": {
                "name": "A site",
                "url": self.ways.site_url or self.base,
                "language": "en",
            },
            "feed": {"endpoint": self.ways.endpoint, "type": "paginated"},
            "capabilities": ["search"],
            "contact": None,
        }

    def _index(self, number: int, limit: int, headers: Mapping[str, str]) -> Answer:
        ways = self.ways
        size = ways.page_size or limit
        posts = sorted(
            (post for path, post in self.posts.items() if path not in self.hidden),
            key=lambda post: (post.published, post.path),
        )[::-1]
        shown = 1 if ways.repeats_page else number
        items = posts[(shown - 1) * size : shown * size]
        pages = -(-len(posts) // size)
        if shown in ways.empty_pages:
            items = []
        document = {
            "schema": "openfeeder/1.0",
            "type": "index",
            "page": number,
            "total_pages": pages if ways.total_pages is None else ways.total_pages,
            "items": ["spoilt"] * self.spoils_items
            + [self._item(post) for post in items],
        }
        return self._document(document, headers)

    def _item(self, post: Post) -> dict[str, Any]:
        item: dict[str, Any] = {
            "url": self._url(post.path, is_absolute=self.ways.is_absolute),
            "title": f"On {post.path}",
            "published": None if self.ways.is_sparse else _iso(post.published),
        }
        if self.ways.summaries:
            item["summary"] = post.text[:40]
        return item

    def _page(self, reference: str, limit: int) -> Answer:
        parts = urlsplit(reference)
        path = parts.path
        if parts.query and not self.ways.drops_query:
            path = f"{path}?{parts.query}"
        if path in self.broken:
            return self.broken[path]
        post = self.posts.get(path)
        if post is None:
            return self._error(404, "NOT_FOUND")
        return self._document(self._page_document(post, limit), {})

    def _page_document(self, post: Post, limit: int) -> dict[str, Any]:
        ways = self.ways
        texts = post.chunks
        chunks = [
            {"id": _digest(text), "text": text, "type": "paragraph", "relevance": None}
            for text in texts
        ]
        if ways.shuffles:
            chunks.sort(key=lambda chunk: str(chunk["id"]))
        shown = chunks[: min(limit, ways.most_chunks)]
        document = {
            "schema": "openfeeder/1.0",
            "url": self._url(
                post.path, is_absolute=ways.page_is_absolute or ways.is_absolute
            ),
            "title": f"On {post.path}",
            "author": "Mara",
            "published": _iso(post.published),
            "updated": _iso(post.updated),
            "language": "en",
            "summary": post.text[:40],
            "chunks": shown,
            "meta": {
                "total_chunks": len(chunks),
                "returned_chunks": len(shown),
                "cached": False,
                "cache_age_seconds": None,
            },
        }
        if ways.is_sparse:
            for name in ("author", "updated", "published", "language"):
                del document[name]
        return document

    def _changes(self, since: str) -> Answer:
        start = _moment(since)
        if start is None:
            return self._error(400, "INVALID_PARAM")
        ways = self.ways
        changed = [
            post
            for post in self.posts.values()
            if (post.published if ways.since_is_published else post.updated) >= start
        ]
        gone = [
            (path, at)
            for path, at in self.tombstones.items()
            if ways.tracks_deletions and at >= start
        ]
        as_of = self.now + timedelta(seconds=ways.late_seconds)
        token = base64.b64encode(json.dumps({"t": _iso(as_of)}).encode()).decode()
        sync: dict[str, Any] = {"as_of": _iso(as_of), "sync_token": token}
        if not ways.tracks_deletions:
            sync["deleted_tracking"] = False
        document = {
            "openfeeder_version": "1.0",
            "sync": sync,
            "added": [self._item(p) for p in changed if p.published >= start],
            "updated": [self._item(p) for p in changed if p.published < start],
            "deleted": [
                {"url": self._url(path, is_absolute=True), "deleted_at": _iso(at)}
                for path, at in gone
            ],
        }
        return self._document(document, {})

    def _url(self, path: str, *, is_absolute: bool) -> str:
        return urljoin(self.ways.site_url or self.base, path) if is_absolute else path

    def _document(
        self, document: object, asked: Mapping[str, str], status: int = 200
    ) -> Answer:
        body = json.dumps(document).encode()
        headers = {
            "Content-Type": "application/json",
            "X-OpenFeeder": "1.0",
            "Date": self.ways.date or format_datetime(self.now, usegmt=True),
        }
        if self.ways.has_etags:
            headers["ETag"] = f'"{_digest(body.decode())}"'
            if asked.get("if-none-match") == headers["ETag"]:
                return Answer(304, headers, b"")
        return Answer(status, headers, body)

    def _error(self, status: int, code: str) -> Answer:
        error = {"code": code, "message": "no"}
        return self._document({"schema": "openfeeder/1.0", "error": error}, {}, status)

    def behave(self, **ways: Any) -> None:
        """Behave in these ways from now on."""
        self.ways = replace(self.ways, **ways)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def _moment(since: str) -> datetime | None:
    """Read a time as strict servers do: with a lost ``+`` it is none."""
    if since.startswith("eyJ"):
        try:
            since = json.loads(base64.b64decode(since, validate=True))["t"]
        except ValueError:
            return None
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        return None
    return moment if moment.tzinfo else None
