"""Which file of a site is read next, and what a page changes.

Pure: from a section's sitemap and from how far it was read (SCP, "Snapshots and
Deltas").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from protocols.scp.collection import ALL
from protocols.scp.read.sitemap_reader import SiteFile, SiteMap

_FAR: Final = timedelta(days=1)
"""Ahead of now, for clocks that are not quite right."""
LONGEST_AGO: Final = timedelta(days=366)
"""Of what is still to be read: no publisher promises to renew it less than monthly
(SCP, "updateFreq")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionState:
    """How far a section is read.

    ``reached`` is the ``generated`` of the last file, ``snapshot`` that of the last
    snapshot. ``is_broken``: something between was missed.
    """

    reached: datetime
    snapshot: datetime | None = None
    is_broken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionReadingPlan:
    """``files`` in the order in which they are to be read.

    ``is_expired``: one that is wanted is no longer there, so the sitemap is to be read
    again first. ``is_broken``: what lies between two of the files, or before the first,
    is nowhere. ``incredible``: one that would be read if it were of a time that can be
    believed.
    """

    files: tuple[SiteFile, ...] = ()
    is_expired: bool = False
    is_broken: bool = False
    incredible: SiteFile | None = None


def wanted_sections(sitemap: SiteMap) -> tuple[str, ...]:
    """In the order of their names. ``all`` alone, where it has as many pages as any
    other: then reading the others would be reading twice."""
    pages: dict[str, int] = {}
    for each in sitemap.files:
        known = pages.get(each.section, 0)
        is_snapshot = each.since is None
        pages[each.section] = max(known, each.pages or 0) if is_snapshot else known
    if ALL in pages and pages[ALL] >= max(pages.values()):
        return (ALL,)
    return tuple(sorted(pages))


def plan_section(
    files: Iterable[SiteFile],
    state: SectionState | None,
    now: datetime,
    *,
    is_full: bool = False,
) -> SectionReadingPlan:
    """``files`` are those of one section, in any order.

    A snapshot first, if there was none yet, if deltas were missed, or if it has fewer
    bytes than they; then the deltas, each of which begins where what was read before
    it ends, or earlier. ``is_full``: as if nothing had been read.
    """
    named = list(files)
    listed = [each for each in named if _is_credible(each, now)]
    there = [each for each in listed if each.expires is None or each.expires > now]
    state = None if is_full else state
    plan = _plan(there, state)
    if len(there) == len(named):
        return plan
    # Had nothing expired, would anything else be read?
    wanted = _plan(listed, state)
    doubted = [each for each in _plan(named, state).files if each not in listed]
    return SectionReadingPlan(
        files=plan.files,
        is_broken=plan.is_broken,
        is_expired=wanted != plan,
        incredible=doubted[-1] if doubted else None,
    )


def _is_credible(file: SiteFile, now: datetime) -> bool:
    """Whether a file was made at a time that its publisher can mean.

    "Crawlers SHOULD verify that the `generated` timestamp is recent and reject
    collections with timestamps far in the past or future (beyond reasonable clock
    skew)" (SCP, "Timestamp Validation").
    """
    return now - LONGEST_AGO <= file.generated <= now + _FAR


def _plan(files: Sequence[SiteFile], state: SectionState | None) -> SectionReadingPlan:
    snapshot = max(
        (each for each in files if each.since is None),
        key=lambda each: (each.generated, each.url),
        default=None,
    )
    deltas = [each for each in files if each.since is not None]
    if state is None:
        return _first_plan(snapshot, deltas)
    chain, is_broken = _chain(deltas, state.reached)
    if snapshot is not None and snapshot.generated > state.reached:
        reached = chain[-1].generated if chain else state.reached
        if (
            is_broken
            or state.is_broken
            or snapshot.generated > reached
            or state.snapshot is None
            or _size(chain) >= _size([snapshot]) > 0
        ):
            chain, is_broken = _chain(deltas, snapshot.generated)
            return SectionReadingPlan(files=(snapshot, *chain), is_broken=is_broken)
    return SectionReadingPlan(files=tuple(chain), is_broken=is_broken)


def _first_plan(
    snapshot: SiteFile | None, deltas: Sequence[SiteFile]
) -> SectionReadingPlan:
    """Without a snapshot what the deltas have is all there is to be had."""
    first = snapshot or min(deltas, key=lambda each: each.generated, default=None)
    if first is None:
        return SectionReadingPlan()
    chain, is_broken = _chain(deltas, first.generated)
    return SectionReadingPlan(
        files=(first, *chain), is_broken=is_broken or first is not snapshot
    )


def _size(files: Sequence[SiteFile]) -> int:
    return sum(each.size or 0 for each in files)


def _chain(
    deltas: Sequence[SiteFile], reached: datetime
) -> tuple[list[SiteFile], bool]:
    """As few deltas as lead from there to the last, and whether some are missing.

    SCP, "Recovery from Missed Deltas": "apply them in chronological order (by
    `generated` timestamp)".
    """
    chain: list[SiteFile] = []
    is_broken = False
    while ahead := [each for each in deltas if each.generated > reached]:
        joined = [e for e in ahead if e.since is not None and e.since <= reached]
        if joined:
            following = max(joined, key=lambda each: (each.generated, each.url))
        else:
            is_broken = True
            following = min(ahead, key=lambda each: (each.since, each.generated))
        chain.append(following)
        reached = following.generated
    return chain, is_broken
