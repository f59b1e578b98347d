"""What a server's answer asks of the next request: when, and with which validators.

Validators are kept byte for byte as the server sent them, and belong to one URL.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from hub.core.fetched import Fetched
from protocols.http import freshness, parse_retry_after
from protocols.http.headers import parse_reset
from storage.records import Polling, Validators


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


def next_validators(polling: Polling, fetched: Fetched) -> Validators | None:
    """The validators after an answer.

    "both replaced on each 200, updated from 304 when present; removed when the server
    stops sending one", and "stored even if the body hash is unchanged". An answer that
    was not read whole changes none: its 304 would stand for a body nobody has.
    """
    known = polling.validators
    if fetched.error or _is_outdated(polling, fetched):
        return known
    if fetched.status == 304:
        if known is None:
            return None
        etag = fetched.etag or known.etag
        modified = fetched.last_modified or known.last_modified
        if (fetched.url, etag, modified) == (
            known.url,
            known.etag,
            known.last_modified,
        ):
            return known
        return Validators(url=fetched.url, etag=etag, last_modified=modified)
    if not fetched.etag and not fetched.last_modified:
        return None
    return Validators(
        url=fetched.url, etag=fetched.etag, last_modified=fetched.last_modified
    )


def _is_outdated(polling: Polling, fetched: Fetched) -> bool:
    """Never an older validator after a newer one."""
    return polling.last_fetch is not None and fetched.at < polling.last_fetch
