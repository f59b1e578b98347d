"""How far the reading of an SCP site has come, for people."""

from __future__ import annotations

from datetime import UTC, datetime

from hub.core.sites.reading_facts import ReadingFacts
from hub.core.sites.scp.state import ScpState, read_state


def scp_facts(packed: bytes) -> ReadingFacts:
    """Changes are asked for from the section on that is read least far."""
    state = read_state(packed)
    reached = [each.reached for each in state.sections.values()]
    return ReadingFacts(
        phase=_phase(state),
        cursor=_moment(min(reached)).isoformat() if reached else "",
        walked_at=_moment(state.full_at) if state.full_at else None,
    )


def _phase(state: ScpState) -> str:
    if state.failing:
        return "reading the site's feed instead of its collections"
    if state.pending:
        where = f", from line {state.line + 1}" if state.line else ""
        return f"reading {state.pending[0].url}{where}"
    return ""


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
