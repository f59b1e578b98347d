"""A walk over an SCP site: its sitemap is the front document.

Collections are read in the order of their plan, and each is verified in full before it
is believed. After all sections were read from a snapshot on, entries in none of their
files are deleted. While a collection cannot be used, the site's feed is read instead.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from urllib.parse import urljoin

from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.core.sites.scp_session import (
    LAST_RETRY,
    ScpFile,
    ScpSection,
    ScpSession,
    ScpState,
    file_of,
    moment,
)
from hub.core.sites.walk_steps import (
    Download,
    Downloaded,
    Part,
    ReadPage,
    SiteVisit,
    VisitFailed,
    Walk,
    WalkEnded,
    count,
    download,
    find_unlisted,
    get,
    parse,
    read_collection,
)
from protocols.feeds.feed_links import choose, discover_in_header
from protocols.identity import key_of_id
from protocols.model import Deletion, Entry, ParsedFeed, first_href
from protocols.protocol_errors import FeedError, NotAFeed
from protocols.scp.collection import CollectionType
from protocols.scp.read.collection_heads import HeadRules, SiteHead
from protocols.scp.read.reading_plans import (
    SectionReadingPlan,
    plan_section,
    wanted_sections,
)
from protocols.scp.read.sitemap_reader import SiteFile, SiteMap, read_sitemap
from protocols.urls import is_web_url


def read_feed(
    session: ScpSession, reason: str, *, is_needed: bool = True
) -> Part[None]:
    """Read what the feed has that is not known yet.

    ``reason`` says why there is no SCP: `VisitFailed` is raised with it if there is no
    feed either and one ``is_needed``.
    """
    feed = yield from _find(session)
    if feed is None:
        if is_needed:
            front = session.visit.front
            raise VisitFailed(front, f"{reason}; and no feed was found")
        session.note(reason)
        return
    session.note(f"{reason}; the site's feed is read instead: {session.state.feed_url}")
    pages = tuple(filter(None, (_page(session, each) for each in feed.entries)))
    if pages:
        yield from session.save_newer(pages, only_unknown=True)
    if not session.is_read:
        yield from session.save(is_read=True)


def _find(session: ScpSession) -> Part[ParsedFeed | None]:
    """The feed at its known address, or where the site's first page says."""
    for url in filter(None, (session.state.feed_url, _home(session))):
        fetched = yield from get(url)
        found = yield from _understand(fetched)
        if isinstance(found, NotAFeed):
            named = discover_in_header(fetched.link, fetched.url) + found.feeds
            best = choose(named).best
            if best is None:
                continue
            fetched = yield from get(best.href)
            found = yield from _understand(fetched)
        if isinstance(found, ParsedFeed) and not found.format.is_site:
            session.set(feed_url=fetched.url)
            return found
    session.set(feed_url="")
    return None


def _home(session: ScpSession) -> str:
    return urljoin(session.visit.front.url, "/")


def _understand(fetched: Fetched) -> Part[ParsedFeed | FeedError | None]:
    if fetched.error or not fetched.body:
        return None
    return (yield from parse(fetched))


def _page(session: ScpSession, entry: Entry) -> ReadPage | None:
    """The feed's entry by its page, as collections have it; None without a page."""
    url = first_href(entry.links, "alternate")
    if not is_web_url(url):
        return None
    at = entry.updated or entry.published or session.visit.now
    return ReadPage(
        entry=replace(entry, key=key_of_id(url), id=url),
        reference=url,
        stamp=max(0, int(at.timestamp() * 1000)),
    )


STALE: Final = timedelta(days=1)
"""How much older than its sitemap says a file may be: an older one is a replay (SCP,
"Replay Attacks")."""
_TEMPORARY: Final = (0, 401, 403, 408, 425, 429)


_GONE: Final = (404, 410)


class UnusableCollection(Exception):
    """A collection that cannot be used, and that will not change soon."""


class MissingDelta(Exception):
    """The sitemap names a delta that does not exist; the next snapshot has its
    content."""


