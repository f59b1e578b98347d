"""Dates as feeds write them, to aware UTC datetimes.

RFC 822 with all its neighbours, ISO 8601 and W3CDTF, asctime, and what people type.
A time without a zone, or with a zone nobody knows, is taken as UTC; a date alone is
its midnight. Nothing is corrected: the future and 1970 are passed on as they stand.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from protocols.months import month_number

LONGEST = 80
"""Characters; anything longer is no date."""

_CLOCK = (
    r"(?P<hour>\d{1,2})[:h.](?P<minute>\d{1,2})"
    r"(?:[:.](?P<second>\d{1,2})(?:[.,]\d+)?)?\s*(?P<half>[ap]\.?m\b\.?)?"
)
_ZONE = r"(?P<zone>[-+\u2212(A-Za-z].*)?"
_AT = r"(?:(?:\s*[T,]\s*|\s+at\s+|\s+|\s+-\s+)" + _CLOCK + r"\s*" + _ZONE + ")?"
_WEEKDAY = r"(?:[^\W\d]+\.?,?\s+)?"
_DAY_FIRST = r"(?:[^\W\d]+\.?\s*,?\s*)?(?P<day>\d{1,2})"
_MONTH = r"(?P<name>[^\W\d]{3,12})\.?"


def _pattern(layout: str) -> re.Pattern[str]:
    return re.compile(layout, re.IGNORECASE)


# Sat, 11 Jan 2020 10:00:00 GMT; 11 Jan 2020: most of all there are. The layouts say the
# same of them, in ten times the time.
_USUAL: Final = re.compile(
    r"(?:[A-Z][a-z]{2}, )?([0-9]{1,2}) ([A-Z][a-z]{2}) ([0-9]{4})"
    r"(?: ([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]) (GMT|UTC|Z|[-+][0-9]{4}))?"
)
_ZERO: Final = frozenset({"0", "GMT", "UTC", "Z", "+0000", "-0000"})
_ENGLISH: Final = {
    "JanFebMarAprMayJunJulAugSepOctNovDec"[3 * month : 3 * month + 3]: month + 1
    for month in range(12)
}
_LAYOUTS: Final = (
    # Sat, 11 Jan 2020 10:00:00 GMT; 11-Jan-20 10:00; 11. Januar 2020
    _pattern(
        _DAY_FIRST
        + r"(?:st|nd|rd|th|\.)?(?:\s+de(?=\s))?[\s-]*"
        + _MONTH
        + r"(?:\s+de(?=\s))?[\s,-]*(?P<year>\d{2,4})"
        + _AT
    ),
    # 2020-01-11T10:00:00Z; 2020-1-11 10:00 +0200; 2020/01/11; 20200111T100000Z is below
    _pattern(
        _WEEKDAY + r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})" + _AT
    ),
    # 2020年1月11日 10:00; 2020년 1월 11일; with or without blanks and a weekday
    _pattern(
        r"(?P<year>\d{4})\s*[年년]\s*(?P<month>\d{1,2})\s*[月월]"
        r"\s*(?P<day>\d{1,2})\s*[日일](?:\s*[(\uff08]?\w{1,3}[)\uff09]?(?=\s|$))?"
        r"(?:\s*" + _CLOCK + r"\s*" + _ZONE + ")?"
    ),
    # 2020. január 11. 10:00
    _pattern(r"(?P<year>\d{4})[\s.-]+" + _MONTH + r"[\s-]+(?P<day>\d{1,2})\.?" + _AT),
    # Sat Jan 11 10:00:00 2020, with or without a zone before the year (asctime)
    _pattern(
        _WEEKDAY
        + _MONTH
        + r"\s+(?P<day>\d{1,2})\s+"
        + _CLOCK
        + r"\s*(?P<zone>[-+A-Za-z][^\s]*)?\s+(?P<year>\d{4})"
    ),
    # January 11, 2020 10:00 am
    _pattern(
        _WEEKDAY
        + _MONTH
        + r"\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<year>\d{4})"
        + _AT
    ),
    # 1/31/2020 3:04:05 PM: American, as .NET writes it
    _pattern(r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})" + _AT),
    # 31.1.2020 15:04
    _pattern(r"(?P<day>\d{1,2})[.-](?P<month>\d{1,2})[.-](?P<year>\d{4})" + _AT),
    # 2020-01
    _pattern(r"(?P<year>\d{4})-(?P<month>\d{1,2})"),
)

_DIGITS: Final = {14: "%Y%m%d%H%M%S", 8: "%Y%m%d", 4: "%Y"}
_SECONDS_SINCE_1970, _MILLISECONDS_SINCE_1970 = 10, 13

# Three letters tell most months of the languages that feeds are written in.

_HOURS_EAST: Final = {
    "ut": 0.0, "utc": 0.0, "gmt": 0.0, "z": 0.0, "wet": 0.0,
    "bst": 1.0, "west": 1.0, "cet": 1.0, "met": 1.0, "mez": 1.0,
    "cest": 2.0, "mest": 2.0, "mesz": 2.0, "eet": 2.0, "sast": 2.0, "cat": 2.0,
    "eest": 3.0, "msk": 3.0, "eat": 3.0, "msd": 4.0, "pkt": 5.0, "ist": 5.5,
    "wib": 7.0, "ict": 7.0, "hkt": 8.0, "sgt": 8.0, "awst": 8.0, "pht": 8.0,
    "jst": 9.0, "kst": 9.0, "acst": 9.5, "aest": 10.0, "acdt": 10.5, "aedt": 11.0,
    "nzst": 12.0, "nzdt": 13.0,
    "nst": -3.5, "ndt": -2.5, "brt": -3.0, "art": -3.0,
    "ast": -4.0, "adt": -3.0, "at": -4.0,
    "est": -5.0, "edt": -4.0, "et": -5.0, "cst": -6.0, "cdt": -5.0, "ct": -6.0,
    "mst": -7.0, "mdt": -6.0, "mt": -7.0, "pst": -8.0, "pdt": -7.0, "pt": -8.0,
    "akst": -9.0, "akdt": -8.0, "hst": -10.0,
}  # fmt: skip
_OFFSET = re.compile(r"(?:[A-Za-z]*\s*)([-+\u2212])(\d{1,2}):?(\d{2})?(?!\d)")


def parse_date(text: str | None) -> datetime | None:
    """Read a date in any of the usual forms; ``None`` when it is none of them."""
    written = (text or "").strip()
    if not written or len(written) > LONGEST:
        return None
    try:
        if written[:4].isdigit() and len(written) >= len("2020-01-11"):
            return _to_utc(datetime.fromisoformat(written))
    except (ValueError, OverflowError):
        pass
    try:
        if written.isdigit():
            return _from_digits(written)
        return _from_usual(written) or _from_layout(written)
    except (ValueError, OverflowError):
        return None


def _to_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)


def _from_digits(digits: str) -> datetime | None:
    """Digits only: a compact date, or time since 1970 as programs count it."""
    if len(digits) == _SECONDS_SINCE_1970:
        return datetime.fromtimestamp(int(digits), UTC)
    if len(digits) == _MILLISECONDS_SINCE_1970:
        return datetime.fromtimestamp(int(digits) // 1000, UTC)
    layout = _DIGITS.get(len(digits))
    return datetime.strptime(digits, layout).replace(tzinfo=UTC) if layout else None


def _from_usual(written: str) -> datetime | None:
    match = _USUAL.fullmatch(written)
    month = _ENGLISH.get(match[2]) if match else None
    if match is None or month is None:
        return None
    day, _, year, hour, minute, second, zone = match.groups("0")
    moment = datetime(
        int(year), month, int(day), int(hour), int(minute), int(second), tzinfo=UTC
    )
    if zone in _ZERO:
        return moment
    return moment.replace(tzinfo=_zone(zone)).astimezone(UTC)


def _from_layout(written: str) -> datetime | None:
    for layout in _LAYOUTS:
        match = layout.fullmatch(written)
        if match is None:
            continue
        found = {name: value or "" for name, value in match.groupdict().items()}
        month = _month(found)
        if month is not None:
            return _moment(found, month)
    return None


def _month(found: dict[str, str]) -> int | None:
    if "month" in found:
        return int(found["month"])
    return month_number(found["name"])


def _moment(found: dict[str, str], month: int) -> datetime:
    hour = int(found.get("hour") or 0)
    half = found.get("half", "")[:1].lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    # "24:00" is the end of the day; a leap second is the last one that exists.
    days, hour = (1, 0) if hour == 24 else (0, hour)
    moment = datetime(
        _year(found["year"]),
        month,
        int(found.get("day") or 1),
        hour,
        int(found.get("minute") or 0),
        min(int(found.get("second") or 0), 59),
        tzinfo=_zone(found.get("zone", "")),
    )
    return (moment + timedelta(days=days)).astimezone(UTC)


def _year(digits: str) -> int:
    """RFC 5322 §4.3: two digits below 50 are in the 2000s; three count from 1900."""
    year = int(digits)
    if len(digits) == 2:
        return year + (2000 if year < 50 else 1900)
    return year + 1900 if len(digits) == 3 else year


def _zone(written: str) -> timezone:
    offset = _OFFSET.match(written)
    if offset:
        sign, hours, minutes = offset.groups()
        east = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(east if sign == "+" else -east)
    name = re.split(r"[^A-Za-z]", written.lstrip("("), maxsplit=1)[0].lower()
    return timezone(timedelta(hours=_HOURS_EAST.get(name, 0.0)))
