"""HTTP as the hub speaks it: headers read and written, without any I/O."""

from __future__ import annotations

from protocols.http.headers import (
    ACCEPT,
    ACCEPT_ENCODING,
    OCTET_STREAM,
    ContentType,
    HeaderLink,
    conditional_headers,
    format_link_header,
    freshness,
    header_url,
    header_value,
    parse_content_type,
    parse_link_header,
    parse_retry_after,
    quality,
    sendable_content_type,
    user_agent,
)
from protocols.http.request_stage import RequestStage
from protocols.http.robots import Robots, read_robots
from protocols.http.trace_context import (
    TRACEPARENT,
    TraceParent,
    format_traceparent,
    read_traceparent,
)

__all__ = [
    "ACCEPT",
    "ACCEPT_ENCODING",
    "OCTET_STREAM",
    "TRACEPARENT",
    "ContentType",
    "HeaderLink",
    "RequestStage",
    "Robots",
    "TraceParent",
    "conditional_headers",
    "format_link_header",
    "format_traceparent",
    "freshness",
    "header_url",
    "header_value",
    "parse_content_type",
    "parse_link_header",
    "parse_retry_after",
    "quality",
    "read_robots",
    "read_traceparent",
    "sendable_content_type",
    "user_agent",
]
