"""The site's feed, where its collections cannot be used."""

from __future__ import annotations

from urllib.parse import urljoin

from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.core.sites.scp.session import Session
from hub.core.sites.steps import Failed, Part, ReadPage, ask, parse
from protocols.errors import FeedError, NotAFeed
from protocols.feeds.discovery import choose, discover_in_header
from protocols.identity import key_of_id
from protocols.model import Entry, ParsedFeed
from protocols.urls import is_web_url


def read_feed(session: Session, reason: str, *, is_needed: bool = True) -> Part[None]:
    """What it has that is not known; ``reason``: why there is no SCP. Raises `Failed`

    for that, if there is no feed either and one ``is_needed``.
    """
    feed = yield from _find(session)
    if feed is None:
        if is_needed:
            front = session.visit.front
            raise Failed(front, f"{reason}; and no feed was found")
        session.note(reason)
        return
    session.note(f"{reason}; the site's feed is read instead: {session.state.feed_url}")
    pages = tuple(filter(None, (_page(session, each) for each in feed.entries)))
    if pages:
        yield from session.save_newer(pages, only_unknown=True)
    if not session.is_read:
        yield from session.save(is_read=True)


def _find(session: Session) -> Part[ParsedFeed | None]:
    """At its known address, or where the site's first page says."""
    for url in filter(None, (session.state.feed_url, _home(session))):
        fetched = yield from ask(url)
        found = yield from _understand(fetched)
        if isinstance(found, NotAFeed):
            named = discover_in_header(fetched.link, fetched.url) + found.feeds
            best = choose(named).best
            if best is None:
                continue
            fetched = yield from ask(best.href)
            found = yield from _understand(fetched)
        if isinstance(found, ParsedFeed) and not found.format.is_site:
            session.set(feed_url=fetched.url)
            return found
    session.set(feed_url="")
    return None


def _home(session: Session) -> str:
    return urljoin(session.visit.front.url, "/")


def _understand(fetched: Fetched) -> Part[ParsedFeed | FeedError | None]:
    if fetched.error or not fetched.body:
        return None
    return (yield from parse(fetched))


def _page(session: Session, entry: Entry) -> ReadPage | None:
    """An entry known by its page, as it is in collections; None without one."""
    url = next((e.href for e in entry.links if e.rel == "alternate"), "")
    if not is_web_url(url):
        return None
    at = entry.updated or entry.published or session.visit.now
    return ReadPage(
        entry=replace(entry, key=key_of_id(url), id=url),
        reference=url,
        stamp=max(0, int(at.timestamp() * 1000)),
    )
