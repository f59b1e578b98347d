"""What the index lacks: asked for by itself before it is taken to be gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hub.core.sites.openfeeder.session import GONE, STEP, Session
from hub.core.sites.steps import Part, count, find_unlisted
from protocols.model import Deletion
from protocols.openfeeder.read.documents import Listed
from protocols.openfeeder.read.entries import is_of
from protocols.urls import resolve
from storage.records import StoredSitePage

MOST_GONE: Final = 0.5
"""The share of a site that may be missing at once without being looked for again."""


def confirm_absence(session: Session) -> Part[None]:
    """Delete what neither the walk that has ended nor ``?url=`` finds any more."""
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


def _is_suspicious(session: Session) -> Part[bool]:
    """A site that has lost most of its pages has more often had an accident: it is
    believed when the next walk says so again."""
    tally = yield from count(session.state.walk)
    is_much = tally.unlisted > MOST_GONE * tally.pages
    if is_much and not session.state.is_suspected:
        session.note(
            f"{tally.unlisted} of {tally.pages} pages are missing in the index;"
            " not believed until it says so again"
        )
        return True
    return False


def _confirm(session: Session, missing: Sequence[StoredSitePage]) -> Part[None]:
    for each in missing:
        url = resolve(each.reference, session.state.site_url)
        item = Listed(reference=each.reference, url=url, digest=each.stamp)
        fetched = yield from session.ask_page(item)
        page = None if fetched.status in GONE else session.page(fetched, item)
        is_there = page is not None and page.url and is_of(page, item)
        if is_there:
            session.take(item, page)
        elif page is not None or fetched.status in GONE:
            session.take_deletion(Deletion(key=each.key, id=url))
        session.set(confirmed=each.key)
    yield from session.save()
