"""The history of a feed's polls: records of 14 bytes, one added by each commit.

The latest eight are beside what each fetch writes, those before them in a row of their
own, of which a migration says how many are kept: 1,008 bytes together for a feed that
is polled seldom. They are appended and moved by SQL, so no fetch reads its feed's
history.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from storage.records import FeedId, Poll, PollOutcome, PollReason, kept_polls
from storage.sqlite.columns import from_milliseconds, to_milliseconds

_RECORD: Final = struct.Struct(">QIH")
"""The time (48 bits) and the HTTP status; outcome (3 bits), reason (5 bits) and
duration in milliseconds (24 bits); the number of entries."""
_OUTCOMES = tuple(PollOutcome)
_REASONS = tuple(PollReason)
_OUTCOME_NUMBERS = {each: number for number, each in enumerate(_OUTCOMES)}
_REASON_NUMBERS = {each: number for number, each in enumerate(_REASONS)}
_MOST_MILLISECONDS = 0xFFFFFF
_MOST_ENTRIES = 0xFFFF

APPENDED: Final = (
    "coalesce(CAST(iif(length(recent_polls) >= 112, x'', recent_polls) || {}"
    " AS BLOB), recent_polls)"
)
"""SQL for the latest polls of a feed with one more, if that is not NULL. When there are
eight, a trigger moves them to the earlier ones."""
POLLS: Final = (
    "SELECT coalesce(e.polls, x''), f.recent_polls FROM feed_hot f"
    " LEFT JOIN earlier_polls e ON e.feed_id = f.feed_id WHERE f.feed_id = ?"
)


POLLS_OF_MANY: Final = (
    "SELECT f.feed_id, CAST(coalesce(e.polls, x'') || f.recent_polls AS BLOB)"
    " FROM json_each(?) asked CROSS JOIN feed_hot f ON f.feed_id = asked.value"
    " LEFT JOIN earlier_polls e ON e.feed_id = f.feed_id"
)
_FAILURES: Final = bytes(
    _OUTCOMES[number >> 5 if number >> 5 < len(_OUTCOMES) else 0].is_failure
    for number in range(256)
)
"""Whether the byte that an outcome begins says that a poll failed."""


def last_failures(packed: Mapping[FeedId, bytes]) -> dict[FeedId, Poll]:
    """Of feeds' packed polls the last that failed of each."""
    found = {}
    for feed_id, polls in packed.items():
        place = _RECORD.size * polls[8 :: _RECORD.size].translate(_FAILURES).rfind(1)
        if place >= 0:
            found[feed_id] = _poll(*_RECORD.unpack_from(polls, place))
    return found


def pack_poll(poll: Poll) -> bytes:
    """Pack a poll. Durations above four hours and more than 65,535 entries are cut to
    these."""
    kind = _OUTCOME_NUMBERS[poll.outcome] << 5 | _REASON_NUMBERS[poll.reason]
    return _RECORD.pack(
        to_milliseconds(poll.at) << 16 | poll.code,
        kind << 24 | min(poll.milliseconds, _MOST_MILLISECONDS),
        min(poll.entries, _MOST_ENTRIES),
    )


def unpack_polls(packed: bytes) -> list[Poll]:
    """The polls, the latest first, as many as are kept."""
    polls = [_poll(*record) for record in _RECORD.iter_unpack(packed)]
    return kept_polls(polls[::-1])


def _poll(moment: int, effort: int, entries: int) -> Poll:
    return Poll(
        at=from_milliseconds(moment >> 16),
        reason=_REASONS[effort >> 24 & 0x1F],
        outcome=_OUTCOMES[effort >> 29],
        code=moment & 0xFFFF,
        milliseconds=effort & _MOST_MILLISECONDS,
        entries=entries,
    )
