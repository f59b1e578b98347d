"""Which encoding a document is in, and the document in UTF-8.

In this order: byte order mark, the charset of the HTTP header, the document's own
declaration, and what the bytes look like. One exception: bytes that are valid UTF-8
are UTF-8, whatever single-byte encoding is claimed for them. The claim is a common
mistake, and such bytes would be gibberish in the encoding claimed. Where most
sequences are UTF-8 it is decided sequence by sequence, so that one stray byte spoils
no other. Two more mistakes are mended on the way: text that was encoded as UTF-8
twice, and characters of Windows-1252 that were taken for the control characters of
ISO 8859-1.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from msgspec import Struct

from protocols.feeds.guess import guess_codec
from protocols.feeds.mojibake import mend_mojibake

BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
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

# As browsers read them: the names that are used for more than they stand for.
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
# Labels that Python does not know, less what stands before the names in them.
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
# All of them have ASCII in its usual place.
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
# UTF-16 and UTF-32 are none: they show, so that who claims them of other bytes errs.
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
    """``body`` has no byte order mark. It may still hold bad bytes: nobody looked."""

    body: bytes
    problem: str = ""  # what had to be guessed or lost


def to_utf8(
    body: bytes, content_type: str = "", sound: tuple[int, int] = (0, 0)
) -> Utf8Document:
    """Find a document's encoding and change it into UTF-8.

    From the first to the second place in ``sound`` there are whole elements, which are
    known to need no mending if the document is in UTF-8 already.
    """
    document = decode_as_claimed(body, content_type)
    is_same = document.body is body
    mended, problem = mend_mojibake(document.body, sound if is_same else (0, 0))
    if mended is document.body:
        return document
    return Utf8Document(body=mended, problem=document.problem or problem)


def decode_as_claimed(body: bytes, content_type: str) -> Utf8Document:
    """As `to_utf8`; what was encoded twice stays as it is."""
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
    """Python's codec for a charset label; "" for what is no encoding of text."""
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
    """Decode with the first candidate that fits; the first one anyway if none does."""
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
    """Each sequence by itself, unless more of them are of another encoding."""
    escaped = _Escaped.of(body)
    if escaped.bad >= escaped.good:
        return None
    codec = next((each for each in candidates if each in _SINGLE_BYTE), _FALLBACK)
    return Utf8Document(
        body=escaped.read_as(codec).encode(),
        problem=f"bytes that are not utf-8 were read as {codec}",
    )


def mend_utf8(body: bytes) -> tuple[str, str]:
    """The text of bytes that are not all UTF-8, and the encoding of those.

    Some bad ones in a document of UTF-8 are mostly of Windows-1252. If there are more
    of them than of good characters, the document is in another encoding.
    """
    escaped = _Escaped.of(body)
    codec = guess_codec(body) if escaped.bad > escaped.good else _FALLBACK
    if codec == _FALLBACK:
        return escaped.read_as(codec), codec
    return body.decode(codec, "replace"), codec


@dataclass(frozen=True, slots=True)
class _Escaped:
    """Text in which bytes that are not UTF-8 are half characters.

    ``good`` are its characters beyond ASCII, ``bad`` those bytes.
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
        """The text, with the bad bytes read as that codec's."""

        def read(match: re.Match[str]) -> str:
            return match[0].encode("ascii", "surrogateescape").decode(codec, "replace")

        return _ESCAPED_BYTES.sub(read, self.text)


_ESCAPED_BYTES: Final = re.compile("[\udc80-\udcff]+")
