"""Long texts of entries in CDATA sections, read without the XML parser.

The parser looks at every character of a section, which takes longer than everything
else. So a long section is taken out of the document, and the tree is built with a
stand-in, for which the readers of an entry's text substitute the text. What was taken
out was a section if each stand-in is found once as the text of an element. If one is
not, or if the parser finds any error, the document is parsed again unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from protocols.feeds.limits import MAX_TEXT_BYTES

LONG: Final = 1_000
"""Bytes; from here on a section is worth the way."""
STAND_IN: Final = "\x81"
"""Stand-ins begin with it: a control character, as no text does."""

_BEGIN, _END = b"<![CDATA[", b"]]>"
_LONGEST: Final = MAX_TEXT_BYTES // 2  # what else the element has counts, too
_LONGEST_TAG: Final = 200
_OF_RSS: Final = re.compile(rb"<(?:description|content:encoded)>\s{0,40}").fullmatch
_OF_ATOM: Final = re.compile(rb"<(?:content|summary)(?:\s[^<>]*)?>\s{0,40}").fullmatch
_ENDS: Final = re.compile(rb"\s{0,40}</").match
_HEAD: Final = 2_048
# Production 2 of XML 1.0, less what no UTF-8 has; and line ends that are to be changed.
_ALLOWED: Final = bytes({*range(256)} - {*range(0x20)} | {*b"\t\n"})
_NO_CHARACTERS: Final = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")


class StandInFound(Exception):
    """A stand-in where no text is asked for: the document is to be read as it is."""


class LongTexts:
    """The texts that were taken out of a document, each to be handed out once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def keep(self, text: str) -> str:
        """Its stand-in."""
        stand_in = f"{STAND_IN}{len(self._texts)}{STAND_IN}"
        self._texts[stand_in] = text
        return stand_in

    def hand_out(self, stand_in: str) -> str:
        """Raises `StandInFound` for an unknown one, or one that was handed out."""
        try:
            return self._texts.pop(stand_in)
        except KeyError:
            raise StandInFound from None

    @property
    def are_left(self) -> bool:
        return bool(self._texts)


def shorten(body: bytes) -> tuple[bytes, LongTexts] | None:
    """Take the long sections out of entries; ``None`` if there are none to be taken."""
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
    """Where each begins and ends; by brackets, which are found sooner than words."""
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
    """-1 if it has none."""
    bracket = body.find(b"]", start)
    while bracket >= 0 and not body.startswith(_END, bracket):
        bracket = body.find(b"]", bracket + 1)
    return bracket + len(_END) if bracket >= 0 else -1


def _text(section: bytes) -> str | None:
    """``None`` if XML does not allow a character, or changes one."""
    if section.translate(None, _ALLOWED):
        return None
    if b"\xef" in section and any(each in section for each in _NO_CHARACTERS):
        return None
    try:
        return section.decode()
    except UnicodeDecodeError:
        return None
