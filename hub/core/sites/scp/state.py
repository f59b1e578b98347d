"""What a walk over an SCP site remembers from one visit to the next."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec

from protocols.scp.read.plans import SectionState
from protocols.scp.read.sitemaps import SiteFile

_VERSION = 1

LAST_RETRY: Final = 86_400.0
"""The longest wait, in seconds, for collections that could not be used."""


class File(msgspec.Struct, frozen=True, array_like=True):
    """As `SiteFile`; times are seconds since 1970."""

    section: str
    url: str
    generated: float
    since: float | None = None
    expires: float | None = None
    pages: int | None = None


class Section(msgspec.Struct, frozen=True, array_like=True):
    """As `SectionState`, with the last snapshot's URL and validators."""

    reached: float
    snapshot: float | None = None
    is_broken: bool = False
    url: str = ""
    etag: str = ""
    last_modified: str = ""


class ScpState(msgspec.Struct, frozen=True, array_like=True):
    """``pending`` is what is still to be read, in this order; of the first of it all up
    to ``line`` has been. ``walk`` is the number of the last full reading, or of the one
    under way, which ``is_full``."""

    version: int = _VERSION
    sections: dict[str, Section] = {}
    pending: tuple[File, ...] = ()
    line: int = 0
    walk: int = 1
    is_full: bool = False
    full_at: float = 0.0  # the end of the last full reading
    was_read: bool = False  # whether any plan was read to its end
    is_suspected: bool = False  # the last one lacked too much to be believed
    failing: str = ""  # why what is pending cannot be used: the feed is read instead
    failures: int = 0
    retry_at: float = 0.0
    feed_url: str = ""  # that feed
    doubted: str = ""  # why what the sitemap names beyond that is not read
    missing: str = ""  # a delta that was named and not there, until that is mended

    def section(self, name: str) -> SectionState | None:
        found = self.sections.get(name)
        if found is None:
            return None
        return SectionState(
            reached=moment(found.reached),
            snapshot=None if found.snapshot is None else moment(found.snapshot),
            is_broken=found.is_broken,
        )


def file_of(listed: SiteFile) -> File:
    return File(
        section=listed.section,
        url=listed.url,
        generated=listed.generated.timestamp(),
        since=None if listed.since is None else listed.since.timestamp(),
        expires=None if listed.expires is None else listed.expires.timestamp(),
        pages=listed.pages,
    )


def read_state(packed: bytes) -> ScpState:
    """A new one, where there is none or one of another version."""
    try:
        state = msgspec.msgpack.decode(packed, type=ScpState) if packed else ScpState()
    except (msgspec.DecodeError, msgspec.ValidationError):
        return ScpState()
    return state if state.version == _VERSION else ScpState()


def held_back(state: ScpState, now: float) -> ScpState:
    """By a clock that went back since: nothing was read later than ``now``, and no wait
    is longer than the longest."""
    return msgspec.structs.replace(
        state,
        full_at=min(state.full_at, now),
        retry_at=min(state.retry_at, now + LAST_RETRY),
    )


def pack_state(state: ScpState) -> bytes:
    return msgspec.msgpack.encode(state)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
