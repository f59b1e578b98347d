"""What goes wrong with a connection, put into our own words."""

from __future__ import annotations

import errno
import ssl

from hub.errors import Blocked, NetworkError, Unreachable, Untrusted
from hub.net.resolving import AddressBlocked, LookupFailed

_ERRORS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset",
    errno.ENETUNREACH: "network unreachable",
    errno.EHOSTUNREACH: "no route to the host",
}


def not_connected(failure: OSError | UnicodeError) -> NetworkError:
    """Our error for a connection that did not come about."""
    if isinstance(failure, AddressBlocked):
        return Blocked()
    if isinstance(failure, LookupFailed):
        return Unreachable(str(failure))
    if isinstance(failure, ssl.SSLCertVerificationError):
        why = failure.verify_message
        return Untrusted(f"the server's certificate is not valid: {why}")
    if isinstance(failure, ssl.SSLError):
        return Unreachable("TLS cannot be agreed on with the server")
    if isinstance(failure, UnicodeError):  # a name that TLS cannot ask for
        return Unreachable("the request cannot be made")
    return Unreachable(f"cannot connect: {_words(failure)}")


def broken(failure: Exception) -> NetworkError:
    """Our error for a connection that was lost before there was an answer."""
    return Unreachable(f"the connection broke: {_words(failure)}")


def _words(failure: Exception) -> str:
    number = failure.errno if isinstance(failure, OSError) else None
    return _ERRORS.get(number or 0, "the network failed")
