"""What a document may cost, checked before anything is built from it.

libxml2 adds its own (256 levels, 10 MB in one text or attribute); see
`protocols.feeds.xml`.
"""

from __future__ import annotations

from protocols.errors import LimitExceeded

MAX_BODY_BYTES = 20_000_000
MAX_ENTRIES = 5_000
"""Per document; the first ones are kept."""
MAX_MARKUP = 1_000_000
"""Tags of an XML document, or values of a JSON document. Each costs about 100 bytes
of memory, however short it is written."""
MAX_ATTRIBUTES = 100
"""Of an element that is kept as an extension; the first ones are kept."""
MAX_EXTENSION_DEPTH = 16
MAX_DEPTH = 256
"""Levels of elements; libxml2's own number."""
MAX_JSON_DEPTH = 1_024
"""orjson's own number."""
MAX_TEXT_BYTES = 10_000_000
"""In one text or attribute; libxml2's own number."""


def check_body(body: bytes) -> None:
    if len(body) > MAX_BODY_BYTES:
        raise LimitExceeded("the document's size in bytes", MAX_BODY_BYTES)


def check_xml(body: bytes) -> None:
    """Bound the tree before it is built: every tag and attribute takes memory."""
    if len(body) <= MAX_MARKUP:
        return  # no need to count: each takes a byte
    if body.count(b"<") > MAX_MARKUP:
        raise LimitExceeded("the number of tags", MAX_MARKUP)
    if len(body) <= 2 * MAX_MARKUP:
        return
    if body.count(b"=") > 2 * MAX_MARKUP:
        raise LimitExceeded("the number of attributes", 2 * MAX_MARKUP)
    if body.count(b"&") > 2 * MAX_MARKUP:
        raise LimitExceeded("the number of references", 2 * MAX_MARKUP)


def check_json(body: bytes) -> None:
    if len(body) <= 2 * MAX_MARKUP:
        return
    values = body.count(b"[") + body.count(b"{") + body.count(b",")
    if values > 2 * MAX_MARKUP:
        raise LimitExceeded("the number of JSON values", 2 * MAX_MARKUP)
