"""rssCloud: a feed's ``<cloud>`` tells registered aggregators that it has changed.

A registration lasts 25 hours. The news itself is not sent, nor is anything signed.
Of its protocols only those over HTTP POST.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode, urlsplit

LEASE_SECONDS: Final = 25 * 3_600
_SCHEMES: Final = {"http-post": "http", "https-post": "https"}
_SUCCESS: Final = re.compile(
    rb"""success["']?\s*[=:]\s*["']?\s*(true|1)\b""", re.IGNORECASE
)
_DOMAIN: Final = re.compile(r"[A-Za-z0-9.\-]{1,253}|\[[0-9A-Fa-f:.]+\]")


def cloud_url(cloud: Mapping[str, object]) -> str:
    """Where one registers with a ``<cloud>`` element; "" if that cannot be known."""
    scheme = _SCHEMES.get(_text(cloud, "protocol").lower())
    domain, port = _text(cloud, "domain"), _text(cloud, "port")
    path = _text(cloud, "path")
    if scheme is None or not _DOMAIN.fullmatch(domain) or not path.isprintable():
        return ""
    if port and not (port.isascii() and port.isdigit() and 0 < int(port[:9]) < 65_536):
        return ""
    if port == "443":
        scheme = "https"
    default = {"http": "80", "https": "443"}[scheme]
    place = domain if port in ("", default) else f"{domain}:{port}"
    return f"{scheme}://{place}/{path.lstrip('/')}"


def registration_form(*, callback: str, topic: str) -> bytes:
    """The body of a registration. With ``domain`` the cloud asks the callback for a
    challenge, instead of telling whoever sent the request."""
    parts = urlsplit(callback)
    is_https = parts.scheme == "https"
    fields = {
        "notifyProcedure": "",
        "domain": parts.hostname or "",
        "port": str(parts.port or (443 if is_https else 80)),
        "path": parts.path,
        "protocol": "https-post" if is_https else "http-post",
        "url1": topic,
    }
    return urlencode(fields).encode("ascii")


def is_registered(body: bytes) -> bool:
    """Whether a cloud's answer, in XML or JSON, tells of success."""
    return _SUCCESS.search(body) is not None


def _text(cloud: Mapping[str, object], name: str) -> str:
    value = cloud.get(name, "")
    return value.strip() if isinstance(value, str) else ""
