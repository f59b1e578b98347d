"""Which encoding a document is in, and the document in UTF-8.

In this order: byte order mark, the charset of the HTTP header, the document's own
declaration, and what the bytes look like. One exception: bytes that are valid UTF-8
are UTF-8, whatever single-byte encoding is claimed for them. The claim is a common
mistake, and such bytes would be gibberish in the encoding claimed.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
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
    "utf-16": "utf-16-le",
    "utf-32": "utf-32-le",
}
_SINGLE_BYTE: Final = frozenset(
    {f"cp{page}" for page in (437, 850, 852, 855, 866, 874, *range(1250, 1259))}
    | {f"iso8859-{part}" for part in range(1, 17)}
    | {"koi8-r", "koi8-u", "mac-roman", "mac-cyrillic"}
)
_MULTI_BYTE: Final = frozenset(
    [
        "utf-8",
        "utf-16-le",
        "utf-16-be",
        "utf-32-le",
        "utf-32-be",
        "gb18030",
        "big5",
        "big5hkscs",
        "cp932",
        "euc_jp",
        "iso2022_jp",
        "cp949",
        "johab",
    ]
)
_FALLBACK: Final = "cp1252"
_SAMPLE: Final = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class Utf8Document:
    """``body`` has no byte order mark. It may still hold bad bytes: nobody looked."""

    body: bytes
    problem: str = ""  # what had to be guessed or lost


def to_utf8(body: bytes, content_type: str = "") -> Utf8Document:
    """Find a document's encoding and change it into UTF-8."""
    for mark, codec in _BYTE_ORDER_MARKS:
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


def known_codec(label: str) -> str:
    """Python's codec for a charset label; "" for what is no encoding of text."""
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
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
            continue
        # UTF-16 holds surrogates in pairs, or the decoder would have failed.
        return Utf8Document(body=body if codec == "utf-8" else text.encode())
    codec = next((each for each in candidates if each != "utf-8"), candidates[0])
    return Utf8Document(
        body=body.decode(codec, "replace").encode(),
        problem=f"bytes that are not {codec} were replaced",
    )


def mend_utf8(body: bytes) -> str:
    """Decode UTF-8 with bad bytes in it, read as the Windows bytes they mostly are.

    Without any valid non-ASCII UTF-8 the whole document is Windows-1252.
    """
    text = body.decode("utf-8", "surrogateescape")
    return _ESCAPED_BYTES.sub(_from_windows, text)


_ESCAPED_BYTES: Final = re.compile("[\udc80-\udcff]+")


def _from_windows(match: re.Match[str]) -> str:
    return match[0].encode("ascii", "surrogateescape").decode(_FALLBACK, "replace")
