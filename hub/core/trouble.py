"""What is wrong with a feed, in words for people; "" when nothing is."""

from __future__ import annotations

from hub.core.fetched import Fetched, Understood
from storage.records import Polling


def diagnose(polling: Polling, fetched: Fetched, understood: Understood) -> str:
    """Why this fetch failed, or "".

    A document that is not a feed remains one when a 304 says that it is unchanged.
    """
    if fetched.error:
        return fetched.error
    if understood.error is not None:
        return str(understood.error)
    if understood.feed is not None:
        return ""
    return polling.body_error


def is_known_body(polling: Polling, body_hash: str) -> bool:
    """Whether a body need not be parsed: it is the last one, and that was a feed."""
    return body_hash == polling.body_hash and not polling.body_error
