"""Differences: what a site says has changed since the last time.

Few servers know them, and not all of those tell everything: some never report an
edit, some report every page as updated, some never a deletion.
"""

from __future__ import annotations

from typing import Final

from hub.core.sites.openfeeder.session import STEP, Session
from hub.core.sites.steps import Part, ask
from protocols.model import Deletion
from protocols.openfeeder.read.documents import Changes
from protocols.openfeeder.read.entries import key_of
from protocols.openfeeder.read.places import changes_url

REFUSED = (400, 422)
"""The server does not want this cursor."""
MOST_MISSES: Final = 3
"""Answers in a row that are asked for again, for a page that could not be read."""


def read_changes(session: Session) -> Part[bool]:
    """Whether the site has told all that is new, deletions included."""
    state = session.state
    if not (state.cursor and state.gives_changes and session.visit.is_read):
        return False
    fetched = yield from ask(changes_url(state.endpoint, state.cursor))
    is_refused = fetched.status in REFUSED
    changes = None if is_refused else session.listing(fetched)
    if not isinstance(changes, Changes):
        cursor = "" if is_refused else state.cursor
        session.set(gives_changes=False, cursor=cursor, next_cursor="", read_through="")
        return False
    session.set(tracks_deletions=changes.tracks_deletions)
    if changes.changed or changes.deleted:
        yield from _take(session, changes)
    return changes.tracks_deletions and changes.is_whole


def _take(session: Session, changes: Changes) -> Part[None]:
    """In the order of keys, so that a reading that was interrupted goes on.

    What changes meanwhile is told the next time, for then it is asked with the cursor
    of the first answer.
    """
    state = session.state
    session.set(next_cursor=state.next_cursor or changes.cursor)
    items = {key_of(item.url): item for item in changes.changed}
    waiting = sorted(key for key in items if key > state.read_through)
    for number, key in enumerate(waiting, 1):
        is_read = yield from session.read_pages([items[key]])
        lacks_some = session.state.lacks_some or not is_read
        session.set(read_through=key, lacks_some=lacks_some)
        if number % STEP == 0:
            yield from session.save()
    deletions = tuple(
        Deletion(key=key, id=each.url, at=each.at)
        for each in changes.deleted
        if (key := key_of(each.url)) not in items  # present beats gone
    )
    _turn(session)
    if deletions:  # an index that is as it was lists what was just deleted
        session.set(marks=(), checked=0)
    yield from session.save(deletions=deletions)


def _turn(session: Session) -> None:
    """On to the next cursor. Before a page that could not be read it stays: the site
    will not tell of that again. A page that never can be is not waited for."""
    state = session.state
    is_held = state.lacks_some and state.misses < MOST_MISSES
    session.set(
        cursor=state.cursor if is_held else state.next_cursor or state.cursor,
        misses=state.misses + 1 if is_held else 0,
        next_cursor="",
        read_through="",
        lacks_some=False,
    )
