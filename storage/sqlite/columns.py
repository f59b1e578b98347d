"""How values are kept in columns: times, lists of ids, and lists of hashes.

Times are whole milliseconds since 1970 UTC, or the last 32 bits of them where many are
kept beside a whole one. Ids are one JSON text, which is a parameter
for ``json_each`` or a column. Hashes are two parameters.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_milliseconds(time: datetime) -> int:
    """The millisecond that the time lies in: rounded down, also before 1970."""
    since = time - EPOCH  # only its days can be negative
    milliseconds = since.seconds * 1_000 + since.microseconds // 1_000
    return since.days * 86_400_000 + milliseconds


def to_milliseconds_or_none(time: datetime | None) -> int | None:
    return None if time is None else to_milliseconds(time)


def from_milliseconds(milliseconds: int) -> datetime:
    return EPOCH + milliseconds * _MILLISECOND


def from_milliseconds_or_none(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else from_milliseconds(milliseconds)


_TIME: Final = struct.Struct(">I")
_HALF: Final = 1 << 31


def pack_answer_time(at: int) -> bytes:
    """Pack when a member's delivery was over, as the last 32 bits of its milliseconds;
    0 if that is not known."""
    return _TIME.pack((at & 0xFFFFFFFF or 1) if at else 0)


def answer_time(settled: int, times: bytes | None, index: int) -> int | None:
    """When a member's delivery was over, in milliseconds; None if that is not known.

    ``settled``, the time of the chunk's last acknowledgement, says which time has the
    packed bits: one in the 24 days before. A clock that was set back since makes it the
    time of the acknowledgement.
    """
    if times is None:
        return None
    (bits,) = _TIME.unpack_from(times, index * _TIME.size)
    before = (settled - bits) & 0xFFFFFFFF
    is_ahead = before >= _HALF
    return (settled if is_ahead else settled - before) if bits else None


_decoder = msgspec.json.Decoder(list[int])

HASHES: Final = "(SELECT substr(?, 1 + 16 * value, 16) FROM json_each(?))"
"""The hashes packed by `pack_hashes`, as a subquery."""


def pack_ids(ids: Collection[int]) -> str:
    return msgspec.json.encode(list(ids)).decode()


def unpack_ids(packed: str) -> list[int]:
    return _decoder.decode(packed)


def pack_hashes(hashes: Sequence[bytes]) -> tuple[bytes, str]:
    """The two parameters for hashes of 16 bytes each."""
    return b"".join(hashes), pack_ids(range(len(hashes)))
