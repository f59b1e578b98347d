"""Sessions of operators at the hub's pages."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from storage.records.subscriptions import StoredToken

IDLE_SESSION: Final = timedelta(hours=12)
"""A session without a request for this long is over."""
LONGEST_SESSION: Final = timedelta(days=7)


class StoredSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session, and the token it was started with; None: the admin token."""

    token: StoredToken | None
    created_at: datetime
    used_at: datetime  # accurate to some minutes
