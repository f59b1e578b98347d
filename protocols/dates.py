"""Read dates as feeds write them into aware UTC datetimes.

RFC 822 and its variants, ISO 8601 and W3CDTF, asctime, and dates typed by people, in
the languages that feeds are written in. A time without a zone, or with an unknown one,
is UTC; a date without a time is midnight, a month without a day its first day. Future
dates and 1970 are returned unchanged; 31 November is read as 1 December, and 25:00 as
01:00 on the next day.

In Thai, Hindi and Vietnamese the name of a month is not one word to a regular
expression: these names are translated into English first. Thai years are counted in the
Buddhist era, which is 543 ahead.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import Final

_ENGLISH: Final = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # noqa: SIM905
_THAI: Final = (
    "มกราคม กุมภาพันธ์ มีนาคม เมษายน พฤษภาคม มิถุนายน"
    " กรกฎาคม สิงหาคม กันยายน ตุลาคม พฤศจิกายน ธันวาคม",
    "ม.ค. ก.พ. มี.ค. เม.ย. พ.ค. มิ.ย. ก.ค. ส.ค. ก.ย. ต.ค. พ.ย. ธ.ค.",
)
_HINDI: Final = (
    "जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर",
    "जन. फरवरी मार्च अप्रैल मई जून जुल. अग. सितम्बर अक्तूबर नवम्बर दिसम्बर",
)
_VIETNAMESE: Final = (
    "một hai ba tư năm sáu bảy tám chín mười mười_một mười_hai",
    "giêng hai ba bốn năm sáu bẩy tám chín mười mười_một chạp",
    "1 2 3 4 5 6 7 8 9 10 11 12",
    "01 02 03 04 05 06 07 08 09 10 11 12",
)


def _numbered(lists: Iterable[str]) -> Mapping[str, str]:
    return {
        unicodedata.normalize("NFC", name.replace("_", " ")): month
        for names in lists
        for name, month in zip(names.split(), _ENGLISH, strict=True)
    }


def _any_of(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


_OF_SCRIPTS: Final = _numbered((*_THAI, *_HINDI))
_OF_VIETNAM: Final = _numbered(_VIETNAMESE)
_NAME: Final = re.compile(_any_of(_OF_SCRIPTS))
_IS_THAI: Final = re.compile("[\u0e01-\u0e4e]")
_LETTERS: Final = "\u0901-\u0965\u0e01-\u0e4e"
_SCRIPT: Final = re.compile(f"[{_LETTERS}]")
_WORD: Final = re.compile(f"[{_LETTERS}.]*[{_LETTERS}]\\.?")
_BUDDHIST_YEAR: Final = re.compile(r"\b[2๒][45๔๕]\d\d\b")
_VIETNAMESE_MONTH: Final = re.compile(
    rf"\b(?:tháng|thg\.?)\s+({_any_of(_OF_VIETNAM)})\b[\s,]*(?:năm\b)?", re.IGNORECASE
)
_VIETNAMESE_HALF: Final = re.compile(r"(?<=\d)\s*(SA|CH)\b")
_HALVES: Final = {"SA": " am", "CH": " pm"}


def with_english_months(written: str) -> str:
    """The same date with Thai, Hindi or Vietnamese months in English; others
    unchanged.
    """
    if written.isascii() and "thg" not in written:
        return written
    written = unicodedata.normalize("NFC", written)
    if _SCRIPT.search(written):
        return _without_script(written)
    if _VIETNAMESE_MONTH.search(written) is None:
        return written
    english = _VIETNAMESE_MONTH.sub(_vietnamese_month, written).strip()
    return _VIETNAMESE_HALF.sub(lambda half: _HALVES[half[1]], english)


def _vietnamese_month(month: re.Match[str]) -> str:
    return f" {_OF_VIETNAM[month[1].lower()]} "


def _without_script(written: str) -> str:
    """Put month and year in English and drop all other words (weekdays, "o'clock")."""
    is_thai = _IS_THAI.search(written)
    english = _NAME.sub(lambda name: f" {_OF_SCRIPTS[name[0]]} ", written)
    english = " ".join(_WORD.sub(" ", english).split()).strip(" ,")
    if not is_thai:
        return english
    return _BUDDHIST_YEAR.sub(lambda year: str(int(year[0]) - 543), english)


# ruff: noqa: RUF001 (letters of many scripts)


# Beginnings of month names in some forty languages, English and Catalan to Ukrainian.
# Where two languages disagree, the more widely written one wins.
_SHORT_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "jan ene gen янв sty ian led oca tam січ ιαν jän sij sau jaa xan urt ion"
            " јан яну сту ينا ינו 一月",
            "feb fev fév fêv фев lut úno şub hel лют φεβ vel vas vee ots shk chw peb"
            " феб فبر פבר 二月",
            "mar mär mrt мар mrz mær már bře maa бер μαρ μάρ ožu kov mac maw"
            " сак مار מרץ מרס 三月",
            "apr avr abr апр kwi ápr dub nis huh кві απρ tra bal pri ebr"
            " кра أبر ابر إبر אפר 四月",
            "may mai mag mei maj мая май máj kvě tou тра μάι μαΐ μαϊ svi geg maí"
            " мај ماي מאי 五月",
            "jun jui giu июн cze iun jún čer haz kes чер jūn bir xuñ eka qer meh hun"
            " јун юни чэр يون יונ 六月",
            "jul lug июл lip iul júl čvc tem hei лип jūl lie xul uzt kor gor hul"
            " јул юли ліп يول יול 七月",
            "aug aoû aou ago авг sie août srp ağu elo сер αυγ αύγ agu avg kol ágú abu"
            " gus aws ogo жні أغس اغس אוג 八月",
            "sep set сен wrz sze zář eyl syy вер σεπ ruj ira sht med сеп سبت ספט 九月",
            "oct okt out ott окт paź říj eki lok жов οκτ spa urr tet hyd"
            " кас أكت اكت אוק 十月",
            "nov noi ноя lis kas лис νοέ νοε lap stu aza nën tac nóv nob"
            " ное ліс نوف נוב 十一月",
            "dec dez dic déc дек gru des pro ara jou гру δεκ det abe dhj rha dis"
            " дец сне ديس דצמ 十二月",
        ),
        start=1,
    )
    for name in names.split()
}
# Longer beginnings, where the first three letters also begin another month's name.
_LONGER_MONTHS: Final = {
    "juil": 7,
    "juun": 6,
    "juul": 7,
    "lipa": 6,
    "lipn": 6,
    "marr": 11,
    "rugp": 8,
    "rugs": 9,
    "srpan": 7,
    "srpnj": 7,
    "červenc": 7,
    "červene": 7,
    "ιούλ": 7,
    "ιουλ": 7,
    "ιούν": 6,
    "ιουν": 6,
}
_ALL_MONTHS: Final = _SHORT_MONTHS | _LONGER_MONTHS
_IN_HEBREW: Final = "ב"


def month_number(name: str) -> int | None:
    """1 to 12, by the beginning of a name; ``None`` if it is not the name of a
    month.
    """
    name = name.lower()
    for length in (7, 5, 4, 3, 2):
        if name[:length] in _ALL_MONTHS:
            return _ALL_MONTHS[name[:length]]
    return month_number(name[1:]) if name.startswith(_IN_HEBREW) else None


@cache
def pattern_of(layout: str) -> re.Pattern[str]:
    """Compile a layout when it is first tried: compiling is slow, and few dates need
    all.
    """
    return re.compile(layout, re.IGNORECASE)


_CLOCK = (
    r"(?:(?P<hour>\d{1,2})[:h.](?P<minute>\d{1,2})"
    r"(?:[:.](?P<second>\d{1,2})(?:[:.,]\d+)?)?\s*(?P<half>[ap]\.?m\b\.?)?"
    r"|(?P<full_hour>\d{1,2})(?:h|\s*(?P<full_half>[ap]\.?m\b\.?)))"
)
_ZONE = r"(?P<zone>[-+\u2212(A-Za-z].*)?"
# "at", "à", "um", "a las", or a weekday; and "T"
_BEFORE_CLOCK = (
    r"(?:\s*[T,،|@/:\u2013\u2014-]+\s*|\s*(?=\()|\s+)"
    r"(?:[(\uff08]?[^\W\d]{1,12}[)\uff09.,،]*\s+|[(\uff08]\w{1,3}[)\uff09]\s*){0,2}"
)
# A date without a time, followed by at most a zone or a weekday
_ALONE = r"(?P<alone>\s*[-+]\d{2}:?\d{2}|[\s,،(\uff08]*[^\W\d]{1,12}[.)\uff09]*)"
_AT = rf"(?:{_BEFORE_CLOCK}{_CLOCK}\s*{_ZONE}|{_ALONE})?"
_WORDS = r"(?:[^\W\d]++[\s.,:،-]*+){0,3}?"
_OF = r"(?:\s+(?:del?|of)(?=\s)|\s+d['\u2019])?"
_MONTH = r"(?P<name>[^\W\d]{2,12})\.?"
_MONTH_OR_TWO = rf"{_MONTH}(?:\s?[-/]\s?[^\W\d]{{3,12}}\.?)?"
_ORDINAL = r"(?:st|nd|rd|th|er|\xba|\xaa|\.)?"
_YEAR = r"(?P<year>\d{4}|\d{2})"

LAYOUTS: Final = (
    # Sat, 11 Jan 2020 10:00:00 GMT; 11-Jan-20 10:00; 11. Januar 2020; 11 1月 2020
    (
        rf"{_WORDS}(?P<day>\d{{1,2}}){_ORDINAL}{_OF}[\s/-]*"
        rf"(?:{_MONTH}|(?P<month>\d{{1,2}})\s*[月월])"
        rf"{_OF}[\s,،/-]*(?<!\s-)(?P<year>\d{{3,4}}|\d{{2}}(?!:)){_AT}"
    ),
    # 2020-1-11 10:00 +0200; 2020/01/11; 2020. 1. 11. 10:00
    (
        rf"{_WORDS}(?P<year>\d{{4}})(?:[-/.]|\.\s)(?P<month>\d{{1,2}})(?:[-/.]|\.\s)"
        rf"(?P<day>\d{{1,2}})\.?{_AT}"
    ),
    # 2020年1月11日 10:00; 2020년 1월 11일; with or without blanks and a weekday
    (
        r"(?P<year>\d{4})\s*[年년]\s*(?P<month>\d{1,2})\s*[月월]"
        r"\s*(?P<day>\d{1,2})\s*[日일](?:\s*[(\uff08]?\w{1,3}[)\uff09]?(?=\s|$))?"
        rf"(?:\s*{_CLOCK}\s*{_ZONE})?"
    ),
    # 2020. január 11. 10:00; 2020 m. sausio 11 d.
    (
        rf"(?P<year>\d{{4}})[\s.-]+(?:m\.\s+)?{_MONTH}[\s-]+(?P<day>\d{{1,2}})"
        rf"(?:\.|\s+d\.)?{_AT}"
    ),
    # Sat Jan 11 10:00:00 2020, with or without a zone before the year (asctime)
    (
        rf"{_WORDS}{_MONTH}\s+(?P<day>\d{{1,2}})\s+{_CLOCK}"
        r"\s*(?P<zone>[-+A-Za-z][^\s]*)?\s+(?P<year>\d{4})"
    ),
    # Sat 11 Jan 10:00:00 GMT 2020 (date, in Britain)
    (
        rf"{_WORDS}(?P<day>\d{{1,2}})\s+{_MONTH}\s+{_CLOCK}"
        r"\s*(?P<zone>[-+A-Za-z][^\s]*)?\s+(?P<year>\d{4})"
    ),
    # January 11, 2020 10:00 am
    (rf"{_WORDS}{_MONTH}\s+(?P<day>\d{{1,2}}){_ORDINAL},?\s+(?P<year>\d{{4}}){_AT}"),
    # 1/31/2020 3:04:05 PM: American, as .NET writes it
    rf"{_WORDS}(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})/{_YEAR}{_AT}",
    # 31.1.2020 15:04
    rf"{_WORDS}(?P<day>\d{{1,2}})[.-](?P<month>\d{{1,2}})[.-]{_YEAR}{_AT}",
    # 2020-01; 1/2020
    r"(?P<year>\d{4})-(?P<month>\d{1,2})",
    r"(?P<month>\d{1,2})[/.](?P<year>\d{4})",
    # January 2020; 2020 Jan-Feb
    rf"{_WORDS}{_MONTH_OR_TWO}{_OF}[\s,-]+(?P<year>\d{{4}})",
    rf"(?P<year>\d{{4}})[\s,-]+{_MONTH_OR_TWO}",
    # 2020-011 and 20011, the eleventh day; -20-01-11 (ISO 8601 of 1988)
    r"(?P<year>\d{4})-?(?P<day_of_year>\d{3})",
    r"(?P<year>\d{2})(?P<day_of_year>\d{3})",
    r"-(?P<year>\d{2})-?(?P<month>\d{2})(?:-(?P<day>\d{2}))?",
)

_TIME_FIRST: Final = re.compile(
    r"(?P<clock>\d{1,2}[:h]\d{2}(?::\d{2})?(?:\s*[aApP]\.?[mM]\b\.?)?)"
    r"(?P<zone>\s+(?:UTC|GMT|[A-Z]{1,3}[SD]?T)\b)?"
    r"[\s,|\u2013-]+(?P<date>\S.*?)(?P<last>\s*\([A-Z]{2,5}\))?"
)
_IS_HALF_FIRST: Final = re.compile(
    "[上下]午|午[前後后]|오[전후]|凌晨|[早晚]上|[時时点點시]"
)
_HALF_FIRST: Final = re.compile(
    r"(?P<am>上午|午前|오전|早上|凌晨)?(?P<pm>下午|午後|午后|오후|晚上)?"
    r"\s*(?P<hour>\d{1,2})\s*(?::|[時时点點시])"
    r"(?:\s*(?P<minute>\d{1,2})\s*[분分]?)?(?:\s*:?\s*(?P<second>\d{1,2})\s*[秒초]?)?"
)
_SPACED_HALF: Final = re.compile(r"\b([aApP])\.\s?[mM]\.")


def straighten(written: str) -> str:
    """The same date with the time last, in ASCII digits and with colons."""
    written = with_english_months(written)
    if _IS_HALF_FIRST.search(written):
        written = _HALF_FIRST.sub(_half_last, written, count=1)
    written = _SPACED_HALF.sub(r"\1m", written)
    first = _TIME_FIRST.fullmatch(written)
    if first is None:
        return written
    zone = first["zone"] or first["last"] or ""
    return f"{first['date']} {first['clock']} {zone}".strip()


def _half_last(match: re.Match[str]) -> str:
    half = " am" if match["am"] else " pm" if match["pm"] else ""
    clock = f"{match['hour']}:{match['minute'] or '00'}:{match['second'] or '00'}"
    return f" {clock}{half}"


LONGEST = 80
"""Characters; a longer text is not read as a date."""

# Rewrites "Sat, 11 Jan 2020 10:00:00 GMT" for `datetime.fromisoformat`, which checks
# the digits. The layouts give the same result in ten times the time.
_WEEKDAYS: Final = frozenset(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
_MONTH_NUMBERS: Final = {name: month for month, name in enumerate(_ENGLISH, start=1)}
_ISO_MONTHS: Final = {name: f"-{month:02}-" for name, month in _MONTH_NUMBERS.items()}
_SHORTEST_MAIL: Final = len("Sat, 11 Jan 2020 10:00:00 ")
_ISO_ZONES: Final = dict.fromkeys(("GMT", "UTC", "Z", "+0000", "-0000"), "+00:00")
# The same form without weekday or time, or with a day of one digit.
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
"""Milliseconds as .NET writes them, or seconds as a number with a fraction."""

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
    """Read a date in any of the usual forms; ``None`` if it is in none of them."""
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
    """Whether `datetime.fromisoformat` can be given the text unchanged.

    It would misread a zone directly after a date, and a point within a time.
    """
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
    """Read a complete RFC 822 date; None if it is not one. Raises `ValueError` for
    digits out of range.
    """
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
    """Read digits only: a compact date, or seconds or milliseconds since 1970."""
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
    month = _MONTH_NUMBERS.get(match[2]) if match else None
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
    except ValueError:  # the layouts read 31 November as 1 December
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
    """Midnight of the day; None if it is not valid. 31 November is 1 December."""
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
    """The time since midnight. Raises `ValueError` if it is out of range.

    "24:00" is the end of the day; broadcasters count on to 29:59. A leap second is read
    as second 59.
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
