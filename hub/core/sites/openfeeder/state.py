"""What a walk over an OpenFeeder site remembers from one visit to the next."""

from __future__ import annotations

import msgspec

from protocols.openfeeder.read.documents import Discovery

_VERSION = 1


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """By what a page of the index is known not to have changed."""

    etag: str = ""
    last_modified: str = ""
    digest: int = 0  # of its bytes


class OpenFeederState(msgspec.Struct, frozen=True, array_like=True):
    """Times are seconds since 1970. ``walk`` is the number of the last full walk, or
    of the one under way, which has come to ``page`` of the index (0: none is)."""

    version: int = _VERSION
    endpoint: str = ""
    site_url: str = ""
    name: str = ""
    language: str = ""
    description: str = ""
    walk: int = 0
    page: int = 0
    total_pages: int = 0
    is_thorough: bool = False  # the walk under way reads every page anew
    is_doubtful: bool = False  # the walk under way has not read all there is
    confirming: bool = False  # the index was walked: what it lacks is asked for
    confirmed: str = ""  # the last key that was
    is_suspected: bool = False  # the last walk lacked too much to be believed
    began_at: float = 0.0  # the walk under way
    walked_at: float = 0.0  # the end of the last full walk
    reread_at: float = 0.0  # that of the last one that read every page
    marks: tuple[Mark, ...] = ()
    cursor: str = ""  # of the next differential request
    next_cursor: str = ""  # once all of the answer under way is read
    read_through: str = ""  # the last key of that which was
    gives_changes: bool = True  # as far as is known
    tracks_deletions: bool = False
    checked: int = 0  # marks that a comparison under way has found as they were
    lacks_some: bool = False  # of the differences under way a page could not be read
    misses: int = 0  # answers in a row of which that is so

    @property
    def discovery(self) -> Discovery:
        return Discovery(
            endpoint=self.endpoint,
            site_url=self.site_url,
            name=self.name,
            language=self.language,
            description=self.description,
        )

    @property
    def reached(self) -> tuple[int, str, str]:
        """How far that has come which is read one by one."""
        return self.checked, self.read_through, self.confirmed

    def found(self, discovery: Discovery) -> OpenFeederState:
        """With what the discovery document says. Another endpoint is another index."""
        marks = self.marks if discovery.endpoint == self.endpoint else ()
        return msgspec.structs.replace(
            self,
            endpoint=discovery.endpoint,
            site_url=discovery.site_url,
            name=discovery.name,
            language=discovery.language,
            description=discovery.description,
            marks=marks,
            checked=self.checked if marks else 0,
        )


def read_state(packed: bytes) -> OpenFeederState:
    """A new one, where there is none, a damaged one or one of another version."""
    if not packed:
        return OpenFeederState()
    try:
        state = msgspec.msgpack.decode(packed, type=OpenFeederState)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return OpenFeederState()
    return state if state.version == _VERSION else OpenFeederState()


def held_back(state: OpenFeederState, now: float) -> OpenFeederState:
    """By a clock that went back since: nothing was read later than ``now``."""
    return msgspec.structs.replace(
        state,
        began_at=min(state.began_at, now),
        walked_at=min(state.walked_at, now),
        reread_at=min(state.reread_at, now),
    )


def pack_state(state: OpenFeederState) -> bytes:
    return msgspec.msgpack.encode(state)
