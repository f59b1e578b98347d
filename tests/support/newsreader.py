"""A polled feed without the polling: documents go in as bytes, and news comes out.

The real parser reads them and the real rules decide; only the fetch is made up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from html import escape

from msgspec.structs import replace

from hub.core.fetched import FollowedRedirect, ParseOutcome, body_hash
from hub.core.news.decide import decide
from hub.core.news.decision import Decision
from hub.core.news.fetch_commit import is_known_body
from hub.core.schedule.poll_period import PollingRules
from protocols.feeds import ParseContext
from protocols.feeds.lenient import parse_leniently
from protocols.model import Entry, IdSource
from protocols.protocol_errors import FeedError
from storage.records import FetchCommit, FetchTarget, Polling, PollReason, RecordKind
from tests.support.documents import atom, rss
from tests.support.fetch_targets import a_target, an_answer

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
RULES = PollingRules()


def post(
    number: object,
    *,
    guid: str | None = None,
    link: str | None = None,
    title: str | None = None,
    date: datetime | str | None = None,
    text: str | None = None,
    more: str = "",
) -> str:
    """An RSS item; "" leaves an element out, None takes what the number implies."""
    if date is None and isinstance(number, int):
        date = NOON - number * timedelta(days=1)
    elements = {
        "guid": f"tag:site.example,2026:{number}" if guid is None else guid,
        "link": f"https://site.example/{number}" if link is None else link,
        "title": f"Post {number}" if title is None else title,
        "pubDate": format_datetime(date) if isinstance(date, datetime) else date or "",
        "description": f"Text of {number}" if text is None else text,
    }
    inner = "".join(
        f"<{name}>{escape(value)}</{name}>" for name, value in elements.items() if value
    )
    return f"<item>{inner}{more}</item>"


def site_rss(*items: str, head: str = "") -> bytes:
    head = f"<title>Site</title><link>https://site.example/</link>{head}"
    root = ' xmlns:slash="http://purl.org/rss/1.0/modules/slash/"'
    return rss(*items, head=head, root=root)


def entry(
    id: str,
    *,
    link: str = "",
    title: str = "",
    updated: datetime = NOON,
    published: datetime | None = None,
    text: str = "Text",
    more: str = "",
) -> str:
    """An Atom entry."""
    dated = f"<published>{published.isoformat()}</published>" if published else ""
    return (
        f"<entry><id>{id}</id><title>{title or f'Entry {id}'}</title>"
        f'<link href="{link or f"https://site.example/{id}"}"/>{dated}'
        f"<updated>{updated.isoformat()}</updated><summary>{text}</summary>{more}"
        "</entry>"
    )


def site_atom(*entries: str, root: str = "") -> bytes:
    head = "<id>tag:site.example,2026:feed</id><title>Site</title>"
    return atom(*entries, head=head, root=root)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one document brought: entries by their titles, in the order of the log."""

    commit: FetchCommit
    new: tuple[str, ...]
    updated: tuple[str, ...]  # logged, for those who ask for all updates
    fresh: tuple[str, ...]  # of those, the ones that everybody gets

    @property
    def is_silent(self) -> bool:
        return not self.commit.records

    @property
    def kinds(self) -> list[str]:
        return [record.kind.value for record in self.commit.records]

    @property
    def entries(self) -> list[Entry]:
        return list(self.commit.entries)

    @property
    def sources(self) -> list[IdSource]:
        return [each.id_source for each in self.entries]

    @property
    def polling(self) -> Polling:
        return self.commit.polling


@dataclass
class Newsreader:
    """Reads one document after another, an hour apart."""

    at: datetime = NOON
    target: FetchTarget = field(default_factory=a_target)
    readings: list[Reading] = field(default_factory=list)

    def read(
        self,
        body: bytes,
        *,
        after: timedelta = HOUR,
        redirects: tuple[FollowedRedirect, ...] = (),
        elsewhere: bytes = b"",
        is_partial: bool = False,
    ) -> Reading:
        self.at += after
        url = redirects[-1].target if redirects else self.target.feed.url
        answer = replace(
            an_answer(200, body, at=self.at, url=url),
            redirects=redirects,
            is_partial=is_partial,
        )
        commit = decide(
            Decision(
                target=self.target,
                fetched=answer,
                understood=self._understand(body),
                rules=RULES,
                jitter=0.0,
                reason=PollReason.PLANNED,
                elsewhere=elsewhere,
            )
        )
        self._apply(commit)
        self.readings.append(_reading(commit))
        return self.readings[-1]

    def _understand(self, body: bytes) -> ParseOutcome:
        if is_known_body(self.target.feed.polling, body_hash(body)):
            return ParseOutcome()
        context = ParseContext(url=self.target.feed.url, now=self.at)
        try:
            return ParseOutcome(feed=parse_leniently(body, context))
        except FeedError as error:
            return ParseOutcome(error=error)

    def _apply(self, commit: FetchCommit) -> None:
        feed = replace(
            self.target.feed,
            polling=commit.polling,
            next_fetch=commit.next_fetch,
            format=commit.format or self.target.feed.format,
        )
        seen = commit.seen if commit.seen is not None else self.target.seen
        self.target = replace(self.target, feed=feed, seen=seen)


def _reading(commit: FetchCommit) -> Reading:
    titles = {each.key: each.title for each in commit.entries}
    told: dict[RecordKind, list[tuple[str, bool]]] = {}
    for record in commit.records:
        named = [(titles.get(key, key), is_fresh) for key, is_fresh in record.entries]
        told.setdefault(record.kind, []).extend(named)
    updated = told.get(RecordKind.UPDATED, [])
    return Reading(
        commit=commit,
        new=tuple(title for title, _ in told.get(RecordKind.ENTRIES, [])),
        updated=tuple(title for title, _ in updated),
        fresh=tuple(title for title, is_fresh in updated if is_fresh),
    )


def reader_of(*documents: bytes) -> Newsreader:
    """A reader that has read these documents before."""
    reader = Newsreader()
    for document in documents:
        reader.read(document)
    return reader
