"""A walk over an OpenFeeder site.

The index is the truth: what it lists is there, what it lacks is gone once ``?url=``
says so, too. Differences (``since``) are a quicker way to the same, where an answer
really carries ``sync``.
"""

from __future__ import annotations

from contextlib import suppress

from hub.core.sites.openfeeder.changes import read_changes
from hub.core.sites.openfeeder.index import begin_walk, go_on, index_is_same
from hub.core.sites.openfeeder.pace import is_long, needs_reread, needs_walk
from hub.core.sites.openfeeder.session import Session
from hub.core.sites.steps import Ended, Exhausted, Failed, Part, SiteVisit, Walk
from protocols.errors import FeedError
from protocols.openfeeder.read.documents import head_of, read_front


def openfeeder_walk(visit: SiteVisit) -> Walk:
    """What is to be asked of a site, and what its answers come to."""
    session = Session(visit)
    try:
        yield from _visit(session)
    except Exhausted:
        yield from session.save_reached()
        raise
    except Failed as failure:
        with suppress(Exhausted):  # its answer says when to ask again
            yield from session.save_reached()
        return Ended(trouble=failure.trouble, answer=failure.answer)
    except FeedError as error:
        return Ended(trouble=str(error), answer=visit.front)
    return Ended(answer=session.answer, problems=tuple(session.problems))


def _visit(session: Session) -> Part[None]:
    """Finish what is under way; else differences, and the index where it is needed."""
    _discover(session)
    if session.state.page or session.state.confirming:
        yield from go_on(session)
        return
    is_told = yield from read_changes(session)
    state, visit = session.state, session.visit
    if needs_reread(state, session.now, visit.reread_every):
        yield from begin_walk(session, is_thorough=True)
    elif not is_told or needs_walk(state, session.now, visit.walk_every):
        yield from _look_at_index(session)
    yield from session.save_changes()


def _look_at_index(session: Session) -> Part[None]:
    if not needs_walk(session.state, session.now, 0.0):
        return
    is_same = yield from index_is_same(session)
    if not is_same:
        yield from begin_walk(session, is_thorough=False)
        return
    age = session.now - session.state.walked_at
    if is_long(session.state) or age >= session.visit.walk_every:
        session.set(walked_at=session.now)


def _discover(session: Session) -> None:
    front = session.visit.front
    if not front.body:
        return
    before = session.state
    session.state = before.found(read_front(front.body, front.url))
    if session.state.discovery != before.discovery:
        session.head = head_of(session.state.discovery)
