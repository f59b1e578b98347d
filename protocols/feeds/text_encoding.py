"""Find a document's encoding, and convert the document to UTF-8.

The order is: byte order mark, the charset of the HTTP header, the document's own
declaration, and the bytes themselves. One exception: bytes that are valid UTF-8 are
UTF-8, whatever single-byte encoding is declared for them. That is a common mistake, and
such bytes would be gibberish in the declared encoding. If most sequences are UTF-8, the
decision is made for each sequence, so that one stray byte does not spoil the others.

Documents that are not UTF-8 and name no encoding are rare: XML without a declaration is
UTF-8 by definition. A general detector costs more to load than it is worth, so the
encoding is guessed by a few properties of the common ones, and by the document's
declared language.

Two mistakes in valid UTF-8 are common enough to be corrected: all text was encoded as
UTF-8 twice, and characters of Windows-1252 became the control characters of ISO 8859-1,
which HTML has always read as the intended characters.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final

from msgspec import Struct

_WESTERN: Final = "cp1252"
_GUESSED_SAMPLE: Final = 65_536
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
    sample = body[start : start + _GUESSED_SAMPLE]
    runs = _RUNS.findall(sample)
    return _guess_two_byte(body, sample, runs) or _guess_single_byte(body, runs)


def _guess_two_byte(body: bytes, sample: bytes, runs: list[bytes]) -> str:
    """The two-byte encoding in which the whole body is valid and has the right script.

    "" if there is none.
    """
    for codec in ("euc_jp", "cp932"):
        if _share(_KANA, _decoded(body, codec)) > 0.2:
            return codec
    if _looks_like_big5(sample) and _decoded(body, "big5"):
        return "big5"
    if sum(len(run) == 1 for run in runs) * 2 > len(runs):
        return ""  # single accented letters, not whole words
    if _share(_HANGUL, _decoded(body, "euc_kr")) > 0.9:
        return "cp949"
    return "gb18030" if _decoded(body, "gb18030") else ""


def _looks_like_big5(sample: bytes) -> bool:
    """Whether the bytes look like Big5.

    Its common characters begin with A4 to C6, and many end in an ASCII byte.
    """
    pairs = _PAIRS.findall(sample)
    common: int = sum(b"\xa4" <= first <= b"\xc6" for first, _ in pairs)
    mixed: int = sum(second != b"" for _, second in pairs)
    return common > 0.8 * len(pairs) and mixed > 0.2 * len(pairs)


def _guess_single_byte(body: bytes, runs: list[bytes]) -> str:
    language = _LANGUAGE.search(body)
    hinted = (language[1] or language[2]).decode().lower() if language else ""
    codec = _BY_LANGUAGE.get(hinted, "")
    # One of two encodings of Cyrillic, told apart by most letters being in lower case.
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
        return codec or "cp1255"  # Hebrew has no capitals
    return "koi8-r" if low > high else "cp1251"


def _decoded(body: bytes, codec: str) -> str:
    try:
        return body.decode(codec)
    except UnicodeDecodeError:
        return ""


def _share(script: re.Pattern[str], text: str) -> float:
    """The share of a script in the characters beyond ASCII: 0 to 1."""
    others = len(text) - len(text.encode("ascii", "ignore"))
    of_script = sum(map(len, script.findall(text)))
    return of_script / others if others else 0.0


_NON_ASCII: Final = re.compile(rb"[\x80-\xff]+")
_NEARLY_ALL: Final = 0.95
_STRIDE: Final = 64
_LATIN_1: Final = {
    ord(bytes([code]).decode("cp1252")): code
    for code in range(0x80, 0xA0)
    if bytes([code]).decode("cp1252", "ignore")
}
_WINDOWS: Final = {code: character for character, code in _LATIN_1.items()}
_C1: Final = re.compile(rb"\xc2([\x80-\x9f])")
_C1_REFERENCE: Final = re.compile(rb"&#(?:[xX]0{0,4}([89][0-9a-fA-F])|0{0,4}(1\d\d));")
# Whether there are any. A pattern that begins with a rare character takes a third of
# the time.
_HAS_C1_REFERENCE: Final = re.compile(
    rb"#(?<=&#)(?:[xX]0{0,4}[89][0-9a-fA-F]|0{0,4}1[2-5]\d);"
)


def mend_mojibake(body: bytes, sound: tuple[int, int] = (0, 0)) -> tuple[bytes, str]:
    """Correct the text; returns it, and what was wrong with it ("" if nothing was).

    ``sound`` is a range of positions that holds whole elements and none of these
    control characters.
    """
    mended = body if body.isascii() else _encoded_once(body)
    if mended is not body:
        return mended, "the text was encoded as UTF-8 twice"
    start, end = sound
    head, tail = body[:start], body[end:]
    mended_head, mended_tail = _without_controls(head), _without_controls(tail)
    if mended_head == head and mended_tail == tail:
        return body, ""
    mended = mended_head + body[start:end] + mended_tail
    return mended, "control characters were read as Windows-1252"


def _without_controls(text: bytes) -> bytes:
    mended = _C1.sub(_windows_bytes, text) if b"\xc2" in text else text
    if b"#" not in mended or not _HAS_C1_REFERENCE.search(mended):
        return mended
    return _C1_REFERENCE.sub(_windows_reference, mended)


def _encoded_once(body: bytes) -> bytes:
    """Undo double encoding if nearly all characters beyond ASCII were encoded twice.

    The first of them rules it out for nearly all documents. Words that were encoded
    once, such as a template's, stay as they are.
    """
    first = _first_beyond_ascii(body)
    if first is None or _run_once(first[0]) is None:
        return body
    runs = good = 0

    def once(match: re.Match[bytes]) -> bytes:
        nonlocal runs, good
        read = _run_once(match[0])
        runs, good = runs + 1, good + (read is not None)
        return match[0] if read is None else read

    mended = _NON_ASCII.sub(once, body)
    return mended if good >= _NEARLY_ALL * runs else body


def _first_beyond_ascii(body: bytes) -> re.Match[bytes] | None:
    """The first bytes beyond ASCII: near the beginning in most documents."""
    start, width = 0, _STRIDE
    while body[start : start + width].isascii():
        start, width = start + width, 2 * width
    while width > _STRIDE:
        width //= 2
        if body[start : start + width].isascii():
            start += width
    return _NON_ASCII.search(body, start)


def _run_once(run: bytes) -> bytes | None:
    """The bytes encoded once; ``None`` if they were not encoded twice."""
    try:
        once = run.decode().translate(_LATIN_1).encode("latin-1")
        once.decode()
    except UnicodeError:
        return None
    return once


def _windows_bytes(match: re.Match[bytes]) -> bytes:
    code = _WINDOWS.get(match[1][0])
    return chr(code).encode() if code else match[0]


def _windows_reference(match: re.Match[bytes]) -> bytes:
    written = int(match[1], 16) if match[1] else int(match[2])
    code = _WINDOWS.get(written)
    return b"&#%d;" % code if code else match[0]


BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark begins this one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MARKS: Final = tuple(mark for mark, _ in BYTE_ORDER_MARKS)
_WIDE_BEGINNINGS: Final = (
    (re.compile(rb"[<{\s]\0\0\0"), "utf-32-le"),
    (re.compile(rb"\0\0\0[<{\s]"), "utf-32-be"),
    (re.compile(rb"[<{\s]\0[^\0]\0"), "utf-16-le"),
    (re.compile(rb"\0[<{\s]\0[^\0]"), "utf-16-be"),
)
_DECLARATION: Final = re.compile(
    rb"\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']([A-Za-z0-9._:-]{1,40})[\"']"
)
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9._:-]{1,40})", re.I)

# As browsers read them: labels that are used for more than they stand for.
_WIDER: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "tis-620": "cp874",
    "iso8859-11": "cp874",
}
# Labels unknown to Python, without the prefixes that `_PREFIX` removes.
_PREFIX: Final = re.compile(r"^(?:x-(?:x-)?|cs)", re.IGNORECASE)
_LABELS: Final = {
    "ansi": "cp1252",
    "gb2312-80": "gb18030",
    "iso-8859-8-i": "iso8859-8",
    "mac": "mac-roman",
    "macintosh": "mac-roman",
    "mac-ce": "mac-latin2",
    "sjis": "cp932",
    "unicode-1-1-utf-8": "utf-8",
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
    **{f"win-{page}": f"cp{page}" for page in range(1250, 1259)},
}
# Encodings that have ASCII in its usual place.
_PAGES: Final = (
    "437 720 737 775 850 852 855 856 857 858 860 861 862 863 865 866 869 874"
)
_SINGLE_BYTE: Final = frozenset(
    {f"cp{page}" for page in (*_PAGES.split(), *range(1250, 1259), 1125)}
    | {f"iso8859-{part}" for part in range(1, 17)}
    | {"koi8-r", "koi8-t", "koi8-u", "kz1048", "ptcp154", "hp-roman8"}
    | {f"mac-{name}" for name in ["croatian", "cyrillic", "greek", "iceland"]}
    | {f"mac-{name}" for name in ["latin2", "roman", "romanian", "turkish"]}
)
# UTF-16 and UTF-32 are missing: they are recognized by their bytes, so a claim of them
# for other bytes is wrong.
_MULTI_BYTE: Final = frozenset(
    [
        "utf-8",
        "gb18030",
        "big5",
        "big5hkscs",
        "cp932",
        "euc_jp",
        "euc_jis_2004",
        "shift_jis_2004",
        "iso2022_jp",
        "iso2022_jp_2",
        "iso2022_kr",
        "cp949",
        "hz",
        "johab",
    ]
)
_FALLBACK: Final = "cp1252"
_SAMPLE: Final = 1_024


class Utf8Document(Struct, frozen=True, kw_only=True, gc=False):
    """A document in UTF-8.

    ``body`` has no byte order mark. It may still contain invalid bytes.
    """

    body: bytes
    problem: str = ""  # what had to be guessed or lost


def to_utf8(
    body: bytes, content_type: str = "", sound: tuple[int, int] = (0, 0)
) -> Utf8Document:
    """Find a document's encoding and convert it to UTF-8.

    ``sound`` is a range of positions that holds whole elements, which need no
    correction if the document is in UTF-8 already.
    """
    document = decode_as_claimed(body, content_type)
    is_same = document.body is body
    mended, problem = mend_mojibake(document.body, sound if is_same else (0, 0))
    if mended is document.body:
        return document
    return Utf8Document(body=mended, problem=document.problem or problem)


def decode_as_claimed(body: bytes, content_type: str) -> Utf8Document:
    """Like `to_utf8`, but text that was encoded twice stays as it is."""
    for mark, codec in BYTE_ORDER_MARKS if body.startswith(_MARKS) else ():
        if body.startswith(mark):
            return _transcode(body[len(mark) :], [codec])
    for beginning, codec in _WIDE_BEGINNINGS if b"\0" in body[:4] else ():
        if beginning.match(body):
            return _transcode(body, [codec])
    candidates = [*dict.fromkeys(_claims(body, content_type))]
    if candidates in ([], ["utf-8"]):
        return Utf8Document(body=body)
    return _transcode(body, candidates)


def _claims(body: bytes, content_type: str) -> Iterator[str]:
    charset = _CHARSET.search(content_type)
    if charset and (codec := known_codec(charset[1])):
        yield codec
    declared = _DECLARATION.match(body[:_SAMPLE])
    if declared and (codec := known_codec(declared[1].decode())):
        yield codec


@lru_cache(256)
def known_codec(label: str) -> str:
    """Python's codec for a charset label; "" if it is not an encoding of text."""
    for alias in (label, _PREFIX.sub("", label)):
        try:
            name = codecs.lookup(_LABELS.get(alias.lower(), alias)).name
        except (LookupError, ValueError):
            continue
        break
    else:
        return ""
    name = _WIDER.get(name, name)
    return name if name in _SINGLE_BYTE or name in _MULTI_BYTE else ""


