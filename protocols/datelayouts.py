"""The layouts of dates that people and programs write, beyond the usual ones."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from protocols.asianmonths import with_english_months


@cache
def pattern_of(layout: str) -> re.Pattern[str]:
    """Compiled when it is first tried: that takes long, and few dates need them all."""
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
# A date alone, with a zone or a weekday behind it at most
_ALONE = r"(?P<alone>\s*[-+]\d{2}:?\d{2}|[\s,،(\uff08]*[^\W\d]{1,12}[.)\uff09]*)"
_AT = rf"(?:{_BEFORE_CLOCK}{_CLOCK}\s*{_ZONE}|{_ALONE})?"
_WORDS = r"(?:[^\W\d]++[\s.,:،-]*+){0,3}?"
_OF = r"(?:\s+(?:del?|of)(?=\s)|\s+d['\u2019])?"
_MONTH = r"(?P<name>[^\W\d]{2,12})\.?"
_MONTHS = rf"{_MONTH}(?:\s?[-/]\s?[^\W\d]{{3,12}}\.?)?"
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
    rf"{_WORDS}{_MONTHS}{_OF}[\s,-]+(?P<year>\d{{4}})",
    rf"(?P<year>\d{{4}})[\s,-]+{_MONTHS}",
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
    """The same date with its time last, and in the West's digits and colons."""
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
