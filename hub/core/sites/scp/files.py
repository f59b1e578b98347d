"""Reading one collection: what it must be before it is believed, and its pages."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from hub.core.sites.scp.session import Session
from hub.core.sites.scp.state import File, Section, moment
from hub.core.sites.steps import Download, Downloaded, Failed, Part, download, unroll
from protocols.scp.collection import CollectionType
from protocols.scp.read.heads import HeadRules, SiteHead

STALE: Final = timedelta(days=1)
"""How much older than its sitemap says a file may be: whoever serves old ones replays
them (SCP, "Replay Attacks")."""
_TEMPORARY: Final = (0, 401, 403, 408, 425, 429)


_GONE: Final = (404, 410)


class Unusable(Exception):
    """A collection that cannot be used, and will not be by asking soon again."""


class Missing(Exception):
    """A delta that is named, but not there: what it had the next snapshot has."""


def read_file(session: Session, file: File) -> Part[None]:
    """Read what is left of the first file that is pending, and go on to the next.

    Raises `Failed`, `Unusable` and `Missing`.
    """
    if file.expires is not None and file.expires <= session.now:
        session.note(f"{file.url}: has expired")
        session.set(pending=(), line=0, is_full=False)
        return
    downloaded = yield from _fetch(session, file)
    is_same = downloaded.fetched.status == 304
    if is_same or downloaded.head is None:
        session.set(is_full=False)  # what it lists was found to be gone before
    else:
        _check(session, file, downloaded, downloaded.head)
        while True:
            unrolled = yield from unroll(session.state.line)
            if unrolled.error:
                raise Unusable(f"{file.url}: {unrolled.error}")
            for warning in unrolled.warnings:
                session.note(f"{file.url}: {warning}")
            if not unrolled.pages:
                break
            session.set(line=unrolled.line)
            yield from session.save_newer(unrolled.pages)
    _advance(session, file, downloaded)
    yield from session.save()


def _fetch(session: Session, file: File) -> Part[Downloaded]:
    is_https = session.visit.front.url.lower().startswith("https:")
    if is_https and not file.url.lower().startswith("https:"):
        raise Unusable(f"{file.url}: named over https, must be there too")
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
            raise Missing(f"{file.url}: {fetched.error}")
        is_temporary = fetched.status in _TEMPORARY or fetched.status >= 500
        if is_temporary and not fetched.is_lasting:
            raise Failed(fetched, fetched.error)
        raise Unusable(f"{file.url}: {fetched.error}")
    if downloaded.error is not None:
        raise Unusable(f"{file.url}: {downloaded.error}")
    return downloaded


def _validators(session: Session, file: File) -> tuple[str, str]:
    """Of a snapshot that was read before and is all there is to be read: if it is the
    same, nothing is gone either. Beside others its pages have to be seen again."""
    state = session.state
    known = state.sections.get(file.section)
    is_alone = len(state.pending) == len(state.sections) == 1 and not state.line
    if known is None or known.url != file.url or not is_alone:
        return "", ""
    return known.etag, known.last_modified


def _check(
    session: Session, file: File, downloaded: Downloaded, head: SiteHead
) -> None:
    """Whether it is what the sitemap says. Raises `Unusable`."""
    if head.section != file.section:
        raise Unusable(f"{file.url}: is of the section {head.section[:80]}")
    is_snapshot = head.type is CollectionType.SNAPSHOT
    if is_snapshot != (file.since is None):
        raise Unusable(f"{file.url}: is a {head.type}")
    if moment(file.generated) - head.generated > STALE:
        raise Unusable(f"{file.url}: is older than the sitemap says")
    for warning in downloaded.warnings:
        session.note(f"{file.url}: {warning}")
    if downloaded.unknown or (is_snapshot and downloaded.lines != file.pages):
        if is_snapshot and downloaded.lines != file.pages:
            session.note(
                f"{file.url}: has {downloaded.lines} pages, not {file.pages};"
                " nothing it lacks is taken to be gone"
            )
        session.set(is_full=False)
    if file.since is not None and (head.since or head.generated).timestamp() > (
        file.since
    ):
        mark_broken(session, file.section)


def pass_by(session: Session, file: File) -> None:
    """Go on behind a delta that is missing."""
    section = session.state.sections.get(file.section, Section(reached=0.0))
    reached = max(section.reached, file.generated)
    broken = replace(section, reached=reached, is_broken=True)
    session.set(
        sections={**session.state.sections, file.section: broken},
        pending=session.state.pending[1:],
        line=0,
        is_full=False,
    )


def mark_broken(session: Session, section: str) -> None:
    """Something of it was missed, until the next snapshot."""
    sections = dict(session.state.sections)
    if section in sections:
        sections[section] = replace(sections[section], is_broken=True)
    session.set(sections=sections, is_full=False)


def _advance(session: Session, file: File, downloaded: Downloaded) -> None:
    state = session.state
    before = state.sections.get(file.section, Section(reached=0.0))
    reached = max(before.reached, file.generated)
    if file.since is None:
        fetched = downloaded.fetched
        is_same = fetched.status == 304
        section = Section(
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
