"""Collections: their names, their first line, and their addresses.

Addresses are http or https URIs in ASCII, or none.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Final
from urllib.parse import quote

import orjson

from protocols.urls import LONGEST, is_web_url

_PLAIN = re.compile(
    r"https?://[A-Za-z0-9._~:@%-]+(?:[/?#][A-Za-z0-9._~:/?@!$&'()*+,;=-]*)?"
)
_NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_KEPT = "-._~:/?#@!$&'()*+,;=%"


@lru_cache(maxsize=2_048)
def page_address(url: str) -> str:
    """A web URL in the form of RFC 3986, its scheme in lower case; "" for other texts.

    Characters that a URL may not contain are escaped, in a host as well.
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
    # Only the first hash begins a fragment.
    before, mark, fragment = path.partition("#")
    path = before + mark + fragment.replace("#", "%23")
    safe_host = quote(host, safe="[]:@%-._~!$&'()*+,;=", errors="ignore")
    return f"{scheme.lower()}://{safe_host}{quote(path, safe=_KEPT, errors='ignore')}"


def timestamp(moment: datetime) -> str:
    """``2026-01-02T03:04:05Z``: always this form, so that strings can be compared."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat()[:19] + "Z"


VERSION: Final = "0.1"
MEDIA_TYPE: Final = "application/scp"
EXTENSION: Final = "https://scp-protocol.org/schemas/sitemap/1.0"
"""The namespace of SCP's elements in a sitemap."""
ALL: Final = "all"
"""The section that contains the pages of all the others."""

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
    """``since`` is None for a snapshot; a delta covers (since, generated]."""

    section: str
    type: CollectionType
    generated: datetime
    since: datetime | None = None

    @property
    def id(self) -> str:
        """Letters, digits, ``-`` and ``_`` only, since readers refuse others."""
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
    """A feed's category as the name of a section; "" if there is none.

    Two labels that differ only in other characters than these may get the same name.
    """
    name = _OTHERS.sub("-", label).strip("-")
    if (label.strip() and not name) or len(name) > _LONGEST:
        digest = hashlib.sha256(label.strip().encode()).hexdigest()[:8]
        name = f"{name[:_LONGEST]}-{digest}".strip("-") if name else f"section-{digest}"
    return "" if name.lower() == ALL else name
