"""What aiohttp raises, put into our own words."""

from __future__ import annotations

import errno
import ssl

from aiohttp import (
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientError,
    ClientPayloadError,
    ClientResponseError,
    ClientSSLError,
    ConnectionTimeoutError,
    InvalidURL,
    ServerDisconnectedError,
)

from hub.errors import BadAnswer, Blocked, NetworkError, TimedOut, Unreachable
from hub.net.resolving import AddressBlocked

AIOHTTP_FAILURES = (ClientError, OSError, TimeoutError, ValueError)
"""All that a request through aiohttp ends with when the network is at fault."""

_ERRORS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset",
    errno.ENETUNREACH: "network unreachable",
    errno.EHOSTUNREACH: "no route to the host",
}


def explain(failure: Exception, status: int = 0) -> NetworkError:
    """Our error for a failure of aiohttp; ``status`` of the answer if one had begun."""
    if _was_blocked(failure):
        return Blocked()
    if isinstance(failure, ConnectionTimeoutError):
        return TimedOut("cannot connect: no answer in time")
    if isinstance(failure, TimeoutError):
        return TimedOut(
            "no whole answer in time" if status else "no answer in time", status
        )
    if isinstance(failure, ClientResponseError):
        return BadAnswer("the answer is not valid HTTP")
    if isinstance(failure, ClientPayloadError):
        return BadAnswer("the answer ended early or is not valid HTTP", status)
    if isinstance(failure, ServerDisconnectedError):
        return BadAnswer("the server closed the connection without an answer")
    return Unreachable(_connection_trouble(failure))


def _was_blocked(failure: Exception) -> bool:
    # aiohttp itself refuses numbers that only some resolvers read as an address
    if isinstance(failure, InvalidURL):
        return True
    return isinstance(failure, ClientConnectorError) and isinstance(
        failure.os_error, AddressBlocked
    )


def _connection_trouble(failure: Exception) -> str:
    if isinstance(failure, ClientConnectorDNSError):
        return str(failure.os_error)
    if isinstance(failure, ClientSSLError):
        return _tls_trouble(failure)
    if not isinstance(failure, OSError):
        return "the request cannot be made"
    words = _ERRORS.get(failure.errno or 0, "the network failed")
    if isinstance(failure, ClientConnectorError):
        return f"cannot connect: {words}"
    return f"the connection broke: {words}"


def _tls_trouble(failure: ClientSSLError) -> str:
    cause = failure.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the server's certificate is not valid: {cause.verify_message}"
    return "TLS cannot be agreed on with the server"
