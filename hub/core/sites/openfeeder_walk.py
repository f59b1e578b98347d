"""A walk over an OpenFeeder site.

The index is authoritative: a page it lists exists, and a page it lacks is gone once
``?url=`` confirms it. Differences (``since``) tell the same faster if an answer really
has ``sync``. Few servers support them, and not all of those report everything: some
never report an edit, some report every page as updated, some never a deletion. So the
whole index is read again now and then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from hashlib import blake2b
from typing import Final

from hub.core.fetched import Fetched
from hub.core.sites.openfeeder_session import (
    GONE,
    STEP,
    IndexMark,
    OpenFeederSession,
    OpenFeederState,
)
from hub.core.sites.walk_steps import (
    Part,
    SiteVisit,
    VisitExhausted,
    VisitFailed,
    Walk,
    WalkEnded,
    count,
    find_unlisted,
    get,
    load_pages,
)
from protocols.dates import parse_date
from protocols.model import Deletion
from protocols.openfeeder.read.site_answers import (
    ListedChanges,
    ListedIndex,
    ListedItem,
    head_of,
    read_front,
    time_of,
)
from protocols.openfeeder.read.site_entries import is_of, key_of
from protocols.openfeeder.read.site_urls import LIMIT, changes_url, index_url
from protocols.protocol_errors import FeedError
from protocols.urls import resolve
from storage.records import StoredSitePage

SHARE: Final = 0.1
"""The share of time, at a request a second, that may be spent on reading unchanged
pages."""


def needs_walk(state: OpenFeederState, now: float, every: float) -> bool:
    """Whether the index must be looked at: every so many seconds if the site reports
    all changes by itself, else at each visit; a long index less often."""
    interval = every if reports_all(state) else 0.0
    return now - state.walked_at >= max(interval, state.total_pages / SHARE - 60.0)


def is_long(state: OpenFeederState) -> bool:
    """Whether the index is too long to be looked at in each visit."""
    return state.total_pages / SHARE > 60.0


def needs_reread(state: OpenFeederState, now: float, every: float) -> bool:
    """Whether every page is to be read again: some edits show in no index."""
    if reports_all(state):
        return False
    interval = max(every, state.total_pages * LIMIT / SHARE)
    return now - state.reread_at >= interval


def reports_all(state: OpenFeederState) -> bool:
    """Whether the site reports all changes by itself, as far as is known."""
    is_differential = state.gives_changes and bool(state.cursor)
    return is_differential and state.tracks_deletions


MOST_GONE: Final = 0.5
"""The largest share of a site that may be missing at once without being looked for
again."""


def confirm_absence(session: OpenFeederSession) -> Part[None]:
    """Delete pages that neither the finished walk nor ``?url=`` finds any more."""
    state = session.state
    if not session.visit.is_read or state.is_doubtful:
        return
    if not state.confirmed and (yield from _is_suspicious(session)):
        session.set(is_suspected=True, marks=())
        return
    while True:
        missing = yield from find_unlisted(
            state.walk, after=session.state.confirmed, limit=STEP
        )
        if not missing:
            break
        yield from _confirm(session, missing)
    session.set(is_suspected=False)


def _is_suspicious(session: OpenFeederSession) -> Part[bool]:
    """Whether most pages are gone at once.

    That is usually an accident: it is believed only when the next walk says so again.
    """
    tally = yield from count(session.state.walk)
    is_much = tally.unlisted > MOST_GONE * tally.pages
    if is_much and not session.state.is_suspected:
        session.note(
            f"{tally.unlisted} of {tally.pages} pages are missing in the index;"
            " ignored until the next walk confirms it"
        )
        return True
    return False


def _confirm(
    session: OpenFeederSession, missing: Sequence[StoredSitePage]
) -> Part[None]:
    for each in missing:
        url = resolve(each.reference, session.state.site_url)
        item = ListedItem(reference=each.reference, url=url, digest=each.stamp)
        fetched = yield from session.ask_page(item)
        page = None if fetched.status in GONE else session.page(fetched, item)
        is_there = page is not None and page.url and is_of(page, item)
        if is_there:
            session.take(item, page)
        elif page is not None or fetched.status in GONE:
            session.take_deletion(Deletion(key=each.key, id=url))
        session.set(confirmed=each.key)
    yield from session.save()


REFUSED = (400, 422)
"""The server does not want this cursor."""
MOST_MISSES: Final = 3
"""Answers in a row that are requested again because of a page that could not be
read."""


def read_changes(session: OpenFeederSession) -> Part[bool]:
    """Read what has changed; returns whether the site has reported everything,
    deletions included."""
    state = session.state
    if not (state.cursor and state.gives_changes and session.visit.is_read):
        return False
    fetched = yield from get(changes_url(state.endpoint, state.cursor))
    is_refused = fetched.status in REFUSED
    changes = None if is_refused else session.listing(fetched)
    if not isinstance(changes, ListedChanges):
        cursor = "" if is_refused else state.cursor
        session.set(gives_changes=False, cursor=cursor, next_cursor="", read_through="")
        return False
    session.set(tracks_deletions=changes.tracks_deletions)
    if changes.changed or changes.deleted:
        yield from _take(session, changes)
    return changes.tracks_deletions and changes.is_whole


def _take(session: OpenFeederSession, changes: ListedChanges) -> Part[None]:
    """Take changes in the order of keys, so that an interrupted reading can go on.

    What changes meanwhile is reported the next time, from the first answer's cursor.
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
        if (key := key_of(each.url)) not in items  # unless it is listed as well
    )
    _advance_cursor(session)
    if deletions:  # an unchanged index would still list what was just deleted
        session.set(marks=(), checked=0)
    yield from session.save(deletions=deletions)


