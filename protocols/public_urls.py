"""Whether hubs elsewhere can reach this one, as far as its own URL tells."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

_LOCAL = (".localhost", ".local", ".internal", ".test", ".lan", ".home.arpa")


def is_public_url(url: str) -> bool:
    """False for no URL, private addresses, and names that mean nothing elsewhere."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        return ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith(_LOCAL)
