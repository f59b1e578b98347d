"""What people and templates write for JSON, mended into JSON."""

from __future__ import annotations

import re
from typing import Final

from protocols.feeds.document import Document, Repair

# Strings first: what stands in them is neither a comment nor a comma. Nothing is tried
# in a second way, and what is not closed lasts to the end: else it takes squared time.
# What needs no mending is passed over at one go, and so is the same fault in a row:
# each match takes a microsecond, and there may be millions of them.
_SOUND: Final = r'[^"\\\x00-\x1f]*+'
_TOKEN: Final = re.compile(
    rf'(?P<sound>(?:"{_SOUND}(?:\\["\\/bfnrt]{_SOUND})*+"'
    r'|[^"/,NIu-]++|,\s*+(?=[\[{"]))++)'
    r'|(?P<string>"(?:[^"\\]|\\.)*+(?:"|\\?\Z))'
    r"|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<comma>,(?=(?:\s|//[^\n]*+\n|(?>/\*.*?\*/))*+[}\]]))"
    r"|(?P<number>\b(?:NaN|undefined)\b|-?\bInfinity\b)",
    re.DOTALL,
)
_PAIR: Final = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_BACKSLASHES: Final = re.compile(
    rf"(?P<sound>(?:\\(?:[\"\\/bfnrt]|{_PAIR}|u(?![dD][89a-fA-F])[0-9a-fA-F]{{4}}))++)"
    r"|(?P<half>\\u[0-9a-fA-F]{4})"
    r"|(?P<wrong>(?:\\[^u\"\\/bfnrt][^\\]*+)++|\\.)",
    re.DOTALL,
)
_CONTROLS: Final = {code: f"\\u{code:04x}" for code in range(0x20)}
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
    if match["sound"]:
        return match[0]
    if match["string"]:
        return _BACKSLASHES.sub(_escaped, match["string"]).translate(_CONTROLS)
    if match["comment"]:
        return "\n" * match["comment"].count("\n")
    return "null" if match["number"] else ""


def _escaped(match: re.Match[str]) -> str:
    if match["half"]:  # of a character
        return "\\ufffd"
    return match["sound"] or match["wrong"].replace("\\", "")
