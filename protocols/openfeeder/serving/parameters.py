"""What the content endpoint is asked (OpenFeeder 3.1 and 3.4), out of its query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from protocols.openfeeder.serving.errors import invalid_parameter
from protocols.openfeeder.serving.times import (
    SyncPoint,
    format_moment,
    parse_since,
    parse_until,
)

DEFAULT_LIMIT = 10
LARGEST_LIMIT = 50
LONGEST_QUERY = 200
LONGEST_URL = 2_048
LARGEST_PAGE = 1_000_000_000
_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,30})?|\.[0-9]{1,30}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """``limit`` is cut to 1 to 50."""

    limit: int = DEFAULT_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexAsked(Asked):
    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAsked(Asked):
    """``query`` "": all chunks of the page, in their order."""

    url: str
    query: str = ""
    min_score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAsked(Asked):
    query: str
    min_score: float = 0.0
    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncAsked:
    """At least one of the two is there, ``until`` not before ``since``."""

    since: SyncPoint | None = None
    until: datetime | None = None


Request: TypeAlias = IndexAsked | PageAsked | SearchAsked | SyncAsked


def read_request(query: Mapping[str, str]) -> Request:
    """Raises `OpenFeederError`, naming the parameter and what was expected.

    "When ?since= or ?until= is combined with ?q=, the search parameter takes priority
    and date range params are ignored" (3.4); so they are with a page's URL.
    """
    url, words = query.get("url", "").strip(), query.get("q", "").strip()
    if len(words) > LONGEST_QUERY:
        raise invalid_parameter("q", f"up to {LONGEST_QUERY} characters")
    if len(url) > LONGEST_URL:
        raise invalid_parameter("url", f"up to {LONGEST_URL} characters")
    limit = _limit(query.get("limit"))
    if url:
        score = _score(query.get("min_score")) if words else 0.0
        return PageAsked(url=url, query=words, min_score=score, limit=limit)
    if words:
        return SearchAsked(
            query=words,
            min_score=_score(query.get("min_score")),
            page=_page(query.get("page")),
            limit=limit,
        )
    if "since" in query or "until" in query:
        return _sync(query)
    return IndexAsked(page=_page(query.get("page")), limit=limit)


def _sync(query: Mapping[str, str]) -> SyncAsked:
    since = parse_since(query["since"].strip()) if "since" in query else None
    until = parse_until(query["until"].strip()) if "until" in query else None
    if since and until and until < since.moment:
        # 3.4: "?until= MUST be >= ?since=. Servers SHOULD return 400 INVALID_PARAM".
        expected = f"a moment that is not before since, {format_moment(since.moment)}"
        raise invalid_parameter("until", expected, format_moment(until))
    return SyncAsked(since=since, until=until)


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
