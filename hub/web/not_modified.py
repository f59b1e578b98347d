"""Conditional requests (RFC 9110 13): whether a client has the current version."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from hub.web.request_input import combined_field


def validators(etag: str, modified: datetime | None) -> dict[str, str]:
    """``ETag`` and ``Last-Modified`` as headers. ``etag`` is given without quotes;
    dates have whole seconds."""
    headers = {"ETag": f'"{etag}"'}
    if modified is not None:
        headers["Last-Modified"] = format_datetime(modified, usegmt=True)
    return headers


def is_current(request: Request, etag: str, modified: datetime | None) -> bool:
    """Whether the client has the current version.

    ``If-None-Match`` decides; ``If-Modified-Since`` only where that is not sent.
    """
    wanted = combined_field(request.headers, "if-none-match")
    if wanted:
        tags = [tag.strip().removeprefix("W/") for tag in wanted.split(",")]
        return "*" in tags or f'"{etag}"' in tags
    since = _read_date(request.headers.get("if-modified-since", ""))
    if since is None or modified is None:
        return False
    return modified.replace(microsecond=0) <= since


def not_modified(headers: Mapping[str, str]) -> Response:
    return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=dict(headers))


def _read_date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
