"""Dates in Thai, Hindi and Vietnamese, with their months in English.

In these the name of a month is no word as regular expressions have it, or is two; Thai
counts its years from the Buddha's, 543 more than ours.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
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
    """The same date, if it is in one of these languages; else as it is."""
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
    """Month and year in English, all other words (weekdays, "o'clock") left out."""
    is_thai = _IS_THAI.search(written)
    english = _NAME.sub(lambda name: f" {_OF_SCRIPTS[name[0]]} ", written)
    english = " ".join(_WORD.sub(" ", english).split()).strip(" ,")
    if not is_thai:
        return english
    return _BUDDHIST_YEAR.sub(lambda year: str(int(year[0]) - 543), english)
