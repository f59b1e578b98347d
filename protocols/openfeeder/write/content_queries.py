"""Requests to the content endpoint (OpenFeeder 3.1 and 3.4), and its errors (8).

Moments are RFC 3339, or tokens that stand for one. A token is
``base64(JSON.stringify({"t": "<as_of>"}))`` (OpenFeeder 3.4). The hub's tokens have a
second member, the number of the last change, so that nothing is reported twice.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import TypeAlias

import orjson

from protocols.protocol_errors import InvalidValue, ProtocolError


class AuthorDisplay(StrEnum):
    """Whether authors are shown by name or not at all."""

    NAME = "name"
    HIDDEN = "hidden"


class PageType(StrEnum):
    """The types of pages that can be excluded, as schema.org would name them."""

    POST = "post"
    AUDIO = "audio"
    VIDEO = "video"


class ErrorCode(StrEnum):
    """Section 8 and, for parameters, section 3.4."""

    NOT_FOUND = "NOT_FOUND"
    RATE_LIMITED = "RATE_LIMITED"
    AUTH_REQUIRED = "AUTH_REQUIRED"
    SERVER_ERROR = "SERVER_ERROR"
    INVALID_PARAM = "INVALID_PARAM"


class OpenFeederError(ProtocolError):
    """A request that cannot be answered as asked; the message is for people."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        self.code = code
        super().__init__(message)


def invalid_parameter(name: str, expected: str, value: str = "") -> OpenFeederError:
    text = str(InvalidValue(name, expected, value))
    return OpenFeederError(ErrorCode.INVALID_PARAM, text)


LONGEST_TOKEN = 512
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)(?:\.(\d{1,30}))?"
    # An unescaped plus sign in a query arrives as a space.
    r"(?:([Zz])|([+\- ])(\d\d):(\d\d))"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
EXPECTED = "a date and time of RFC 3339, such as 2026-02-20T00:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPoint:
    """Where a reader continues. ``change`` 0: only the moment is known.

    ``epoch`` is that of the database which numbered the change.
    """

    moment: datetime
    epoch: str = ""
    change: int = 0


def format_moment(moment: datetime) -> str:
    """``2026-02-23T02:00:00.000Z``, always with milliseconds."""
    return f"{moment.astimezone(UTC).isoformat('T', 'milliseconds')[:23]}Z"


