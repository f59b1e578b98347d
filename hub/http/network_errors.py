"""Errors of requests that the hub makes.

NetworkError       no usable answer; ``reason`` is for people, ``status`` the answer's
├── Blocked        the address guard refused to connect
├── HostBlocked       the operator lists the host among those that want no requests
├── Unreachable    no name, no connection, no TLS, or not a URL that can be asked for
│   └── Untrusted  a certificate that is not valid
├── TimedOut       nothing within a deadline
├── TooLarge       more bytes than the request takes
├── TooManyLargeAnswers  one, while many others of them are under way
└── BadAnswer      not HTTP, cut short, or not decodable
"""

from __future__ import annotations

from typing import ClassVar


class NetworkError(Exception):
    """A request brought no usable answer.

    ``reason`` is a short text for people without addresses or secrets. ``status`` is
    that of the answer that could not be used, 0 if none had begun. ``is_lasting``:
    asking again soon would fail in the same way.
    """

    is_lasting: ClassVar[bool] = False

    def __init__(self, reason: str, status: int = 0) -> None:
        self.reason = reason
        self.status = status
        super().__init__(reason)


class Blocked(NetworkError):
    """The guard refuses the address or port; says neither which nor why."""

    is_lasting = True

    def __init__(self) -> None:
        super().__init__("blocked: the hub does not connect to this address")


class HostBlocked(NetworkError):
    """The host is on the operator's list of those that want no requests."""

    is_lasting = True

    def __init__(self) -> None:
        super().__init__(
            "not fetched: the operator blocks this host (FANFARE_BLOCKED_HOSTS)"
        )


class Unreachable(NetworkError):
    """No connection could be made."""


class Untrusted(Unreachable):
    """The server's certificate is not valid."""

    is_lasting = True


class TimedOut(NetworkError):
    """A deadline passed: the whole request's, or the pause between two reads."""


class TooLarge(NetworkError):
    """The answer is larger than ``limit`` bytes, on the wire or decompressed."""

    def __init__(self, limit: int, status: int = 0) -> None:
        self.limit = limit
        super().__init__(f"the answer is larger than {limit} bytes", status)


class TooManyLargeAnswers(NetworkError):
    """The answer is large, and does not fit beside the other large answers under
    way."""

    def __init__(self) -> None:
        super().__init__("too many large answers at once; it will be fetched again")


class BadAnswer(NetworkError):
    """The answer breaks HTTP or its own Content-Encoding, or ended early."""