def read_file(session: ScpSession, file: ScpFile) -> Part[None]:
    """Read what is left of the first file that is pending, and go on to the next.

    Raises `VisitFailed`, `UnusableCollection` and `MissingDelta`.
    """
    if file.expires is not None and file.expires <= session.now:
        session.note(f"{file.url}: has expired")
        session.set(pending=(), line=0, is_full=False)
        return
    downloaded = yield from _fetch(session, file)
    is_same = downloaded.fetched.status == 304
    if is_same or downloaded.head is None:
        session.set(is_full=False)  # pages it lacks were found to be gone before
    else:
        _check(session, file, downloaded, downloaded.head)
        while True:
            unrolled = yield from read_collection(session.state.line)
            if unrolled.error:
                raise UnusableCollection(f"{file.url}: {unrolled.error}")
            for warning in unrolled.warnings:
                session.note(f"{file.url}: {warning}")
            if not unrolled.pages:
                break
            session.set(line=unrolled.line)
            yield from session.save_newer(unrolled.pages)
    _advance(session, file, downloaded)
    yield from session.save()


def _fetch(session: ScpSession, file: ScpFile) -> Part[Downloaded]:
    is_https = session.visit.front.url.lower().startswith("https:")
    if is_https and not file.url.lower().startswith("https:"):
        raise UnusableCollection(f"{file.url}: named over https, must be there too")
    etag, last_modified = _validators(session, file)
    want = Download(
        url=file.url,
        rules=HeadRules(now=session.visit.now, checksum=session.visit.checksum),
        etag=etag,
        last_modified=last_modified,
    )
    downloaded = yield from download(want)
    fetched = downloaded.fetched
    if fetched.error:
        if fetched.status in _GONE and file.since is not None:
            raise MissingDelta(f"{file.url}: {fetched.error}")
        is_temporary = fetched.status in _TEMPORARY or fetched.status >= 500
        if is_temporary and not fetched.is_lasting:
            raise VisitFailed(fetched, fetched.error)
        raise UnusableCollection(f"{file.url}: {fetched.error}")
    if downloaded.error is not None:
        raise UnusableCollection(f"{file.url}: {downloaded.error}")
    return downloaded


def _validators(session: ScpSession, file: ScpFile) -> tuple[str, str]:
    """The validators of a snapshot that was read before, if nothing else is to be read.

    If it is unchanged, nothing is gone either. If other files are read, its pages have
    to be listed again.
    """
    state = session.state
    known = state.sections.get(file.section)
    is_alone = len(state.pending) == len(state.sections) == 1 and not state.line
    if known is None or known.url != file.url or not is_alone:
        return "", ""
    return known.etag, known.last_modified


def _check(
    session: ScpSession, file: ScpFile, downloaded: Downloaded, head: SiteHead
) -> None:
    """Raises `UnusableCollection` unless the collection is what the sitemap says."""
    if head.section != file.section:
        raise UnusableCollection(f"{file.url}: is of the section {head.section[:80]}")
    is_snapshot = head.type is CollectionType.SNAPSHOT
    if is_snapshot != (file.since is None):
        raise UnusableCollection(f"{file.url}: is a {head.type}")
    if moment(file.generated) - head.generated > STALE:
        raise UnusableCollection(f"{file.url}: is older than the sitemap says")
    for warning in downloaded.warnings:
        session.note(f"{file.url}: {warning}")
    if downloaded.unknown or (is_snapshot and downloaded.lines != file.pages):
        if is_snapshot and downloaded.lines != file.pages:
            session.note(
                f"{file.url}: has {downloaded.lines} pages, not {file.pages};"
                " missing pages do not count as deleted"
            )
        session.set(is_full=False)
    if file.since is not None and (head.since or head.generated).timestamp() > (
        file.since
    ):
        mark_broken(session, file.section)


