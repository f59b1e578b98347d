"""Text that is valid UTF-8 and was decoded wrongly before it became that.

Two mistakes are common enough to be mended: all text was encoded as UTF-8 twice, and
characters of Windows-1252 became the control characters of ISO 8859-1, which HTML
has always read as what was meant.
"""

from __future__ import annotations

import re
from typing import Final

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
# Whether there are any: what begins with a rare letter is found in a third of the time.
_HAS_C1_REFERENCE: Final = re.compile(
    rb"#(?<=&#)(?:[xX]0{0,4}[89][0-9a-fA-F]|0{0,4}1[2-5]\d);"
)


def mend_mojibake(body: bytes, sound: tuple[int, int] = (0, 0)) -> tuple[bytes, str]:
    """The same text as it was meant, and what was wrong; itself if nothing was.

    From the first to the second place in ``sound`` there are whole elements, and no
    control characters among them.
    """
    mended = _encoded_once(body)
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
    if b"&#" not in mended or not _HAS_C1_REFERENCE.search(mended):
        return mended
    return _C1_REFERENCE.sub(_windows_reference, mended)


def _encoded_once(body: bytes) -> bytes:
    """Nearly all beyond ASCII has to be UTF-8 twice, or the document stays as it is.

    What comes first tells of nearly all documents that it is not. Words that are not,
    such as a template's, stay as they are.
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
    """In most documents it is near the beginning, or nowhere."""
    if body.isascii():
        return None
    start, width = 0, _STRIDE
    while body[start : start + width].isascii():
        start, width = start + width, 2 * width
    while width > _STRIDE:
        width //= 2
        if body[start : start + width].isascii():
            start += width
    return _NON_ASCII.search(body, start)


def _run_once(run: bytes) -> bytes | None:
    """``None`` if it is not UTF-8 twice."""
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
