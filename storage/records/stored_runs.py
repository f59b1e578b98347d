"""Runs of the WebSub playground, as they are kept."""

from __future__ import annotations

from datetime import datetime

import msgspec


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """A stored run. ``body``: packed by its owner; the engine encrypts it, as it has
    secrets. ``used_at``: when somebody last looked at the run, or a message arrived."""

    id: str
    used_at: datetime
    body: bytes
