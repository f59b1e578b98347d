"""Which encoding a document is in that is not UTF-8 and does not say what it is.

Such documents are rare: XML without a declaration is UTF-8 by definition. A general
detector costs more to load than it would ever be worth, so that a few properties of
the common encodings have to do, and the language that the document says it is in.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import Final

_WESTERN: Final = "cp1252"
_SAMPLE: Final = 65_536
_RUNS: Final = re.compile(rb"[\x80-\xff]+")
_PAIRS: Final = re.compile(rb"([\x81-\xfe])(?:([\x40-\x7e])|[\xa1-\xfe])")
_KANA: Final = re.compile("[\u3041-\u30fe]+")
_HANGUL: Final = re.compile("[\uac00-\ud7a3]+")
_LANGUAGE: Final = re.compile(
    rb"<(?:\w{1,20}:)?language>\s*([a-zA-Z]{2})\b|\sxml:lang=[\"']([a-zA-Z]{2})\b"
)
_OF_LANGUAGES: Final = {
    "cp1250": "bs cs hr hu pl ro sk sl sq",
    "cp1251": "be bg mk ru sr uk",
    "cp1253": "el",
    "cp1254": "tr",
    "cp1255": "he iw yi",
    "cp1256": "ar fa ur",
    "cp1257": "et lt lv",
    "cp1258": "vi",
    "cp874": "th",
}
_BY_LANGUAGE: Final = {
    language: codec
    for codec, languages in _OF_LANGUAGES.items()
    for language in languages.split()
}


def guess_codec(body: bytes) -> str:
    """The likeliest codec for bytes that are not UTF-8; Windows-1252 if in doubt."""
    first = _RUNS.search(body)
    start = first.start() if first else 0
    sample = body[start : start + _SAMPLE]
    runs = _RUNS.findall(sample)
    return _guess_two_byte(body, sample, runs) or _guess_single_byte(body, runs)


def _guess_two_byte(body: bytes, sample: bytes, runs: list[bytes]) -> str:
    """By the whole document being valid in it, and its script."""
    for codec in ("euc_jp", "cp932"):
        if _share(_KANA, _decoded(body, codec)) > 0.2:
            return codec
    if _looks_like_big5(sample) and _decoded(body, "big5"):
        return "big5"
    if sum(len(run) == 1 for run in runs) * 2 > len(runs):
        return ""  # accents here and there, not words of nothing else
    if _share(_HANGUL, _decoded(body, "euc_kr")) > 0.9:
        return "cp949"
    return "gb18030" if _decoded(body, "gb18030") else ""


def _looks_like_big5(sample: bytes) -> bool:
    """Its common characters begin with A4 to C6, and many end in a byte of ASCII."""
    pairs = _PAIRS.findall(sample)
    common: int = sum(b"\xa4" <= first <= b"\xc6" for first, _ in pairs)
    mixed: int = sum(second != b"" for _, second in pairs)
    return common > 0.8 * len(pairs) and mixed > 0.2 * len(pairs)


def _guess_single_byte(body: bytes, runs: list[bytes]) -> str:
    language = _LANGUAGE.search(body)
    hinted = (language[1] or language[2]).decode().lower() if language else ""
    codec = _BY_LANGUAGE.get(hinted, "")
    # One of two encodings of Cyrillic: most letters of a text are small ones.
    if codec not in ("", "cp1251"):
        return codec
    letters = [*chain.from_iterable(run for run in runs if len(run) > 1)]
    if not letters or sum(map(len, runs)) < 2 * len(runs):
        return codec or _WESTERN
    if sum(0xA1 <= each < 0xC0 for each in letters) * 5 > len(letters):
        return codec or "cp874"
    low = sum(0xC0 <= each < 0xE0 for each in letters)
    high = sum(each >= 0xE0 for each in letters)
    if not low:
        return codec or "cp1255"  # Hebrew knows no capitals
    return "koi8-r" if low > high else "cp1251"


def _decoded(body: bytes, codec: str) -> str:
    try:
        return body.decode(codec)
    except UnicodeDecodeError:
        return ""


def _share(script: re.Pattern[str], text: str) -> float:
    """How many of the characters beyond ASCII are of a script: 0 to 1."""
    others = len(text) - len(text.encode("ascii", "ignore"))
    of_script = sum(map(len, script.findall(text)))
    return of_script / others if others else 0.0
