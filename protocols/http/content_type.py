"""``Content-Type``: the media type and the charset it claims."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
