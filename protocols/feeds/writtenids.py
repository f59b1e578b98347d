"""Ids of RSS as they are written, where feedparser reads them otherwise.

It resolves a guid that may be one against ``xml:base``; to us, as to RSS, a guid is a
string, whatever reads it. Of ``rdf:about``, which is an address, it is the reverse, and
that of the channel it leaves out. Of several guids of an item it takes the last one.
"""

from __future__ import annotations

import re
from functools import partial
from html import unescape
from itertools import islice
from typing import Final

from protocols.urls import is_absolute

_GUID: Final = re.compile(
    rb"<guid(?:\s[^<>]{0,200})?>\s{0,40}(?:<!\[CDATA\[\s{0,40})?([^<>\[\]]{1,500})",
    re.IGNORECASE,
)
_ITEM: Final = re.compile(rb"<item[\s>]", re.IGNORECASE)
_CHANNEL: Final = re.compile(
    rb"<channel\s[^<>]{0,500}?\brdf:about\s*=\s*[\"']([^\"'<>]{1,500})", re.IGNORECASE
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


def channel_id(body: bytes) -> str:
    """What RDF's channel is about; "" if it does not say."""
    found = _CHANNEL.search(body)
    return unescape(found[1].decode("utf-8", "replace")).strip() if found else ""


def first_guids(body: bytes, count: int) -> tuple[str, ...]:
    """The first guid of each of ``count`` items of a UTF-8 document; "" of those with
    less than two, and of all if it seems to have more or fewer items."""
    starts = [match.start() for match in _ITEM.finditer(body)]
    if len(starts) != count:
        return ("",) * count
    ends = (*starts[1:], len(body))
    return tuple(map(partial(_first_of_several, body), starts, ends))


def _first_of_several(body: bytes, start: int, end: int) -> str:
    guids = [*islice(_GUID.finditer(body, start, end), 2)]
    if len(guids) < 2:
        return ""
    return unescape(guids[0][1].decode("utf-8", "replace")).strip()