def pass_by(session: ScpSession, file: ScpFile) -> None:
    """Skip a delta that is missing."""
    section = session.state.sections.get(file.section, ScpSection(reached=0.0))
    reached = max(section.reached, file.generated)
    broken = replace(section, reached=reached, is_broken=True)
    session.set(
        sections={**session.state.sections, file.section: broken},
        pending=session.state.pending[1:],
        line=0,
        is_full=False,
    )


def mark_broken(session: ScpSession, section: str) -> None:
    """Note that something of a section was missed, until its next snapshot."""
    sections = dict(session.state.sections)
    if section in sections:
        sections[section] = replace(sections[section], is_broken=True)
    session.set(sections=sections, is_full=False)


def _advance(session: ScpSession, file: ScpFile, downloaded: Downloaded) -> None:
    state = session.state
    before = state.sections.get(file.section, ScpSection(reached=0.0))
    reached = max(before.reached, file.generated)
    if file.since is None:
        fetched = downloaded.fetched
        is_same = fetched.status == 304
        section = ScpSection(
            reached=reached,
            snapshot=file.generated,
            url=file.url,
            etag=before.etag if is_same else fetched.etag,
            last_modified=before.last_modified if is_same else fetched.last_modified,
        )
    else:
        is_gap = file.since > before.reached
        section = replace(before, reached=reached, is_broken=before.is_broken or is_gap)
    session.set(
        sections={**state.sections, file.section: section},
        pending=state.pending[1:],
        line=0,
        failing="",
        failures=0,
    )


MOST_GONE: Final = 0.5
"""The largest share of a site that may be missing at once without being seen twice."""
_STEP: Final = 200
_FIRST_RETRY: Final = 3_600.0


def scp_walk(visit: SiteVisit) -> Walk:
    """The requests to a site in order, and what follows from its answers."""
    session = ScpSession(visit)
    try:
        yield from _visit(session)
    except VisitFailed as failure:
        return WalkEnded(
            error=failure.error,
            answer=failure.answer,
            problems=tuple(session.problems),
        )
    except FeedError as error:
        return WalkEnded(error=str(error), answer=visit.front)
    return WalkEnded(problems=tuple(session.problems))


def _visit(session: ScpSession) -> Part[None]:
    front = session.visit.front
    if session.state.is_full and not session.state.pending:
        yield from _finish(session)
    sitemap = read_sitemap(front.body, front.url) if front.body else None
    if sitemap is not None:
        for problem in sitemap.problems:
            session.note(problem)
        _plan(session, sitemap)
        yield from session.save_changes()
    if session.state.failing and session.now < session.state.retry_at:
        yield from read_feed(session, session.state.failing)
        return
    try:
        yield from _read_pending(session, sitemap)
    except UnusableCollection as unusable:
        yield from _fall_back(session, str(unusable))
        return
    yield from _finish(session)
    if session.state.doubted:
        yield from _fall_back(session, session.state.doubted)
    else:
        yield from _tell_of_gaps(session)


def _tell_of_gaps(session: ScpSession) -> Part[None]:
    """Read the feed for what a missing delta had, until a snapshot has it."""
    sections = session.state.sections.items()
    broken = sorted(name for name, section in sections if section.is_broken)
    for name in broken:
        session.note(
            f"section {name}: a delta is missing; its changes come with the next"
            " snapshot"
        )
    if not broken:
        session.set(missing="")
    elif session.state.missing:
        yield from read_feed(session, session.state.missing, is_needed=False)
    yield from session.save_changes()


def _read_pending(session: ScpSession, sitemap: SiteMap | None) -> Part[None]:
    """Read the pending collections. Raises `VisitFailed` and `UnusableCollection`."""
    while session.state.pending:
        file = session.state.pending[0]
        try:
            yield from read_file(session, file)
        except UnusableCollection:
            if file.since is not None:
                mark_broken(session, file.section)
            raise
        except MissingDelta as missing:
            session.set(missing=str(missing))
            mark_broken(session, file.section)
            if sitemap is not None:
                _plan(session, sitemap)
            if session.state.pending[:1] == (file,):  # no snapshot has it yet
                pass_by(session, file)


