"""Operational events, from the transaction that causes one to its record."""

from __future__ import annotations

from datetime import datetime

import msgspec

from protocols.operational_events import EventType
from storage.records.identities import BEFORE_ALL, Position

CONFIRMED_FAILURES = 2
"""Failures in a row after which a feed or a callback is reported as failing. A single
failure is too common to report."""


class OperationalEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happened to a feed, a subscription or the hub.

    URLs are stored whole and shortened where they are shown. ``since``: when the
    trouble began; None: at the event itself.
    """

    type: EventType
    at: datetime
    subject: int = 0  # the feed's id, or the subscription's
    url: str = ""  # of the feed, or a subscription's topic
    is_private: bool = False  # its URL is not to be shown
    target: str = ""  # where a feed that moved is now
    callback: str = ""  # a subscription's
    since: datetime | None = None
    reason: str = ""
    code: int | None = None
    first: Position = BEFORE_ALL  # the first record that was given up
    last: Position = BEFORE_ALL
    condition: str = ""  # the name of the hub's condition
    advice: str = ""
    is_over: bool = False  # the condition has ended
