"""Requests to the network and their answers, as values."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field

from protocols.http import RequestStage

MEBIBYTE = 1 << 20
CUT = 64 * 1024
"""Bytes of an answer that are read if only its status matters."""
LONGEST_REASON = 200


class BodySink(Protocol):
    """Takes in the body of an answer in pieces, as it comes over the wire."""

    def write(self, piece: bytes) -> None:
        """Take a piece, quickly; raises a `NetworkError` if that fails."""
        ...


class BodyAllowance(Protocol):
    """The share of a common memory that one answer may use."""

    def take(self, count: int) -> None:
        """Take so many bytes more; raises a `NetworkError` if they are too many."""
        ...


class RequestProgress(Protocol):
    """Told by a request how far it has come, also if it fails."""

    stage: RequestStage


class Purpose(StrEnum):
    """Why a request is made; each has its own guard and its own connections."""

    TOPIC = "topic"
    CALLBACK = "callback"  # that somebody subscribed, or the operator has set
    HUB = "hub"  # of others, and whatever else a publisher names to be posted to


class ResponseLimits(Struct, frozen=True, kw_only=True):
    """Bounds of one request; ``body_bytes`` holds on the wire and decompressed."""

    seconds: float = 20.0  # all of it, from the lookup of the name to the last byte
    idle_seconds: float = 10.0  # to connect, and between two reads
    body_bytes: int = 10 * MEBIBYTE


DEFAULT_LIMITS = ResponseLimits()


class Request(Struct, frozen=True, kw_only=True, gc=False):
    """One request. Its headers are all that is sent beside Host and Content-Length.

    With ``cuts_body`` only the first ``cut`` bytes of the answer's body are read, as
    they come, and what goes wrong after the status line is no failure. With a ``sink``
    the body of a 2xx goes there, as it came, and the answer has none. With an
    ``allowance`` the bytes of a body that is wanted whole are taken from it. Its
    ``progress`` is kept up to date.
    """

    method: str
    url: str
    purpose: Purpose
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    limits: ResponseLimits = DEFAULT_LIMITS
    cuts_body: bool = False
    cut: int = CUT
    sink: BodySink | None = None
    allowance: BodyAllowance | None = None
    progress: RequestProgress | None = None


class Answer(Struct, frozen=True, kw_only=True, gc=False):
    """One answer, of whatever status; redirects are answers too.

    ``headers`` ignores the case of names. The body of a 2xx is whole and decompressed;
    any other is cut like those of ``Request.cuts_body``, and ``complete`` says whether
    that left something out. ``is_exempt``: it came from an allowed network.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    complete: bool
    milliseconds: int
    version: bytes = b"1.1"
    reason: bytes = b""
    is_exempt: bool = False

    @property
    def status_line(self) -> str:
        """The status line as received, cut after `LONGEST_REASON` bytes of its reason
        phrase."""
        version = self.version.decode("latin-1") or "1.1"
        reason = self.reason[:LONGEST_REASON].decode("utf-8", "replace")
        return f"HTTP/{version} {self.status} {reason}".rstrip()


class Network(Protocol):
    """The only way to send requests out."""

    async def send(self, request: Request) -> Answer:
        """Send one request; never follows a redirect.

        Raises a `hub.http.network_errors.NetworkError`.
        """
        ...

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        """Whether the host lies in an allowed network: no pacing and no caps for it.

        Literal addresses are judged directly, names as they were last resolved.
        """
        ...
