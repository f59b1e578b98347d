"""Roughly what one owner has in DNS, for bounds that more names must not get around."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from hub.net.addresses import parse_literal

_OF_COUNTRIES: Final = re.compile(
    "ac|ad|co|com|ed|edu|gc|go|gob|gov|gr|gub|gv|id|ind|k12|lg|ltd|mil|ne|net|nhs|nom"
    "|or|org|plc|pp|sch|web"
)
"""Second labels under which registries of countries let others have names. Any short
one would not do: who owns ``q7z.me`` must not have as many zones as names."""


@lru_cache(4096)
def zone_of(host: str) -> str:
    """Two labels of a name, three where a registry owns these (``example.co.uk``).

    An address is a zone of its own.
    """
    name = host.lower().rstrip(".")
    if parse_literal(name) is not None:
        return name
    labels = name.rsplit(".", 3)
    is_deeper = (
        len(labels) > 2 and len(labels[-1]) == 2 and _OF_COUNTRIES.fullmatch(labels[-2])
    )
    return ".".join(labels[-3:] if is_deeper else labels[-2:])
