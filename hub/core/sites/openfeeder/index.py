"""The index: what it lists is there, and what it lacks may be gone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from hashlib import blake2b
from typing import Final

from hub.core.fetched import Fetched
from hub.core.sites.openfeeder.absence import confirm_absence
from hub.core.sites.openfeeder.session import STEP, Session
from hub.core.sites.openfeeder.state import Mark
from hub.core.sites.steps import Failed, Part, ask, recall
from protocols.dates import parse_date
from protocols.openfeeder.read.documents import Index, Listed, time_of
from protocols.openfeeder.read.entries import key_of
from protocols.openfeeder.read.places import index_url
from storage.records import StoredSitePage

MOST_PAGES: Final = 2_000
"""Of an index that are walked: 100,000 items."""
MOST_MARKS: Final = 200
"""Pages of an index that are known again by their validators or bytes."""
MOST_EMPTY: Final = 3
"""Pages of an index in a row that list nothing, before it is taken to end."""
MARGIN: Final = timedelta(seconds=2)
"""Before the time of an answer, for what is changed while it is made."""
_EARLIEST: Final = 1970
"""The year. A clock that says less is none, and before the year 1 there is no time."""


def index_is_same(session: Session) -> Part[bool]:
    """Whether every page of the index is as it was when it was walked last.

    A comparison that a visit has no room for goes on in the next one.
    """
    state = session.state
    if not state.marks or len(state.marks) < state.total_pages:
        return False
    for number, mark in enumerate(state.marks[state.checked :], state.checked + 1):
        fetched = yield from ask(
            index_url(state.endpoint, number),
            etag=mark.etag,
            last_modified=mark.last_modified,
        )
        session.check(fetched)
        if fetched.status != 304 and _digest(fetched) != mark.digest:
            return False
        session.set(checked=number)
    session.set(checked=0)
    return True


def begin_walk(session: Session, *, is_thorough: bool) -> Part[None]:
    """Walk the whole index; a thorough walk reads every page anew."""
    session.set(
        walk=session.state.walk + 1,
        page=1,
        is_thorough=is_thorough,
        is_doubtful=False,
        began_at=session.now,
        marks=(),
        checked=0,
        gives_changes=session.state.gives_changes or is_thorough,
    )
    yield from go_on(session)


def go_on(session: Session) -> Part[None]:
    """Finish the walk under way."""
    met: set[str] = set()
    empty = 0
    while session.state.page:
        fetched = yield from ask(index_url(session.state.endpoint, session.state.page))
        index = session.listing(fetched)
        if not isinstance(index, Index):
            raise Failed(fetched, "expected an index")
        if session.state.page == 1 and not session.state.cursor:
            session.set(cursor=_cursor_of(fetched))
        empty = 0 if index.items else empty + 1
        yield from _take(session, fetched, index, met, empty)
    yield from confirm_absence(session)
    state = session.state
    is_reread = state.is_thorough or not state.reread_at
    session.set(
        confirming=False,
        confirmed="",
        walked_at=state.began_at,
        reread_at=state.began_at if is_reread else state.reread_at,
    )
    yield from session.save(is_read=True)


def _take(
    session: Session, fetched: Fetched, index: Index, met: set[str], empty: int
) -> Part[None]:
    """Save what one page of the index lists, and turn it."""
    number, walk = session.state.page, session.state.walk
    items = {key_of(item.url): item for item in index.items}
    known = yield from recall(tuple(items))
    fresh = [key for key in items if key not in known or known[key].walk < walk]
    wanted = [key for key in fresh if _is_wanted(session, items[key], known.get(key))]
    listed = tuple(key for key in fresh if key not in set(wanted))
    is_last = _is_last(number, index, is_new=bool(set(fresh) - met))
    is_last = is_last or empty >= MOST_EMPTY
    met.update(fresh)
    is_whole = index.is_whole
    parts = [wanted[at : at + STEP] for at in range(0, len(wanted), STEP)] or [[]]
    deleted = frozenset(key for key in wanted if _was_deleted(items[key], known))
    for part in parts:
        is_read = yield from session.read_pages([items[key] for key in part], deleted)
        is_whole = is_whole and is_read
        if part is not parts[-1]:
            yield from session.save()
    marks = session.state.marks
    if number <= MOST_MARKS:
        marks = (*marks[: number - 1], _mark(fetched) if is_whole else Mark())
    is_cut = number >= MOST_PAGES
    session.set(
        page=0 if is_last else number + 1,
        confirming=is_last,
        confirmed="",
        total_pages=number,
        is_doubtful=session.state.is_doubtful or not index.is_whole or is_cut,
        marks=marks,
    )
    yield from session.save(listed=listed)


def _is_wanted(session: Session, item: Listed, before: StoredSitePage | None) -> bool:
    """Whether a page is to be read: it is new, or its index entry has changed."""
    if before is None or before.is_deleted or session.state.is_thorough:
        return True
    return before.stamp != item.digest


def _was_deleted(item: Listed, known: Mapping[str, StoredSitePage]) -> bool:
    """Whether it is listed just as it was when it was told to be gone: by an index that
    is older than that, unless the page itself is there."""
    before = known.get(key_of(item.url))
    return before is not None and before.is_deleted and before.stamp == item.digest


def _is_last(number: int, index: Index, *, is_new: bool) -> bool:
    """There are servers that give one page under every number, others that say that
    there are no pages at all, and pages that come empty."""
    if number >= MOST_PAGES or (index.items and not is_new):
        return True
    if index.total_pages:
        return number >= index.total_pages
    return not index.items


def _mark(fetched: Fetched) -> Mark:
    return Mark(
        etag=fetched.etag,
        last_modified=fetched.last_modified,
        digest=_digest(fetched),
    )


def _digest(fetched: Fetched) -> int:
    digest = blake2b(fetched.body, digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _cursor_of(fetched: Fetched) -> str:
    """An index has no token: the time at which the server answered."""
    date = parse_date(fetched.date) if fetched.date else None
    if date is None or date.year < _EARLIEST:
        date = fetched.started
    return time_of(date - MARGIN)
