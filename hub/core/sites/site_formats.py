"""The walk of each kind of site, and the facts about its reading for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hub.core.sites.openfeeder_session import openfeeder_facts
from hub.core.sites.openfeeder_walk import openfeeder_walk
from hub.core.sites.scp_session import scp_facts
from hub.core.sites.scp_walk import scp_walk
from hub.core.sites.site_state import ReadingFacts, read_state
from hub.core.sites.walk_steps import WalkOf
from protocols.model import FeedFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """``is_read``: the site was read whole once. ``entries_of_day``: how many were new
    or changed on the last day on which any was."""

    kind: str
    pages: int
    is_read: bool
    entries_of_day: int
    phase: str
    cursor: str
    walked_at: datetime | None
    reread_at: datetime | None


FACTS: Final[Mapping[str, Callable[[bytes], ReadingFacts]]] = {
    FeedFormat.OPENFEEDER: openfeeder_facts,
    FeedFormat.SCP: scp_facts,
}
"""For each format, what tells the facts of its walk's state."""


def site_facts(packed: bytes, format: str) -> SiteFacts:
    """The facts of a site; ``packed`` is b"" before the first step."""
    state = read_state(packed, format)
    known = FACTS.get(format)
    facts = known(state.walk) if known and state.walk else ReadingFacts()
    return SiteFacts(
        kind=format,
        pages=state.pages,
        is_read=state.is_read,
        entries_of_day=state.entries_of_day,
        phase=facts.phase,
        cursor=facts.cursor,
        walked_at=facts.walked_at,
        reread_at=facts.reread_at,
    )


WALKS: Final[Mapping[str, WalkOf]] = {
    FeedFormat.OPENFEEDER: openfeeder_walk,
    FeedFormat.SCP: scp_walk,
}
