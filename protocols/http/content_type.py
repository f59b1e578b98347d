"""``Content-Type``: the media type and the charset it claims."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

OCTET_STREAM: Final = "application/octet-stream"
"""What a body is taken for whose sender does not say (RFC 9110 8.3)."""
_NAME = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_MEDIA_TYPE = re.compile(rf"\s*({_NAME}/{_NAME})\s*(?:[;,]|$)")
_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([^\s;,"']+)""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ContentType:
    """Both in lower case; empty where the header has none or makes no sense."""

    media_type: str = ""
    charset: str = ""


def parse_content_type(header: str) -> ContentType:
    media_type = _MEDIA_TYPE.match(header)
    charset = _CHARSET.search(header)
    return ContentType(
        media_type=media_type[1].lower() if media_type else "",
        charset=charset[1].lower() if charset else "",
    )


def sendable_content_type(header: str, default: str) -> str:
    """The header as it came, or as much of it as may be sent on.

    A field's value is US-ASCII (RFC 9110 5.5): a parameter that holds anything else is
    left out. If there is no media type, it is the ``default``.
    """
    if header.isascii() and header.isprintable() and header.strip():
        return header
    media_type, *parameters = map(str.strip, header.split(";"))
    if not parse_content_type(media_type).media_type:
        return default
    return "; ".join([media_type, *filter(_is_sendable, parameters)])


def _is_sendable(parameter: str) -> bool:
    """Not so for parts of a quoted string that was split at a semicolon in it."""
    is_whole = bool(parameter) and parameter.count('"') % 2 == 0
    return is_whole and parameter.isascii() and parameter.isprintable()
