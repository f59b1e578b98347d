"""Collections: what names one, and the line that it begins with."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

import orjson

from protocols.scp.page import timestamp

VERSION: Final = "0.1"
MEDIA_TYPE: Final = "application/scp"
ALL: Final = "all"
"""The section that has the pages of all the others."""

_OTHERS = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST = 48


class CollectionType(StrEnum):
    SNAPSHOT = "snapshot"
    DELTA = "delta"


class Encoding(StrEnum):
    GZIP = "gzip"
    ZSTD = "zstd"
    PLAIN = "identity"

    @property
    def suffix(self) -> str:
        return {"gzip": ".scp.gz", "zstd": ".scp.zst"}.get(self.value, ".scp")


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionHead:
    """``since`` is a delta's; the window is (since, generated]."""

    section: str
    type: CollectionType
    generated: datetime
    since: datetime | None = None

    @property
    def id(self) -> str:
        """Letters, digits, ``-`` and ``_`` only: readers refuse the file otherwise."""
        moment = re.sub("[:-]", "", timestamp(self.generated))
        return f"{self.section}-{self.type}-{moment}"


def head_line(head: CollectionHead) -> bytes:
    """The first line, with its line feed.

    Without ``checksum``: it would be the hash of a file that contains it. The hash is
    the file's ETag instead.
    """
    members = {
        "id": head.id,
        "section": head.section,
        "type": head.type.value,
        "generated": timestamp(head.generated),
        **({} if head.since is None else {"since": timestamp(head.since)}),
        "version": VERSION,
    }
    return orjson.dumps({"collection": members}, option=orjson.OPT_APPEND_NEWLINE)


def section_name(label: str) -> str:
    """A feed's section as collections can name it; "" for none.

    Two labels that differ in more than these characters may have one name.
    """
    name = _OTHERS.sub("-", label).strip("-")
    if (label.strip() and not name) or len(name) > _LONGEST:
        digest = hashlib.sha256(label.strip().encode()).hexdigest()[:8]
        name = f"{name[:_LONGEST]}-{digest}".strip("-") if name else f"section-{digest}"
    return "" if name.lower() == ALL else name
