"""The first line of a collection: its metadata (SCP, "Collection Metadata").

Times are ISO 8601, with a time of day.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from protocols.protocol_errors import (
    InvalidDocument,
    MalformedDocument,
    UnsupportedVersion,
)
from protocols.scp.collection import CollectionType
from protocols.scp.read.unpacking import CHECKSUM, ChecksumRule

_FULL = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:[Zz]|[-+]\d\d:?\d\d)?",
    re.ASCII,
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def read_moment(value: object, *, allows_days: bool = True) -> datetime | None:
    """A time in UTC; None if it is not one. Without a zone UTC is assumed."""
    if not isinstance(value, str):
        return None
    if not _FULL.fullmatch(value) and not (allows_days and _DAY.fullmatch(value)):
        return None
    try:
        moment = datetime.fromisoformat(value.upper())
        if moment.tzinfo is UTC:
            return moment
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):  # such as a thirteenth month
        return None


MAJOR: Final = 0
"""The major version that is supported, with all its minor ones."""
_PLACE: Final = "line 1: /collection"
_NAME = re.compile("[a-zA-Z0-9_-]+")
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRules:
    """How a collection's first line is checked.

    ``skew`` is how far ahead another clock may be, ``oldest`` how old a collection may
    be: an older one may be a replay (SCP, "Replay Attacks").
    """

    now: datetime
    skew: timedelta = timedelta(days=1)
    oldest: timedelta = timedelta(days=10 * 365)
    checksum: ChecksumRule = ChecksumRule.LENIENT


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteHead:
    """``checksum`` is as claimed; "" if there is none, or if checksums are ignored."""

    id: str
    section: str
    type: CollectionType
    version: str
    generated: datetime
    since: datetime | None = None
    checksum: str = ""


def read_head(line: bytes, rules: HeadRules) -> SiteHead:
    """Read the first line.

    Raises `MalformedDocument`, `InvalidDocument` and `UnsupportedVersion`.
    """
    found = _members(line)
    # Checked first: in a later version the other members may have changed.
    version = _version(found)
    try:
        type_ = CollectionType(str(found.get("type")))
    except ValueError:
        raise _wrong("type", "expected snapshot or delta") from None
    generated = _moment(found, "generated")
    if generated > rules.now + rules.skew:
        raise _wrong("generated", "lies in the future")
    if generated < rules.now - rules.oldest:
        raise _wrong("generated", f"is more than {rules.oldest.days} days ago")
    since = _moment(found, "since") if type_ is CollectionType.DELTA else None
    return SiteHead(
        id=_name(found, "id"),
        section=_name(found, "section"),
        type=type_,
        version=version,
        generated=generated,
        since=since,
        checksum=_checksum(found, rules.checksum),
    )


def _members(line: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise MalformedDocument(error.msg, 1) from None
    found = document.get("collection") if isinstance(document, dict) else None
    if not isinstance(found, dict):
        raise InvalidDocument("line 1: /collection", "expected an object")
    return found


def _version(found: dict[str, Any]) -> str:
    """SCP, "Version Compatibility": "If the collection's major version exceeds the
    parser's supported major version, the parser MUST reject the collection"."""
    version = found.get("version")
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if match is None:
        raise _wrong("version", "expected a version such as 0.1")
    if int(match[1]) > MAJOR:
        raise UnsupportedVersion("SCP", match[0])
    return match[0]


def _name(found: dict[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise _wrong(name, "expected letters, digits, - and _")
    return value


def _moment(found: dict[str, Any], name: str) -> datetime:
    value = read_moment(found.get(name))
    if value is None:
        raise _wrong(name, "expected an ISO 8601 time")
    return value


def _checksum(found: dict[str, Any], rule: ChecksumRule) -> str:
    value = found.get("checksum")
    if rule is ChecksumRule.OFF or value is None:
        return ""
    if not isinstance(value, str) or not CHECKSUM.fullmatch(value):
        raise _wrong("checksum", "expected sha256: and 64 hexadecimal digits")
    return value


def _wrong(name: str, rule: str) -> InvalidDocument:
    return InvalidDocument(f"{_PLACE}/{name}", rule)
