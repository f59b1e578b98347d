"""Ids of RSS as they are written, where feedparser reads them as addresses.

It resolves a guid that may be one against ``xml:base``; to us, as to RSS, a guid is a
string, whatever reads it. Of ``rdf:about``, which is an address, it is the reverse.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from protocols.urls import is_absolute

_GUID: Final = re.compile(
    rb"<guid(?:\s[^<>]{0,200})?>\s{0,40}(?:<!\[CDATA\[\s{0,40})?([^<>\[\]]{1,500})",
    re.IGNORECASE,
)
_ORIGIN: Final = re.compile(r"[a-zA-Z]+://[^/?#]+")


def relative_guids(body: bytes) -> frozenset[str]:
    """Those in a UTF-8 document that has bases of its own; none in others."""
    if b"xml:base" not in body:
        return frozenset()
    found = {match[1].decode("utf-8", "replace") for match in _GUID.finditer(body)}
    guids = {unescape(each).strip() for each in found}
    return frozenset(each for each in guids if each and not is_absolute(each))


def as_written(id: str, base: str, guids: frozenset[str]) -> str:
    """The guid that became the id by being resolved against the base; or the id."""
    origin = _ORIGIN.match(base)
    for beginning in (base[: base.rfind("/") + 1], origin[0] if origin else ""):
        rest = id[len(beginning) :]
        if beginning and id.startswith(beginning) and rest in guids:
            return rest
    return id
