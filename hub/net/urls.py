"""URLs on their way to the wire: exactly as given, or not at all."""

from __future__ import annotations

from functools import lru_cache

from yarl import URL

from hub.errors import Unreachable

_LONGEST = 8_000  # characters; many servers take no longer request line


@lru_cache(4096)
def wire_url(url: str) -> URL:
    """The URL as it is requested: byte for byte, less user information.

    Raises Unreachable for what is no http or https URL, and for white space and
    control characters, which other parsers would drop silently.
    """
    if len(url) > _LONGEST:
        raise Unreachable(f"the URL is longer than {_LONGEST} characters")
    if not url.isprintable() or " " in url:  # the only space that is printable
        raise Unreachable("the URL contains white space or control characters")
    try:
        parsed = URL(url, encoded=url.isascii())
        host, port = parsed.raw_host, parsed.port
        named = parsed.raw_user is not None or parsed.raw_password is not None
        parsed = parsed.with_user(None) if named else parsed
    except (ValueError, UnicodeError):
        raise Unreachable("the URL is not valid") from None
    if parsed.scheme not in ("http", "https") or not host or not port:
        raise Unreachable("the URL is not an http or https URL")
    return parsed
