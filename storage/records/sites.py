"""Pages of a site that is read by many requests, and how far its reading has come."""

from __future__ import annotations

from dataclasses import dataclass

from protocols.quick import quick_init


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class SitePage:
    """What is remembered of one page. Hashes have 63 bits."""

    key: str  # of its entry
    reference: str  # what its source calls it
    content: int  # hash of what its entry says
    stamp: int = 0  # what the source last said of it, in a number of the source's own
    walk: int = 0  # the last one in which it was listed
    day: int = 0  # of its last change, counted from 1970
    changes: int = 0  # of its content, on that day
    is_deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteWrite:
    """What a step of a reading changes beside entries: its state, and pages.

    ``pages`` are put whole. Pages with the keys ``listed`` are as they were, and were
    listed once more in ``walk``.
    """

    state: bytes
    pages: tuple[SitePage, ...] = ()
    listed: tuple[str, ...] = ()
    walk: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteTally:
    """How many pages there are, and how many of them a walk has not listed."""

    pages: int
    unlisted: int
