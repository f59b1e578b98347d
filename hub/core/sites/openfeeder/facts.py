"""How far the reading of an OpenFeeder site has come, for people."""

from __future__ import annotations

from datetime import UTC, datetime

from hub.core.sites.openfeeder.state import OpenFeederState, read_state
from hub.core.sites.reading_facts import ReadingFacts


def openfeeder_facts(packed: bytes) -> ReadingFacts:
    state = read_state(packed)
    return ReadingFacts(
        phase=_phase(state),
        cursor=state.cursor if state.gives_changes else "",
        walked_at=_moment(state.walked_at),
        reread_at=_moment(state.reread_at),
    )


def _phase(state: OpenFeederState) -> str:
    if state.page:
        return f"walking the index, at page {state.page}"
    if state.confirming:
        return "asking for what the index lacks"
    if state.read_through:
        return "reading what has changed"
    return ""


def _moment(seconds: float) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
