"""Dates as feeds write them, to aware UTC datetimes.

RFC 822 with all its neighbours, ISO 8601 and W3CDTF, asctime, and what people type.
A time without a zone, or with a zone nobody knows, is taken as UTC; a date alone is
its midnight, a month alone its first day. The future and 1970 are passed on as they
stand; the 31st of November is the day after the 30th, and 25:00 the hour after 24:00.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from protocols.datelayouts import LAYOUTS, pattern_of, straighten
from protocols.months import month_number

LONGEST = 80
"""Characters; anything longer is no date."""

# "Sat, 11 Jan 2020 10:00:00 GMT", written anew for `datetime.fromisoformat`, which then
# sees to the digits. The layouts say the same of all these, in ten times the time.
_WEEKDAYS: Final = frozenset(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
_MONTHS: Final = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # noqa: SIM905
_ENGLISH: Final = {name: month for month, name in enumerate(_MONTHS, start=1)}
_ISO_MONTHS: Final = {name: f"-{month:02}-" for name, month in _ENGLISH.items()}
_SHORTEST_MAIL: Final = len("Sat, 11 Jan 2020 10:00:00 ")
_ISO_ZONES: Final = dict.fromkeys(("GMT", "UTC", "Z", "+0000", "-0000"), "+00:00")
# The same without weekday or time, or with a single digit.
_USUAL: Final = re.compile(
    r"(?:[A-Z][a-z]{2}, )?([0-9]{1,2}) ([A-Z][a-z]{2}) ([0-9]{4})"
    r"(?: ([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]) (GMT|UTC|Z|[-+][0-9]{4}))?"
)
_ZERO: Final = frozenset({"0", *_ISO_ZONES})
_DIGITS: Final = {
    14: ("%Y%m%d%H%M%S",),
    12: ("%Y%m%d%H%M",),
    8: ("%Y%m%d",),
    6: ("%y%m%d", "%Y%m"),
    4: ("%Y",),
}
_ZONE_BEGINS: Final = ("+", "-", "Z", "z")
_SECONDS_SINCE_1970, _MILLISECONDS_SINCE_1970 = 10, 13

_IN_JSON: Final = re.compile(r"/Date\((\d+)[-+\d]*\)/|(\d{10})\.\d+")
"""Milliseconds as .NET writes them, seconds as a number with a fraction."""

_HOURS_EAST: Final = {
    "ut": 0.0, "utc": 0.0, "gmt": 0.0, "z": 0.0, "wet": 0.0,
    "bst": 1.0, "west": 1.0, "cet": 1.0, "met": 1.0, "mez": 1.0,
    "cest": 2.0, "cedt": 2.0,
    "mest": 2.0, "mesz": 2.0, "eet": 2.0, "sast": 2.0, "cat": 2.0,
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
_OFFSET = re.compile(r"(?:[A-Za-z]*\s*)[-+]?([-+\u2212])(\d{1,2})[:.]?(\d{2})?(?!\d)")


def parse_date(text: str | None) -> datetime | None:
    """Read a date in any of the usual forms; ``None`` when it is none of them."""
    written = (text or "").strip()
    if not written or len(written) > LONGEST:
        return None
    try:
        if written[3:5] == ", " and len(written) > _SHORTEST_MAIL:
            moment = _from_mail(written)
            if moment is not None:
                return moment
        elif _may_be_iso(written):
            return _to_utc(datetime.fromisoformat(written))
    except (ValueError, OverflowError):
        pass
    try:
        if written.isdigit():
            return _from_digits(written)
        return _from_usual(written) or _from_layout(straighten(written))
    except (ValueError, OverflowError):
        return None


def _may_be_iso(written: str) -> bool:
    """What is read as it stands: not a zone behind a date, nor a point in a time, which
    `datetime.fromisoformat` takes for something else."""
    is_long_enough = written[:4].isdigit() and len(written) >= len("2020-01-11")
    return (
        is_long_enough and written[10:11] not in _ZONE_BEGINS and written[13:14] != "."
    )


def _to_utc(moment: datetime) -> datetime:
    if moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)


def _from_mail(written: str) -> datetime | None:
    """RFC 822 with all its parts. Raises `ValueError` for digits that are none."""
    month = _ISO_MONTHS.get(written[8:11])
    if month is None or written[:3] not in _WEEKDAYS or written[11] != " ":
        return None
    if written[7:26:9] != "   " or written[19:23:3] != "::":
        return None
    local = f"{written[12:16]}{month}{written[5:7]}T{written[17:25]}"
    zone = written[26:]
    if zone in _ISO_ZONES:
        return datetime.fromisoformat(f"{local}+00:00")
    if len(zone) != 5 or zone[0] not in "+-":
        return None
    return datetime.fromisoformat(f"{local}{zone[:3]}:{zone[3:]}").astimezone(UTC)


def _from_digits(digits: str) -> datetime | None:
    """Digits only: a compact date, or time since 1970 as programs count it."""
    if len(digits) == _SECONDS_SINCE_1970:
        return datetime.fromtimestamp(int(digits), UTC)
    if len(digits) == _MILLISECONDS_SINCE_1970:
        return datetime.fromtimestamp(int(digits) // 1000, UTC)
    for layout in _DIGITS.get(len(digits), ()):
        try:
            return datetime.strptime(digits, layout).replace(tzinfo=UTC)
        except ValueError:
            continue
    return _from_layout(digits)


def _from_usual(written: str) -> datetime | None:
    match = _USUAL.fullmatch(written)
    month = _ENGLISH.get(match[2]) if match else None
    if match is None or month is None:
        return None
    day, _, year, hour, minute, second, zone = match.groups("0")
    try:
        moment = datetime(
            int(year), month, int(day), int(hour), int(minute), int(second), tzinfo=UTC
        )
        if zone in _ZERO:
            return moment
        return moment.replace(tzinfo=_zone({"zone": zone})).astimezone(UTC)
    except ValueError:  # the layouts know what is meant by the 31st of November
        return None


def _from_layout(written: str) -> datetime | None:
    number = _IN_JSON.fullmatch(written)
    if number:
        return _from_digits(number[1] or number[2])
    for layout in LAYOUTS:
        match = pattern_of(layout).fullmatch(written)
        if match is None:
            continue
        found = {name: value for name, value in match.groupdict().items() if value}
        day = _day(found)
        if day is not None:
            return (day + _time(found)).astimezone(UTC)
    return None


def _day(found: dict[str, str]) -> datetime | None:
    """Its midnight. A day that the month does not have is one of the next."""
    year, zone = _year(found["year"]), _zone(found)
    if "day_of_year" in found:
        month, day = 1, int(found["day_of_year"])
        if not 1 <= day <= 366:
            return None
    else:
        number = int(found["month"]) if "month" in found else None
        month = number if number is not None else month_number(found["name"]) or 0
        day = int(found.get("day", 1))
        if month > 12:  # the day comes first, even between slashes
            month, day = day, month
        if not (1 <= month <= 12 and 1 <= day <= 31):
            return None
    return datetime(year, month, 1, tzinfo=zone) + timedelta(days=day - 1)


def _time(found: dict[str, str]) -> timedelta:
    """Past midnight. Raises `ValueError` for what no clock shows.

    "24:00" is the end of the day, and broadcasters count on, to 29:59. A leap second
    is the last one that exists.
    """
    hour = int(found.get("hour") or found.get("full_hour") or 0)
    minute, second = (int(found.get(name, 0)) for name in ("minute", "second"))
    half = (found.get("half") or found.get("full_half") or "")[:1].lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    if hour > 29 or minute > 61 or second > 61:
        raise ValueError(found)
    return timedelta(hours=hour, minutes=minute, seconds=min(second, 59))


def _year(digits: str) -> int:
    """RFC 5322 §4.3: two digits below 50 are in the 2000s; three count from 1900."""
    year = int(digits)
    if len(digits) == 2:
        return year + (2000 if year < 50 else 1900)
    return year + 1900 if len(digits) == 3 else year


def _zone(found: dict[str, str]) -> timezone:
    written = (found.get("zone") or found.get("alone") or "").strip(" ,(")
    offset = _OFFSET.match(written)
    if offset:
        sign, hours, minutes = offset.groups()
        east = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(east if sign == "+" else -east)
    name = re.split(r"[^A-Za-z]", written, maxsplit=1)[0].lower()
    return timezone(timedelta(hours=_HOURS_EAST.get(name, 0.0)))
