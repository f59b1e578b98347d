"""Header values that cannot end a header, whatever text they are made of."""

from __future__ import annotations

from urllib.parse import quote

_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))
_IN_BRACKETS = "".join(set(_PRINTABLE) - set(' "<>'))


def header_value(text: str) -> str:
    """The text, with all but printable ASCII percent-encoded as UTF-8."""
    if text.isascii() and text.isprintable():
        return text
    return quote(text, safe=_PRINTABLE, errors="replace")


def header_url(url: str) -> str:
    """A URL for between angle brackets, where blanks and quotes are escaped too."""
    return quote(url, safe=_IN_BRACKETS, errors="replace")
