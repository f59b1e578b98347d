"""The header ``traceparent`` of W3C Trace Context: which trace a request belongs to."""

from __future__ import annotations

import re

from msgspec import Struct

TRACEPARENT = "traceparent"

_SAMPLED = 1
_VERSION_0_LENGTH = 55
_FIELDS = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-|$)")


class TraceParent(Struct, frozen=True):
    """A span of a trace, as one program names it to another; both ids are not 0."""

    trace_id: int  # 128 bits
    span_id: int  # 64 bits
    is_sampled: bool


def format_traceparent(parent: TraceParent) -> str:
    """The value of the header, in version 00."""
    flags = _SAMPLED if parent.is_sampled else 0
    return f"00-{parent.trace_id:032x}-{parent.span_id:016x}-{flags:02x}"


def read_traceparent(value: str) -> TraceParent | None:
    """The span that a header names; None if it is not valid, and thus to be ignored.

    Trace Context 4.3: of a version not known yet the first four fields are read.
    """
    found = _FIELDS.match(value)
    if found is None:
        return None
    version, trace_id, span_id, flags = found.groups()[:4]
    is_too_long = version == "00" and len(value) != _VERSION_0_LENGTH
    if version == "ff" or is_too_long or not int(trace_id, 16) or not int(span_id, 16):
        return None
    is_sampled = bool(int(flags, 16) & _SAMPLED)
    return TraceParent(int(trace_id, 16), int(span_id, 16), is_sampled)
