"""Moments as OpenFeeder writes them: RFC 3339, and tokens that stand for one.

A token is ``base64(JSON.stringify({"t": "<as_of>"}))`` (OpenFeeder 3.4). Ours say, in
a second member, up to which change they lead, so that nothing is told twice.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

import orjson

from protocols.openfeeder.serving.errors import invalid_parameter

LONGEST_TOKEN = 512
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)(?:\.(\d{1,30}))?"
    # A plus sign that was not escaped in a query comes as a space.
    r"(?:([Zz])|([+\- ])(\d\d):(\d\d))"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
EXPECTED = "a date and time of RFC 3339, such as 2026-02-20T00:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPoint:
    """Where a reader goes on. ``change`` 0: only the moment is known.

    ``epoch`` is that of the database which numbered the change.
    """

    moment: datetime
    epoch: str = ""
    change: int = 0


def format_moment(moment: datetime) -> str:
    """``2026-02-23T02:00:00.000Z``: milliseconds, always."""
    return f"{moment.astimezone(UTC).isoformat('T', 'milliseconds')[:23]}Z"


def parse_moment(text: str) -> datetime | None:
    """RFC 3339, whole milliseconds; None for what it is not."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    date, minute, second, fraction, _, sign, hours, minutes = found.groups()
    milliseconds = int((fraction or "0")[:3].ljust(3, "0"))
    try:
        local = datetime.fromisoformat(f"{date}T{minute}:{min(int(second), 59):02}")
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        zone = timezone(-offset if sign == "-" else offset)
        local = local.replace(tzinfo=zone, microsecond=milliseconds * 1_000)
        # RFC 3339 5.6: "00-58, 00-59, 00-60 based on leap second rules".
        return local.astimezone(UTC) if int(second) <= 60 else None
    except (ValueError, OverflowError):
        return None


def encode_token(point: SyncPoint) -> str:
    members: dict[str, str] = {"t": format_moment(point.moment)}
    if point.change:
        members["c"] = f"{point.epoch}-{point.change}"
    return base64.b64encode(orjson.dumps(members)).decode()


def parse_since(text: str) -> SyncPoint:
    """A moment or a token. Raises `OpenFeederError`."""
    moment = parse_moment(text)
    if moment is not None:
        return SyncPoint(moment=moment)
    if point := _decode_token(text):
        return point
    raise invalid_parameter("since", f"{EXPECTED}, or a sync_token", text)


def parse_until(text: str) -> datetime:
    """A moment only: ``until`` takes no token. Raises `OpenFeederError`."""
    moment = parse_moment(text)
    if moment is None:
        raise invalid_parameter("until", EXPECTED, text)
    return moment


def _decode_token(text: str) -> SyncPoint | None:
    """Of either alphabet, padded or not; some servers' tokens hold a date only."""
    plain = text.strip().replace(" ", "+").rstrip("=")
    plain = plain.replace("-", "+").replace("_", "/")
    if len(plain) > LONGEST_TOKEN:
        return None
    try:
        padded = plain + "=" * (-len(plain) % 4)
        members = orjson.loads(base64.b64decode(padded, validate=True))
    except (binascii.Error, ValueError):
        return None
    if not isinstance(members, dict) or not isinstance(members.get("t"), str):
        return None
    written = members["t"]
    if _DATE.fullmatch(written):
        written += "T00:00:00Z"
    moment = parse_moment(written)
    if moment is None:
        return None
    epoch, change = _place(members.get("c"))
    return SyncPoint(moment=moment, epoch=epoch, change=change)


def _place(written: object) -> tuple[str, int]:
    epoch, _, change = (
        written.rpartition("-") if isinstance(written, str) else ("",) * 3
    )
    is_number = change.isascii() and change.isdigit() and len(change) <= 18
    return (epoch, int(change)) if is_number and epoch else ("", 0)
