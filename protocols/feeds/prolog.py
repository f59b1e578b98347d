"""What stands before the root element of an XML or HTML document.

No document type definition ever reaches the parser: the declaration is blanked out,
and one that declares entities of its own is refused. That leaves no way to expand
anything into more than it is, nor to make the parser open a file.
"""

from __future__ import annotations

import re
from html.entities import name2codepoint
from typing import Final

from msgspec import Struct

from protocols.errors import MalformedDocument

_DOCTYPE: Final = re.compile(rb"<!DOCTYPE\s+([^\s>\[]*)", re.IGNORECASE)
_ENTITY: Final = re.compile(rb"<!ENTITY\s+([^\s%\"'<>]{1,200})")
_SUBSET_END: Final = re.compile(rb"\]\s*>")
_ROOT: Final = re.compile(rb"<([^\s<>/!?=&\"']{1,200})")
# Unclosed ones reach to the end: nothing is looked for twice.
_SKIPPED: Final = re.compile(rb"\s+|<\?.*?(?:\?>|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL)


class Prolog(Struct, frozen=True, kw_only=True, gc=False):
    """``root`` is the first start tag's name as written; "" when there is none."""

    root: str
    doctype: str = ""
    doctype_span: tuple[int, int] = (0, 0)


def read_prolog(body: bytes) -> Prolog:
    """Find the root, past declarations and comments."""
    position = _past_comments(body, 0)
    doctype = _DOCTYPE.match(body, position)
    if doctype is None:
        return Prolog(root=_root_name(body, position))
    end = _doctype_end(body, position)
    return Prolog(
        root=_root_name(body, _past_comments(body, end)),
        doctype=doctype[1].decode("utf-8", "replace"),
        doctype_span=(position, end),
    )


def without_doctype(body: bytes, prolog: Prolog) -> bytes:
    """Blank out the document type, lines kept. Raises `MalformedDocument`.

    HTML's own names, such as ``nbsp``, need no declaration: declaring them is harmless.
    """
    start, end = prolog.doctype_span
    if start == end:
        return body
    if _DOCTYPE.match(body, _past_comments(body, end)):
        raise MalformedDocument("a second document type", body.count(b"\n", 0, end) + 1)
    declaration = body[start:end]
    for match in _ENTITY.finditer(declaration):
        name = match[1].decode("utf-8", "replace")
        if name not in name2codepoint:
            line = body.count(b"\n", 0, start + match.start()) + 1
            cause = f"the document type declares an entity of its own: {name[:80]}"
            raise MalformedDocument(cause, line)
    return body[:start] + b"\n" * declaration.count(b"\n") + body[end:]


def _past_comments(body: bytes, position: int) -> int:
    """Past white space, processing instructions and comments."""
    while skipped := _SKIPPED.match(body, position):
        position = skipped.end()
    return position


def _root_name(body: bytes, position: int) -> str:
    root = _ROOT.match(body, position)
    return root[1].decode("utf-8", "replace") if root else ""


def _doctype_end(body: bytes, start: int) -> int:
    """Past its ``>``, which may stand after an internal subset in brackets."""
    bracket, close = body.find(b"[", start), body.find(b">", start)
    if not 0 <= bracket < close:
        return close + 1 if close >= 0 else len(body)
    subset_end = _SUBSET_END.search(body, bracket)
    return subset_end.end() if subset_end else len(body)
