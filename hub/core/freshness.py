"""Until when a server does not want to be asked again."""

from __future__ import annotations

from datetime import datetime, timedelta

from hub.core.fetched import Fetched
from protocols.http import freshness, parse_retry_after
from protocols.http.rate_limit_reset import parse_reset
from storage.records import Polling


def fresh_until(polling: Polling, fetched: Fetched) -> datetime | None:
    """By Cache-Control or Expires of a good answer; None if it names no time.

    A 304 without either renews what the stored answer was given (RFC 9111 4.3.4).
    """
    if fetched.status == 304 and not fetched.cache_control and not fetched.expires:
        if polling.fresh_until is None or polling.last_success is None:
            return None
        return fetched.at + (polling.fresh_until - polling.last_success)
    seconds = freshness(
        cache_control=fetched.cache_control,
        expires=fetched.expires,
        date=fetched.date,
        age=fetched.age,
    )
    return fetched.at + timedelta(seconds=seconds) if seconds else None


def retry_after(fetched: Fetched) -> datetime | None:
    """By Retry-After, in seconds or as a date, whatever the status. A 429 without it
    is believed what else it says."""
    header = fetched.retry_after
    seconds = parse_retry_after(header, fetched.at) if header else None
    if not header and fetched.status == 429:
        seconds = parse_reset(fetched.rate_limit_reset, fetched.refusal, fetched.at)
    return fetched.at + timedelta(seconds=seconds) if seconds else None
