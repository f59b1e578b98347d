"""What RFC 4287 lets stand in attributes; whatever feeds have there, this is valid."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote

_DOUBTFUL = re.compile('[\x00-\x20"<>\\\\^`{|}\x7f-\xa0%\ud800-\udfff]')
_NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_NO_IRI = re.compile('[\x00-\x20"<>\\\\^`{|}\x7f-\xa0]')
_NAME = r"[A-Za-z0-9!#$&^_.+*'`|~%-]+"
_MEDIA_TYPE = re.compile(rf"{_NAME}/{_NAME}(?:\s*;[^\x00-\x1f\x7f-\x9f]*)?")
_RELATION = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=@-]+")
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]+")
_COMPOSITE = ("multipart/", "message/")
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")


def iri(reference: str) -> str:
    """With what no IRI may have (RFC 3987 2.2) escaped; mostly as it is."""
    if _DOUBTFUL.search(reference) is None:
        return reference
    escaped = _NO_ESCAPE.sub("%25", reference)
    return _NO_IRI.sub(lambda found: quote(found[0], errors="replace"), escaped)


def relation(rel: str) -> str:
    """A name or an IRI (RFC 4287 4.2.7.2); without one it is ``alternate``."""
    if not rel or _RELATION.fullmatch(rel) or (_IRI.fullmatch(rel) and iri(rel) == rel):
        return rel or "alternate"
    return quote(rel, safe="", errors="replace")


@lru_cache(maxsize=256)
def media_type(type: str) -> str:
    """ "" for what is none."""
    return type if _MEDIA_TYPE.fullmatch(type) else ""


def is_composite(type: str) -> bool:
    return type.lower().startswith(_COMPOSITE)


def email_address(email: str) -> str:
    """ "" for what cannot be one."""
    return email if _EMAIL.fullmatch(email) else ""
