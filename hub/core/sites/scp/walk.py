"""A walk over an SCP site: its sitemap is the front document.

Collections are read in the order of their plan. Once all sections were read from a
snapshot on, whatever was in none of their files is gone. Where a collection cannot be
used the site's feed is read instead, until it can.
"""

from __future__ import annotations

from typing import Final

from hub.core.sites.scp.fallback import read_feed
from hub.core.sites.scp.files import (
    Missing,
    Unusable,
    mark_broken,
    pass_by,
    read_file,
)
from hub.core.sites.scp.session import Session
from hub.core.sites.scp.state import LAST_RETRY, ScpState, file_of
from hub.core.sites.steps import (
    Ended,
    Failed,
    Part,
    SiteVisit,
    Walk,
    count,
    find_unlisted,
)
from protocols.errors import FeedError
from protocols.model import Deletion
from protocols.scp.read.plans import SectionPlan, plan_section, wanted_sections
from protocols.scp.read.sitemaps import SiteFile, SiteMap, read_sitemap

MOST_GONE: Final = 0.5
"""The share of a site that may be missing at once without being seen twice."""
_STEP: Final = 200
_FIRST_RETRY: Final = 3_600.0


def scp_walk(visit: SiteVisit) -> Walk:
    """What is to be asked of a site, and what its answers come to."""
    session = Session(visit)
    try:
        yield from _visit(session)
    except Failed as failure:
        return Ended(
            trouble=failure.trouble,
            answer=failure.answer,
            problems=tuple(session.problems),
        )
    except FeedError as error:
        return Ended(trouble=str(error), answer=visit.front)
    return Ended(problems=tuple(session.problems))


def _visit(session: Session) -> Part[None]:
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
    except Unusable as unusable:
        yield from _fall_back(session, str(unusable))
        return
    yield from _finish(session)
    if session.state.doubted:
        yield from _fall_back(session, session.state.doubted)
    else:
        yield from _tell_of_gaps(session)


def _tell_of_gaps(session: Session) -> Part[None]:
    """What a missing delta had may be in the feed until a snapshot has it."""
    sections = session.state.sections.items()
    broken = sorted(name for name, section in sections if section.is_broken)
    for name in broken:
        session.note(
            f"section {name}: a delta is missing; what it had comes with the next"
            " snapshot"
        )
    if not broken:
        session.set(missing="")
    elif session.state.missing:
        yield from read_feed(session, session.state.missing, is_needed=False)
    yield from session.save_changes()


def _read_pending(session: Session, sitemap: SiteMap | None) -> Part[None]:
    """Raises `Failed` and `Unusable`."""
    while session.state.pending:
        file = session.state.pending[0]
        try:
            yield from read_file(session, file)
        except Unusable:
            if file.since is not None:
                mark_broken(session, file.section)
            raise
        except Missing as missing:
            session.set(missing=str(missing))
            mark_broken(session, file.section)
            if sitemap is not None:
                _plan(session, sitemap)
            if session.state.pending[:1] == (file,):  # no snapshot has it yet
                pass_by(session, file)


def _plan(session: Session, sitemap: SiteMap) -> None:
    """What is pending is planned anew: whatever was read of it is in the state, but
    for a file that is half read."""
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
            session.note(f"section {name}: what is wanted next has expired")
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


def _doubt(file: SiteFile, session: Session) -> str:
    is_ahead = file.generated > session.visit.now
    when = "lies in the future" if is_ahead else "is too long ago"
    return f"{file.url}: generated {file.generated:%Y-%m-%d} {when}"


def _files(sitemap: SiteMap, section: str) -> list[SiteFile]:
    return [each for each in sitemap.files if each.section == section]


def _is_full(plan: SectionPlan) -> bool:
    return bool(plan.files) and plan.files[0].since is None and not plan.is_broken


def _is_full_due(session: Session, sitemap: SiteMap) -> bool:
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


def _finish(session: Session) -> Part[None]:
    """All that was pending is read; what no file had is gone."""
    if session.state.is_full:
        if session.is_read and session.state.was_read:
            yield from _sweep(session)
        session.set(is_full=False, full_at=session.now)
    if session.state.sections:
        session.set(was_read=True)
        if not session.is_read:
            yield from session.save(is_read=True)
    yield from session.save_changes()


def _sweep(session: Session) -> Part[None]:
    state = session.state
    tally = yield from count(state.walk)
    if tally.unlisted > MOST_GONE * tally.pages and not state.is_suspected:
        session.note(
            f"{tally.unlisted} of {tally.pages} pages are missing in the snapshot;"
            " not believed until the next one says so again"
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


def _fall_back(session: Session, reason: str) -> Part[None]:
    """SCP, "Fallback Strategy", for a hub of feeds: the site's feed."""
    failures = session.state.failures + 1
    wait = min(_FIRST_RETRY * 2 ** min(failures - 1, 10), LAST_RETRY)
    session.set(failing=reason, failures=failures, retry_at=session.now + wait)
    yield from session.save_changes()
    yield from read_feed(session, reason)
