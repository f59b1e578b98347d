"""The callback that hears nothing: for those who only retrieve, or stream."""

from __future__ import annotations

from typing import Final

_OF_SUPERFEEDR: Final = ("push.superfeedr.com/dev/null", "superfeedr.com/dev/null")


def is_null_device(callback: str, public_url: str) -> bool:
    """Whether it is Superfeedr's, or that of the hub at ``public_url``."""
    own = public_url.partition("://")[2]
    return callback.partition("://")[2] in (*_OF_SUPERFEEDR, f"{own}/dev/null")