def _advance_cursor(session: OpenFeederSession) -> None:
    """Go on to the next cursor, but not past a page that may yet become readable.

    The site will not report it again. A page that stays unreadable is not waited for.
    """
    state = session.state
    is_held = state.lacks_some and state.misses < MOST_MISSES
    session.set(
        cursor=state.cursor if is_held else state.next_cursor or state.cursor,
        misses=state.misses + 1 if is_held else 0,
        next_cursor="",
        read_through="",
        lacks_some=False,
    )


MOST_PAGES: Final = 2_000
"""The most pages of an index that are walked: 100,000 items."""
MOST_MARKS: Final = 200
"""The most pages of an index that are recognized by their validators or bytes."""
MOST_EMPTY: Final = 3
"""So many consecutive pages of an index without items are taken for its end."""
MARGIN: Final = timedelta(seconds=2)
"""Subtracted from the time of an answer, for what changes while the answer is made."""
_EARLIEST: Final = 1970
"""The earliest year that a server's clock is believed to show."""


def index_is_same(session: OpenFeederSession) -> Part[bool]:
    """Whether no page of the index has changed since it was last walked.

    A comparison that does not fit into one visit goes on in the next one.
    """
    state = session.state
    if not state.marks or len(state.marks) < state.total_pages:
        return False
    for number, mark in enumerate(state.marks[state.checked :], state.checked + 1):
        fetched = yield from get(
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


def begin_walk(session: OpenFeederSession, *, is_thorough: bool) -> Part[None]:
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


def go_on(session: OpenFeederSession) -> Part[None]:
    """Finish the walk under way."""
    met: set[str] = set()
    empty = 0
    while session.state.page:
        fetched = yield from get(index_url(session.state.endpoint, session.state.page))
        index = session.listing(fetched)
        if not isinstance(index, ListedIndex):
            raise VisitFailed(fetched, "expected an index")
        if session.state.page == 1 and not session.state.cursor:
            session.set(cursor=_cursor_of(fetched))
        empty = 0 if index.items else empty + 1
        yield from _take_page(session, fetched, index, met, empty)
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


def _take_page(
    session: OpenFeederSession,
    fetched: Fetched,
    index: ListedIndex,
    met: set[str],
    empty: int,
) -> Part[None]:
    """Commit what one page of the index lists, and go on to the next page."""
    number, walk = session.state.page, session.state.walk
    items = {key_of(item.url): item for item in index.items}
    known = yield from load_pages(tuple(items))
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
        marks = (*marks[: number - 1], _mark(fetched) if is_whole else IndexMark())
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


def _is_wanted(
    session: OpenFeederSession, item: ListedItem, before: StoredSitePage | None
) -> bool:
    """Whether a page is to be read: it is new, or its index entry has changed."""
    if before is None or before.is_deleted or session.state.is_thorough:
        return True
    return before.stamp != item.digest


def _was_deleted(item: ListedItem, known: Mapping[str, StoredSitePage]) -> bool:
    """Whether a page is listed just as it was when it was found to be gone.

    Then the index is older than that, unless the page itself is there.
    """
    before = known.get(key_of(item.url))
    return before is not None and before.is_deleted and before.stamp == item.digest


def _is_last(number: int, index: ListedIndex, *, is_new: bool) -> bool:
    """Whether this is the last page of the index.

    Some servers give one page under every number, others say that there are no pages
    at all, and some pages come empty.
    """
    if number >= MOST_PAGES or (index.items and not is_new):
        return True
    if index.total_pages:
        return number >= index.total_pages
    return not index.items


def _mark(fetched: Fetched) -> IndexMark:
    return IndexMark(
        etag=fetched.etag,
        last_modified=fetched.last_modified,
        digest=_digest(fetched),
    )


def _digest(fetched: Fetched) -> int:
    digest = blake2b(fetched.body, digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _cursor_of(fetched: Fetched) -> str:
    """The time at which the server answered, as a cursor: an index has no token."""
    date = parse_date(fetched.date) if fetched.date else None
    if date is None or date.year < _EARLIEST:
        date = fetched.started
    return time_of(date - MARGIN)


def openfeeder_walk(visit: SiteVisit) -> Walk:
    """The requests to a site in order, and what follows from its answers."""
    session = OpenFeederSession(visit)
    try:
        yield from _visit(session)
    except VisitExhausted:
        yield from session.save_reached()
        raise
    except VisitFailed as failure:
        with suppress(VisitExhausted):  # its answer says when to ask again
            yield from session.save_reached()
        return WalkEnded(error=failure.error, answer=failure.answer)
    except FeedError as error:
        return WalkEnded(error=str(error), answer=visit.front)
    return WalkEnded(answer=session.answer, problems=tuple(session.problems))


def _visit(session: OpenFeederSession) -> Part[None]:
    """Finish what is under way; then read differences, and the index where needed."""
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


def _look_at_index(session: OpenFeederSession) -> Part[None]:
    if not needs_walk(session.state, session.now, 0.0):
        return
    is_same = yield from index_is_same(session)
    if not is_same:
        yield from begin_walk(session, is_thorough=False)
        return
    age = session.now - session.state.walked_at
    if is_long(session.state) or age >= session.visit.walk_every:
        session.set(walked_at=session.now)


def _discover(session: OpenFeederSession) -> None:
    front = session.visit.front
    if not front.body:
        return
    before = session.state
    session.state = before.found(read_front(front.body, front.url))
    if session.state.discovery != before.discovery:
        session.head = head_of(session.state.discovery)
