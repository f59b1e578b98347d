"""Decide which file of a site is read next.

Pure: from a section's sitemap and how far the section was read (SCP, "Snapshots and
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
"""How far in the future a file may be generated, since clocks differ."""
LONGEST_AGO: Final = timedelta(days=366)
"""The oldest file that is read: publishers renew files at least monthly (SCP,
"updateFreq").
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionState:
    """How far a section has been read.

    ``reached`` is the ``generated`` of the last file, ``snapshot`` that of the last
    snapshot. ``is_broken``: something in between was missed.
    """

    reached: datetime
    snapshot: datetime | None = None
    is_broken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionReadingPlan:
    """``files`` are in the order in which they must be read.

    ``is_expired``: a needed file has expired, so the sitemap must be read again first.
    ``is_broken``: changes between two of the files, or before the first, are in no
    file. ``incredible``: a file that would be read if its time were credible.
    """

    files: tuple[SiteFile, ...] = ()
    is_expired: bool = False
    is_broken: bool = False
    incredible: SiteFile | None = None


def wanted_sections(sitemap: SiteMap) -> tuple[str, ...]:
    """The sections to read, sorted by name.

    Only ``all``, if it has as many pages as any other section: the others would be read
    twice.
    """
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
    """Decide which files to read. ``files`` are those of one section, in any order.

    A snapshot first, if none has been read yet, if deltas were missed, or if it is
    smaller than the deltas; then the deltas, each of which begins where the previous
    file ends, or earlier. ``is_full``: as if nothing had been read.
    """
    named = list(files)
    listed = [each for each in named if _is_credible(each, now)]
    there = [each for each in listed if each.expires is None or each.expires > now]
    state = None if is_full else state
    plan = _plan(there, state)
    if len(there) == len(named):
        return plan
    # Would other files be read if none had expired?
    wanted = _plan(listed, state)
    doubted = [each for each in _plan(named, state).files if each not in listed]
    return SectionReadingPlan(
        files=plan.files,
        is_broken=plan.is_broken,
        is_expired=wanted != plan,
        incredible=doubted[-1] if doubted else None,
    )


def _is_credible(file: SiteFile, now: datetime) -> bool:
    """Whether the time at which a file was generated is credible.

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
    """The plan for a section that was never read; without a snapshot, all its
    deltas.
    """
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
    """The fewest deltas from ``reached`` to the last one, and whether some are missing.

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