def _transcode(body: bytes, candidates: list[str]) -> Utf8Document:
    """Decode with the first candidate that fits; with the first one if none does."""
    if any(codec in _SINGLE_BYTE for codec in candidates):
        candidates = ["utf-8", *(each for each in candidates if each != "utf-8")]
    for codec in candidates:
        try:
            text = body.decode(codec)
        except UnicodeDecodeError:
            mended = _mostly_utf8(body, candidates) if codec == "utf-8" else None
            if mended is not None:
                return mended
            continue
        # Surrogates are in pairs, or the decoder would have failed.
        return Utf8Document(body=body if codec == "utf-8" else text.encode())
    codec = next((each for each in candidates if each != "utf-8"), candidates[0])
    return Utf8Document(
        body=body.decode(codec, "replace").encode(),
        problem=f"bytes that are not {codec} were replaced",
    )


def _mostly_utf8(body: bytes, candidates: list[str]) -> Utf8Document | None:
    """Decode each sequence by itself; None if most are not UTF-8."""
    escaped = _Escaped.of(body)
    if escaped.bad >= escaped.good:
        return None
    codec = next((each for each in candidates if each in _SINGLE_BYTE), _FALLBACK)
    return Utf8Document(
        body=escaped.read_as(codec).encode(),
        problem=f"bytes that are not utf-8 were read as {codec}",
    )


