"""What people and templates write for JSON, mended into JSON."""

from __future__ import annotations

import re
from typing import Final

from protocols.feeds.document import Document, Repair

# Strings first: what stands in them is neither a comment nor a comma. Nothing is tried
# in a second way, and what is not closed lasts to the end: else it takes squared time.
_TOKEN: Final = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*+(?:"|\\?\Z))'
    r"|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<comma>,(?=(?:\s|//[^\n]*+\n|(?>/\*.*?\*/))*+[}\]]))"
    r"|(?P<number>\b(?:NaN|undefined)\b|-?\bInfinity\b)",
    re.DOTALL,
)
_PAIR: Final = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_IN_STRING: Final = re.compile(
    rf"(?P<sound>\\(?:[\"\\/bfnrt]|{_PAIR}|u(?![dD][89a-fA-F])[0-9a-fA-F]{{4}}))"
    r"|(?P<half>\\u[0-9a-fA-F]{4})|\\?(?P<control>[\x00-\x1f])|\\(?P<plain>.)",
    re.DOTALL,
)
_PROBLEM: Final = "JSON was mended: control characters, commas, comments or escapes"


def repair_json(document: Document) -> Document:
    """Mend a document in UTF-8; the same, unchanged, when nothing helps.

    Raw line breaks and wrong escapes in strings, commas before a closing bracket,
    comments, and numbers that are none.
    """
    text = document.body.decode()
    mended = _TOKEN.sub(_as_json, text)
    if mended == text:
        return document
    return document.repaired(mended.encode(), Repair(name="json", problem=_PROBLEM))


def _as_json(match: re.Match[str]) -> str:
    if match["string"]:
        return _IN_STRING.sub(_escaped, match["string"])
    if match["comment"]:
        return "\n" * match["comment"].count("\n")
    return "null" if match["number"] else ""


def _escaped(match: re.Match[str]) -> str:
    if match["control"]:
        return f"\\u{ord(match['control']):04x}"
    if match["half"]:  # of a character
        return "\\ufffd"
    return match["plain"] or match[0]
