"""Persons as RSS writes them: an e-mail address, and a name beside it."""

from __future__ import annotations

import re
from functools import lru_cache

from protocols.model import Author
from protocols.text import collapse, text_of_html

_ADDRESS = r"(?:mailto:)?(?P<email>[^\s()<>@]+@[^\s()<>@]+)"
_ADDRESS_ONLY = re.compile(_ADDRESS)
_ADDRESS_FIRST = re.compile(_ADDRESS + r"\s*\((?P<name>.*)\)")
_NAME_FIRST = re.compile(r"(?P<name>[^<(]*[^<(\s])\s*[<(]\s*" + _ADDRESS + r"\s*[>)]")
_LONGEST_REMEMBERED = 100
_LAYOUTS = (_ADDRESS_FIRST, _NAME_FIRST, _ADDRESS_ONLY)


def read_mailbox(text: str) -> Author:
    """``jo@example.com (Jo)``, ``Jo <jo@example.com>``, either one alone."""
    return _read(text) if len(text) > _LONGEST_REMEMBERED else _read_again(text)


def _read(text: str) -> Author:
    written = collapse(text)
    for layout in _LAYOUTS if "@" in written else ():
        match = layout.fullmatch(written)
        if match:
            parts = match.groupdict()
            return Author(name=parts.get("name", "").strip(' "'), email=parts["email"])
    return Author(name=text_of_html(written))


_read_again = lru_cache(1024)(_read)
"""A feed has few authors, and each of them over and over."""