def parse_moment(text: str) -> datetime | None:
    """An RFC 3339 time in UTC, cut to milliseconds; None if the text is not one."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    date, minute, second, fraction, _, sign, hours, minutes = found.groups()
    milliseconds = int((fraction or "0")[:3].ljust(3, "0"))
    try:
        local = datetime.fromisoformat(f"{date}T{minute}:{min(int(second), 59):02}")
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        zone = timezone(-offset if sign == "-" else offset)
        local = local.replace(tzinfo=zone, microsecond=milliseconds * 1_000)
        # RFC 3339 5.6: "00-58, 00-59, 00-60 based on leap second rules".
        return local.astimezone(UTC) if int(second) <= 60 else None
    except (ValueError, OverflowError):
        return None


def encode_token(point: SyncPoint) -> str:
    members: dict[str, str] = {"t": format_moment(point.moment)}
    if point.change:
        members["c"] = f"{point.epoch}-{point.change}"
    return base64.b64encode(orjson.dumps(members)).decode()


def parse_since(text: str) -> SyncPoint:
    """Read a moment or a token. Raises `OpenFeederError`."""
    moment = parse_moment(text)
    if moment is not None:
        return SyncPoint(moment=moment)
    if point := _decode_token(text):
        return point
    raise invalid_parameter("since", f"{EXPECTED}, or a sync_token", text)


def parse_until(text: str) -> datetime:
    """Read a moment: ``until`` takes no token. Raises `OpenFeederError`."""
    moment = parse_moment(text)
    if moment is None:
        raise invalid_parameter("until", EXPECTED, text)
    return moment


def _decode_token(text: str) -> SyncPoint | None:
    """Decode a token in either alphabet, padded or not; None if it is not one.

    Some servers' tokens contain only a date.
    """
    plain = text.strip().replace(" ", "+").rstrip("=")
    plain = plain.replace("-", "+").replace("_", "/")
    if len(plain) > LONGEST_TOKEN:
        return None
    try:
        padded = plain + "=" * (-len(plain) % 4)
        members = orjson.loads(base64.b64decode(padded, validate=True))
    except (binascii.Error, ValueError):
        return None
    if not isinstance(members, dict) or not isinstance(members.get("t"), str):
        return None
    written = members["t"]
    if _DATE.fullmatch(written):
        written += "T00:00:00Z"
    moment = parse_moment(written)
    if moment is None:
        return None
    epoch, change = _place(members.get("c"))
    return SyncPoint(moment=moment, epoch=epoch, change=change)


def _place(written: object) -> tuple[str, int]:
    epoch, _, change = (
        written.rpartition("-") if isinstance(written, str) else ("",) * 3
    )
    is_number = change.isascii() and change.isdigit() and len(change) <= 18
    return (epoch, int(change)) if is_number and epoch else ("", 0)


DEFAULT_LIMIT = 10
LARGEST_LIMIT = 50
LONGEST_QUERY = 200
LONGEST_URL = 2_048
LARGEST_PAGE = 1_000_000_000
_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,30})?|\.[0-9]{1,30}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentQuery:
    """``limit`` is limited to 1 to 50."""

    limit: int = DEFAULT_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexQuery(ContentQuery):
    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuery(ContentQuery):
    """``query`` "" asks for all chunks of the page, in order."""

    url: str
    query: str = ""
    min_score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSearchQuery(ContentQuery):
    query: str
    min_score: float = 0.0
    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncQuery:
    """At least one of the two is given; ``until`` is not before ``since``."""

    since: SyncPoint | None = None
    until: datetime | None = None


Request: TypeAlias = IndexQuery | PageQuery | PageSearchQuery | SyncQuery


def read_request(query: Mapping[str, str]) -> Request:
    """Read a request. Raises `OpenFeederError`, naming the parameter and what was
    expected.

    "When ?since= or ?until= is combined with ?q=, the search parameter takes priority
    and date range params are ignored" (3.4); they are also ignored with a page's URL.
    """
    url, words = query.get("url", "").strip(), query.get("q", "").strip()
    if len(words) > LONGEST_QUERY:
        raise invalid_parameter("q", f"up to {LONGEST_QUERY} characters")
    if len(url) > LONGEST_URL:
        raise invalid_parameter("url", f"up to {LONGEST_URL} characters")
    limit = _limit(query.get("limit"))
    if url:
        score = _score(query.get("min_score")) if words else 0.0
        return PageQuery(url=url, query=words, min_score=score, limit=limit)
    if words:
        return PageSearchQuery(
            query=words,
            min_score=_score(query.get("min_score")),
            page=_page(query.get("page")),
            limit=limit,
        )
    if "since" in query or "until" in query:
        return _sync(query)
    return IndexQuery(page=_page(query.get("page")), limit=limit)


def _sync(query: Mapping[str, str]) -> SyncQuery:
    since = parse_since(query["since"].strip()) if "since" in query else None
    until = parse_until(query["until"].strip()) if "until" in query else None
    if since and until and until < since.moment:
        # 3.4: "?until= MUST be >= ?since=. Servers SHOULD return 400 INVALID_PARAM".
        expected = f"a moment that is not before since, {format_moment(since.moment)}"
        raise invalid_parameter("until", expected, format_moment(until))
    return SyncQuery(since=since, until=until)


def _limit(raw: str | None) -> int:
    if raw is None:
        return DEFAULT_LIMIT
    if not _WHOLE.fullmatch(raw.strip()):
        raise invalid_parameter("limit", "a whole number", raw)
    return min(max(int(raw), 1), LARGEST_LIMIT)


def _page(raw: str | None) -> int:
    if raw is None:
        return 1
    if not _WHOLE.fullmatch(raw.strip()) or int(raw) < 1:
        raise invalid_parameter("page", "a whole number from 1", raw)
    return min(int(raw), LARGEST_PAGE)


def _score(raw: str | None) -> float:
    if raw is None:
        return 0.0
    if not _NUMBER.fullmatch(raw.strip()) or not 0 <= float(raw) <= 1:
        raise invalid_parameter("min_score", "a number from 0 to 1", raw)
    return float(raw)
