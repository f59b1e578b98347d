"""Addresses as collections have them: URIs of the web, in ASCII, or none."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote

from protocols.urls import LONGEST, is_web_url

_PLAIN = re.compile(
    r"https?://[A-Za-z0-9._~:@%-]+(?:[/?#][A-Za-z0-9._~:/?@!$&'()*+,;=-]*)?"
)
_NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_KEPT = "-._~:/?#@!$&'()*+,;=%"


@lru_cache(maxsize=2_048)
def page_address(url: str) -> str:
    """A web URL as RFC 3986 has it, its scheme in lower case; "" for any other.

    What may not stand in one is escaped; a host in other letters stays as escapes.
    """
    if _PLAIN.fullmatch(url):
        return url
    url = url.strip()
    if not is_web_url(url) or len(url) > LONGEST:
        return ""
    scheme, _, rest = url.partition("://")
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    if not host or "\\" in host or re.search(r"\s", host):
        return ""
    path = _NO_ESCAPE.sub("%25", rest[len(host) :])
    # Of hashes only the first begins a fragment.
    before, mark, fragment = path.partition("#")
    path = before + mark + fragment.replace("#", "%23")
    safe_host = quote(host, safe="[]:@%-._~!$&'()*+,;=", errors="ignore")
    return f"{scheme.lower()}://{safe_host}{quote(path, safe=_KEPT, errors='ignore')}"
