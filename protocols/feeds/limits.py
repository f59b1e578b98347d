"""Limits of documents, checked before anything is built from them.

The parser has limits of its own: 256 levels, 10 MB in one text or attribute (see
`protocols.feeds.xml`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from protocols.protocol_errors import LimitExceeded

Item = TypeVar("Item")

MAX_BODY_BYTES = 20_000_000
MAX_ENTRIES = 5_000
"""The most entries of a document; the newest are kept, the first if none has a date."""
MAX_MARKUP = 1_000_000
"""Tags of an XML document, or values of a JSON document. Each costs about 100 bytes
of memory, however short it is written."""
MAX_ATTRIBUTES = 100
"""The most attributes of an element kept as an extension; the first are kept."""
MAX_EXTENSION_DEPTH = 16
MAX_DEPTH = 256
"""Levels of elements; the same as libxml2's limit."""
MAX_JSON_DEPTH = 1_024
"""The same as orjson's limit."""
MAX_TEXT_BYTES = 10_000_000
"""The most bytes of one text or attribute; the same as libxml2's limit."""
_NO_DATE = datetime(1, 1, 1, tzinfo=UTC)


def newest(
    entries: Sequence[Item], date_of: Callable[[Item], datetime | None]
) -> Sequence[Item]:
    """The newest `MAX_ENTRIES` entries, in the document's order."""
    if len(entries) <= MAX_ENTRIES:
        return entries
    dates = [date_of(entry) or _NO_DATE for entry in entries]
    by_age = sorted(range(len(entries)), key=dates.__getitem__, reverse=True)
    return [entries[number] for number in sorted(by_age[:MAX_ENTRIES])]


def check_body(body: bytes) -> None:
    if len(body) > MAX_BODY_BYTES:
        raise LimitExceeded("the document's size in bytes", MAX_BODY_BYTES)


def check_xml(body: bytes, lines_before: int = 0) -> None:
    """Check the numbers of tags and attributes, which take memory in the tree.

    ``lines_before`` lines have been dropped from the document; errors count them.
    Raises `LimitExceeded`.
    """
    if len(body) <= MAX_MARKUP:
        return  # no need to count: each takes at least a byte
    _check(body, b"<", "the number of tags", MAX_MARKUP, lines_before)
    if len(body) <= 2 * MAX_MARKUP:
        return
    _check(body, b"=", "the number of attributes", 2 * MAX_MARKUP, lines_before)
    _check(body, b"&", "the number of references", 2 * MAX_MARKUP, lines_before)


def check_json(body: bytes) -> None:
    if len(body) <= 2 * MAX_MARKUP:
        return
    values = body.count(b"[") + body.count(b"{") + body.count(b",")
    if values > 2 * MAX_MARKUP:
        raise LimitExceeded("the number of JSON values", 2 * MAX_MARKUP)


def _check(body: bytes, sign: bytes, what: str, most: int, lines_before: int) -> None:
    # If the first part has enough bytes other than the sign, the rest is not counted.
    others = len(body) - most
    head = min(len(body), others + others // 4)
    if body.count(sign, 0, head) > head - others and body.count(sign) > most:
        line = body.count(b"\n", 0, _place_beyond(body, sign, most)) + 1
        raise LimitExceeded(what, most, line + lines_before)


def _place_beyond(body: bytes, sign: bytes, most: int) -> int:
    """The position of the first occurrence beyond the limit."""
    start, end = 0, len(body)
    while end - start > 1:
        middle = (start + end) // 2
        count = body.count(sign, start, middle)
        if count > most:
            end = middle
        else:
            start, most = middle, most - count
    return start
