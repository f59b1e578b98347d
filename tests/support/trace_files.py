"""Traces as the JSON that `fanfare simulate TRACES` reads."""

from __future__ import annotations

import msgspec

from hub.simulation.traces import Trace


def write_traces(traces: tuple[Trace, ...]) -> bytes:
    """The inverse of `hub.simulation.traces.read_traces`."""
    lines = b",\n".join(map(msgspec.json.encode, traces))
    return b'{"feeds": [\n' + lines + b"\n]}\n"
