"""Runs of the WebSub playground, as they are kept."""

from __future__ import annotations

from datetime import datetime

import msgspec


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """``body``: the run as its owner packs it; the engine encrypts it, since it has
    secrets. ``used_at``: when somebody last looked at it, or a message came."""

    id: str
    used_at: datetime
    body: bytes
