"""Requests to the network and their answers, as values; the head of a request: its
target, exactly as in the URL, and its headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, Protocol

from msgspec import Struct, field
from yarl import URL

from hub.http.network_errors import Unreachable
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


# --- the head of a request -----------------------------------------------------------

_ORDINARY = re.compile(
    r"(https?)://([a-z0-9.-]*[a-z][a-z0-9-]*|[1-9][0-9]{0,2}(?:\.[1-9][0-9]{0,2}|\.0){3})"
    r"(?::([1-9][0-9]{0,3}|[1-5][0-9]{4}))?(/[!-\"$->@-~]*(?:\?[!-\"$-~]+)?)"
)
"""Splits nearly every URL into scheme, host, port and path, in a tenth of the time."""
_DEFAULT_PORTS = (80, 443)
_LONGEST = 8_000  # characters; many servers take no longer request line


class ServerAddress(NamedTuple):
    """The server that a connection leads to. ``host`` is a name in punycode or a
    literal address without brackets."""

    is_tls: bool
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes and what it asks for there: ``path`` with the query, and
    ``authority`` as the Host header has it."""

    server: ServerAddress
    authority: str
    path: str


@lru_cache(4096)
def target_of(url: str) -> Target:
    """The target that a URL names, byte for byte, without user information and
    fragment.

    Raises Unreachable if it is no http or https URL, or has white space or control
    characters, which other parsers would silently drop.
    """
    if len(url) > _LONGEST:
        raise Unreachable(f"the URL is longer than {_LONGEST} characters")
    if ordinary := _ORDINARY.fullmatch(url):
        scheme, host, port, path = ordinary.groups()
        is_tls = scheme == "https"
        default = _DEFAULT_PORTS[is_tls]
        server = ServerAddress(is_tls, host, int(port or default))
        authority = host if server.port == default else f"{host}:{port}"
        return Target(server, authority, path)
    if not url.isprintable() or " " in url:  # the only space that is printable
        raise Unreachable("the URL contains white space or control characters")
    try:
        parsed = URL(url, encoded=url.isascii())
        host, port = parsed.raw_host, parsed.port
        authority = parsed.host_port_subcomponent
    except (ValueError, UnicodeError):
        raise Unreachable("the URL is not valid") from None
    if parsed.scheme not in ("http", "https") or not host or not port:
        raise Unreachable("the URL is not an http or https URL")
    server = ServerAddress(parsed.scheme == "https", host, port)
    return Target(server, authority or host, parsed.raw_path_qs)


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_OURS = frozenset({"host", "content-length", "transfer-encoding"})


def request_head(request: Request, target: Target) -> bytes:
    """The bytes of the head. Raises Unreachable for headers that would span more than
    one line, or decide where the request ends."""
    given = request.headers
    values = "".join(given.values())
    is_split = "\n" in values or "\r" in values or "\0" in values
    if is_split or not _may_be_given(tuple(given)):
        raise _refusal()
    fields = "".join([f"{name}: {value}\r\n" for name, value in given.items()])
    length = ""
    if request.body is not None or request.method != "GET":
        length = f"Content-Length: {len(request.body or b'')}\r\n"
    head = f"{request.method} {target.path} HTTP/1.1\r\nHost: {target.authority}\r\n"
    try:
        return f"{head}{fields}{length}\r\n".encode()
    except UnicodeEncodeError:
        raise _refusal() from None


@lru_cache(1024)
def _may_be_given(names: tuple[str, ...]) -> bool:
    are_tokens = all(map(_TOKEN.fullmatch, names))
    return are_tokens and _OURS.isdisjoint(map(str.lower, names))


def _refusal() -> Unreachable:
    return Unreachable("the request cannot be made")
