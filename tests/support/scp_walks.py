"""Walks over an SCP site without sockets or storage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.core.sites.scp_walk import scp_walk
from hub.core.sites.site_commits import compare
from hub.core.sites.walk_steps import (
    CollectionPages,
    CommitPages,
    Count,
    Download,
    Downloaded,
    FindUnlisted,
    Get,
    LoadPages,
    Parse,
    ReadCollection,
    ReadPage,
    SiteVisit,
    VisitExhausted,
    WalkEnded,
    WalkReply,
    Want,
)
from protocols.feeds import ParseContext, parse
from protocols.protocol_errors import FeedError
from protocols.scp.read.collection_entries import entry_of_page
from protocols.scp.read.collection_reader import CollectionReader
from storage.records import SiteTally, StoredSitePage
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.scp_site import SITEMAP, ScpSite

BATCH = 3
"""Pages of a collection that are read at once."""


class PagesAtHand(Publisher):
    """What a publisher has, without a server; ``answers`` precede what there is."""

    def __init__(self) -> None:
        super().__init__()
        self.base = "http://site.test"
        self.answers: dict[str, Fetched] = {}

    def url(self, what: str | PublishedFeed = "/", *, host: str = "") -> str:
        return f"{self.base}{what}"


@dataclass
class Walks:
    """Walks over one site.

    ``told``: titles of news and updates, and ids of what was deleted; ``asked``: the
    paths of a walk; ``saves``: how many steps it may save.
    """

    site: PagesAtHand = field(default_factory=PagesAtHand)
    told: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    known: dict[str, StoredSitePage] = field(default_factory=dict)
    state: bytes = b""
    is_read: bool = False
    title: str = ""
    saves: int = 1_000
    instead: dict[type, WalkReply] = field(default_factory=dict)  # by kinds of wants
    swept: list[str] = field(default_factory=list)  # from where on, each time
    asks: int = 1_000
    later: timedelta = timedelta(0)
    seen: bytes = b""  # the sitemap as it was last
    scp: ScpSite = field(init=False)
    _pages: list[ReadPage] = field(default_factory=list)
    _lines: list[int] = field(default_factory=list)
    _warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.scp = ScpSite(self.site)

    @property
    def now(self) -> datetime:
        return self.scp.at + self.later

    def visit(self, *, walk_every: float = 21_600.0) -> WalkEnded | None:
        """Visit the site; None if the visit was exhausted.

        A sitemap that has not changed is answered without a body.
        """
        self.asked.clear()
        front = self.answer(self.site.url(SITEMAP))
        if front.body == self.seen:
            front = replace(front, status=304, body=b"")
        else:
            self.seen = front.body
        walk = scp_walk(
            SiteVisit(
                url=front.url,
                front=front,
                state=self.state,
                now=self.now,
                is_read=self.is_read,
                walk_every=walk_every,
            )
        )
        reply: WalkReply | None = None
        try:
            while True:
                want = next(walk) if reply is None else walk.send(reply)
                reply = self.serve(want)
        except StopIteration as stop:
            ended: WalkEnded = stop.value
            return ended
        except VisitExhausted:
            return None

    def well(self, **how: float) -> list[str]:
        """Make a visit that goes well; return what was told in it."""
        before = len(self.told)
        ended = self.visit(**how)
        assert ended is not None
        assert ended.error == ""
        return self.told[before:]

    def answer(self, url: str) -> Fetched:
        path = url.removeprefix(self.site.base)
        self.asked.append(path)
        if path in self.site.answers:
            return self.site.answers[path]
        found = self.site.documents.get(path)
        return Fetched(
            at=self.now,
            started=self.now,
            url=url,
            status=200 if found else 404,
            error="" if found else "answered 404 Not Found",
            body=found.body if found else b"",
            etag=f'"{path}"',
        )

    def serve(self, want: Want) -> WalkReply:
        if type(want) in self.instead:
            return self.instead[type(want)]
        wants: dict[type, Callable[..., WalkReply]] = {
            Get: self._ask,
            Download: self._download,
            ReadCollection: self._unroll,
            Parse: self._parse,
            LoadPages: lambda w: {k: self.known[k] for k in w.keys if k in self.known},
            FindUnlisted: self._find_unlisted,
            Count: lambda w: SiteTally(
                pages=len([p for p in self.known.values() if not p.is_deleted]),
                unlisted=len(self._unlisted(w.walk)),
            ),
            CommitPages: self._save,
        }
        return wants[type(want)](want)

    def _ask(self, want: Get) -> WalkReply:
        self.asks -= 1
        return self.answer(want.url) if self.asks >= 0 else False

    def _download(self, want: Download) -> WalkReply:
        self.asks -= 1
        if self.asks < 0:
            return False
        fetched = self.answer(want.url)
        if want.etag and want.etag == fetched.etag:
            return Downloaded(fetched=replace(fetched, status=304, body=b""))
        if fetched.error:
            return Downloaded(fetched=fetched)
        reader = CollectionReader(want.rules)
        try:
            found = [*reader.feed(fetched.body), *reader.finish()]
        except FeedError as error:
            return Downloaded(fetched=replace(fetched, body=b""), error=error)
        warnings = tuple(reader.warnings.lines)  # of the check; those of blocks follow
        self._lines = [page.line for page in found]
        self._pages = [
            ReadPage(
                entry=entry_of_page(page, reader.warnings),
                reference=page.url,
                stamp=int(page.modified.timestamp() * 1000),
            )
            for page in found
        ]
        self._warnings = tuple(reader.warnings.lines)
        return Downloaded(
            fetched=replace(fetched, body=b""),
            head=reader.head,
            lines=reader.lines,
            unknown=reader.unknown,
            warnings=warnings,
        )

    def _unroll(self, want: ReadCollection) -> WalkReply:
        at = [n for n, line in enumerate(self._lines) if line > want.after][:BATCH]
        line = self._lines[at[-1]] if at else want.after
        return CollectionPages(
            pages=tuple(self._pages[n] for n in at), line=line, warnings=self._warnings
        )

    def _parse(self, want: Parse) -> WalkReply:
        context = ParseContext(url=want.fetched.url, now=self.now)
        try:
            return parse(want.fetched.body, context)
        except FeedError as error:
            return error

    def _find_unlisted(self, want: FindUnlisted) -> WalkReply:
        there = sorted(self._unlisted(want.walk), key=lambda page: page.key)
        self.swept.append(want.after)
        return [page for page in there if page.key > want.after][: want.limit]

    def _unlisted(self, walk: int) -> list[StoredSitePage]:
        return [p for p in self.known.values() if p.walk < walk and not p.is_deleted]

    def _save(self, step: CommitPages) -> WalkReply:
        is_told = self.is_read and not step.is_quiet
        compared = compare(step, self.known, at=self.now, is_read=is_told)
        for page in compared.pages:
            self.known[page.key] = page
        for key in step.listed:
            self.known[key] = replace(self.known[key], walk=step.walk)
        news = compared.news
        self.told += [each.entry.title for each in news.updates if each.is_logged]
        self.told += [each.title for each in news.new]
        self.told += [each.id for each in news.deletions]
        self.state = step.state
        self.title = self.title if step.head is None else step.head.title
        self.is_read = self.is_read or step.is_read
        self.saves -= 1
        return self.saves > 0
