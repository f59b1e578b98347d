"""Names of people as everybody may read them: mail addresses are nobody's business."""

from __future__ import annotations

import re
from typing import Any, Final

from protocols.model import Author
from protocols.text import collapse

LONGEST_NAME: Final = 200
"""Characters of a name that are read, to the end of a word."""

_NOTHING: Final[tuple[Any, ...]] = ("", [], {})

# Its time grows with the square of what it reads.
_MAIL = re.compile(r"[^\s@<>()]+@[^\s@<>()]+\.[^\s@<>()]+")


def display_name(person: Author) -> str:
    """A name without the mail address that may stand in it."""
    name = person.name
    if len(name) > LONGEST_NAME:
        name = name[:LONGEST_NAME].rpartition(" ")[0]  # no half address at its end
    return collapse(_MAIL.sub("", name)).strip(" <>()")


def without_addresses(value: Any) -> Any:
    """What an extension says, JSON, without mail addresses; what was nothing else is
    gone. Long texts and URLs are as they were, and names of the kind @ann@host."""
    if isinstance(value, str):
        return _without_address(value) if "@" in value else value
    if isinstance(value, list):
        kept = ((each, without_addresses(each)) for each in value)
        return [after for before, after in kept if after not in _NOTHING or not before]
    if isinstance(value, dict):
        named = ((name, each, without_addresses(each)) for name, each in value.items())
        return {
            name: after
            for name, before, after in named
            if after not in _NOTHING or not before
        }
    return value


def _without_address(text: str) -> str:
    if len(text) > LONGEST_NAME or "://" in text or text.startswith("@"):
        return text
    said = _MAIL.sub("", text)
    return text if said == text else collapse(said).strip(" <>()")
