"""Read long texts of entries in CDATA sections without the XML parser.

The parser looks at every character of a section, which takes longer than everything
else. So long sections are taken out of the document, and the tree is built with a
stand-in for each, which the readers of an entry's text replace by the text. If each
stand-in is found exactly once as the text of an element, what was taken out was indeed
a section. If one is not found, or if the parser finds any error, the document is parsed
again unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from protocols.feeds.limits import MAX_TEXT_BYTES

LONG: Final = 1_000
"""Bytes; taking out a shorter section does not pay."""
STAND_IN: Final = "\x81"
"""The first character of a stand-in: a control character, with which no text begins."""

_BEGIN, _END = b"<![CDATA[", b"]]>"
_LONGEST: Final = MAX_TEXT_BYTES // 2  # other text in the element counts, too
_LONGEST_TAG: Final = 200
_OF_RSS: Final = re.compile(rb"<(?:description|content:encoded)>\s{0,40}").fullmatch
_OF_ATOM: Final = re.compile(rb"<(?:content|summary)(?:\s[^<>]*)?>\s{0,40}").fullmatch
_ENDS: Final = re.compile(rb"\s{0,40}</").match
_HEAD: Final = 2_048
# Production 2 of XML 1.0, except for what UTF-8 cannot contain, and for line ends that
# XML changes.
_ALLOWED: Final = bytes({*range(256)} - {*range(0x20)} | {*b"\t\n"})
_NO_CHARACTERS: Final = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")


class StandInFound(Exception):
    """A stand-in is in a wrong place: the document must be read unchanged."""


class LongTexts:
    """The texts that were taken out of a document; each can be handed out once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def keep(self, text: str) -> str:
        """Store a text and return its stand-in."""
        stand_in = f"{STAND_IN}{len(self._texts)}{STAND_IN}"
        self._texts[stand_in] = text
        return stand_in

    def hand_out(self, stand_in: str) -> str:
        """The text of a stand-in.

        Raises `StandInFound` if it is unknown or was handed out.
        """
        try:
            return self._texts.pop(stand_in)
        except KeyError:
            raise StandInFound from None

    @property
    def are_left(self) -> bool:
        return bool(self._texts)


def shorten(body: bytes) -> tuple[bytes, LongTexts] | None:
    """Take the long sections out of entries.

    Returns the shorter document and the texts; ``None`` if nothing is taken out.
    """
    is_atom = b"<feed" in body[:_HEAD]
    is_text_tag = _OF_ATOM if is_atom else _OF_RSS
    first = body.find(b"<entry" if is_atom else b"<item") if b"[" in body else -1
    texts = LongTexts()
    parts: list[bytes] = []
    copied = 0
    for start, end in _long_sections(body, first) if first >= 0 else ():
        tag = body.rfind(b"<", max(copied, start - _LONGEST_TAG), start)
        if tag < 0 or not is_text_tag(body, tag, start) or not _ENDS(body, end):
            continue
        text = _text(body[start + len(_BEGIN) : end - len(_END)])
        if text is None:
            return None
        parts += body[copied:start], texts.keep(text).encode()
        copied = end
    if not parts:
        return None
    parts.append(body[copied:])
    return b"".join(parts), texts


def _long_sections(body: bytes, start: int) -> Iterator[tuple[int, int]]:
    """The start and end of each long section.

    Found by brackets, faster than by words.
    """
    bracket = body.find(b"[", start)
    while bracket >= 0:
        start = bracket - len(_BEGIN) + 1
        if not body.startswith(_BEGIN, start):
            bracket = body.find(b"[", bracket + 1)
            continue
        end = _end_of_section(body, bracket)
        if end < 0:
            return
        if LONG <= end - start <= _LONGEST:
            yield start, end
        bracket = body.find(b"[", end)


def _end_of_section(body: bytes, start: int) -> int:
    """The position after the section's end; -1 if it has none."""
    bracket = body.find(b"]", start)
    while bracket >= 0 and not body.startswith(_END, bracket):
        bracket = body.find(b"]", bracket + 1)
    return bracket + len(_END) if bracket >= 0 else -1


def _text(section: bytes) -> str | None:
    """The section's text; ``None`` if XML forbids or changes one of its characters."""
    if section.translate(None, _ALLOWED):
        return None
    if b"\xef" in section and any(each in section for each in _NO_CHARACTERS):
        return None
    try:
        return section.decode()
    except UnicodeDecodeError:
        return None
