"""Roughly what one owner has in DNS, for bounds that more names must not get around."""

from __future__ import annotations

from functools import lru_cache

from hub.net.addresses import parse_literal
from protocols.domains import is_registry


@lru_cache(4096)
def zone_of(host: str) -> str:
    """Two labels of a name, three where a registry owns these (``example.co.uk``).

    An address is a zone of its own.
    """
    name = host.lower().rstrip(".")
    if parse_literal(name) is not None:
        return name
    labels = name.rsplit(".", 3)
    return ".".join(labels[-3:] if is_registry(labels) else labels[-2:])