def _plan(session: ScpSession, sitemap: SiteMap) -> None:
    """Plan again what is pending.

    What was read of it is in the state, except for a file that is half read.
    """
    state, now = session.state, session.visit.now
    sections = wanted_sections(sitemap)
    if not sections:
        session.note("the sitemap names no collections")
    plans = {
        name: plan_section(_files(sitemap, name), state.section(name), now)
        for name in sections
    }
    if _is_full_due(session, sitemap):
        plans = {
            name: plan_section(_files(sitemap, name), None, now, is_full=True)
            for name in sections
        }
    pending = tuple(file_of(f) for plan in plans.values() for f in plan.files)
    for name, plan in plans.items():
        if plan.is_expired:
            session.note(f"section {name}: what is needed next has expired")
    doubted = [each.incredible for each in plans.values() if each.incredible]
    is_full = bool(plans) and all(map(_is_full, plans.values()))
    is_under_way = state.line > 0 and pending[:1] == state.pending[:1]
    session.set(
        pending=pending,
        line=state.line if is_under_way else 0,
        is_full=is_full,
        walk=state.walk + (is_full and not (is_under_way and state.is_full)),
        doubted=_doubt(doubted[0], session) if doubted else "",
    )
    if pending != state.pending or (state.doubted and not doubted):
        session.set(failing="", retry_at=0.0)


def _doubt(file: SiteFile, session: ScpSession) -> str:
    is_ahead = file.generated > session.visit.now
    when = "lies in the future" if is_ahead else "is too long ago"
    return f"{file.url}: generated {file.generated:%Y-%m-%d} {when}"


def _files(sitemap: SiteMap, section: str) -> list[SiteFile]:
    return [each for each in sitemap.files if each.section == section]


def _is_full(plan: SectionReadingPlan) -> bool:
    return bool(plan.files) and plan.files[0].since is None and not plan.is_broken


def _is_full_due(session: ScpSession, sitemap: SiteMap) -> bool:
    """SCP, "Deletion Handling": "MUST periodically download full snapshots"."""
    state: ScpState = session.state
    if session.now - state.full_at < session.visit.walk_every:
        return False
    return any(
        each.since is None
        and (known := state.sections.get(each.section)) is not None
        and each.generated.timestamp() > (known.snapshot or 0.0)
        for each in sitemap.files
    )


def _finish(session: ScpSession) -> Part[None]:
    """Everything pending is read: delete pages that were in no file."""
    if session.state.is_full:
        if session.is_read and session.state.was_read:
            yield from _sweep(session)
        session.set(is_full=False, full_at=session.now)
    if session.state.sections:
        session.set(was_read=True)
        if not session.is_read:
            yield from session.save(is_read=True)
    yield from session.save_changes()


def _sweep(session: ScpSession) -> Part[None]:
    state = session.state
    tally = yield from count(state.walk)
    if tally.unlisted > MOST_GONE * tally.pages and not state.is_suspected:
        session.note(
            f"{tally.unlisted} of {tally.pages} pages are missing in the snapshot;"
            " ignored until the next one confirms it"
        )
        session.set(is_suspected=True)
        return
    session.set(is_suspected=False)
    after = ""  # what was looked at before is listed, or deleted
    while True:
        missing = yield from find_unlisted(state.walk, after=after, limit=_STEP)
        if not missing:
            return
        after = missing[-1].key
        gone = tuple(Deletion(key=each.key, id=each.reference) for each in missing)
        yield from session.save(deletions=gone)


def _fall_back(session: ScpSession, reason: str) -> Part[None]:
    """Read the site's feed instead (SCP, "Fallback Strategy")."""
    failures = session.state.failures + 1
    wait = min(_FIRST_RETRY * 2 ** min(failures - 1, 10), LAST_RETRY)
    session.set(failing=reason, failures=failures, retry_at=session.now + wait)
    yield from session.save_changes()
    yield from read_feed(session, reason)
