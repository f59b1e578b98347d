"""HTTP as the hub speaks it: headers read and written, without any I/O."""

from __future__ import annotations

from protocols.http.accept import quality
from protocols.http.content_type import (
    OCTET_STREAM,
    ContentType,
    parse_content_type,
    sendable_content_type,
)
from protocols.http.freshness import freshness
from protocols.http.links import HeaderLink, format_link_header, parse_link_header
from protocols.http.request_headers import (
    ACCEPT,
    ACCEPT_ENCODING,
    conditional_headers,
    user_agent,
)
from protocols.http.retry_after import parse_retry_after
from protocols.http.robots import Robots, read_robots
from protocols.http.values import header_url, header_value

__all__ = [
    "ACCEPT",
    "ACCEPT_ENCODING",
    "OCTET_STREAM",
    "ContentType",
    "HeaderLink",
    "Robots",
    "conditional_headers",
    "format_link_header",
    "freshness",
    "header_url",
    "header_value",
    "parse_content_type",
    "parse_link_header",
    "parse_retry_after",
    "quality",
    "read_robots",
    "sendable_content_type",
    "user_agent",
]