def mend_utf8(body: bytes) -> tuple[str, str]:
    """The text of bytes that are not all UTF-8, and the encoding of the invalid ones.

    A few invalid bytes in a UTF-8 document are mostly Windows-1252. If they outnumber
    the valid characters, the document is in another encoding.
    """
    escaped = _Escaped.of(body)
    codec = guess_codec(body) if escaped.bad > escaped.good else _FALLBACK
    if codec == _FALLBACK:
        return escaped.read_as(codec), codec
    return body.decode(codec, "replace"), codec


@dataclass(frozen=True, slots=True)
class _Escaped:
    """Text in which bytes that are not UTF-8 are lone surrogates.

    ``good`` is the number of characters beyond ASCII, ``bad`` that of such bytes.
    """

    text: str
    good: int
    bad: int

    @classmethod
    def of(cls, body: bytes) -> _Escaped:
        text = body.decode("utf-8", "surrogateescape")
        beyond = len(text) - len(text.encode("ascii", "ignore"))
        bad = len(text) - len(text.encode("utf-8", "ignore").decode())
        return cls(text, beyond - bad, bad)

    def read_as(self, codec: str) -> str:
        """The text, with the invalid bytes decoded by that codec."""

        def read(match: re.Match[str]) -> str:
            return match[0].encode("ascii", "surrogateescape").decode(codec, "replace")

        return _ESCAPED_BYTES.sub(read, self.text)


_ESCAPED_BYTES: Final = re.compile("[\udc80-\udcff]+")
