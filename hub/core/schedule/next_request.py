"""What a server's answer means for the next request: when, where, with which
validators.

Validators are kept byte for byte as the server sent them, and belong to one URL.

A permanent redirect is observed for a day before it is believed: 301 and 308 count, 302
and 307 never do. Then the target is polled directly. If the target is gone, the poller
returns to the feed's own URL.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from hub.core.fetched import Fetched
from protocols.http import freshness, parse_retry_after
from protocols.http.headers import parse_reset
from protocols.urls import resource_url
from storage.records import Polling, Redirect, StoredFeed, Validators


def fresh_until(polling: Polling, fetched: Fetched) -> datetime | None:
    """Until when a good answer is fresh by Cache-Control or Expires; None: unknown.

    A 304 without either renews what the stored answer was given (RFC 9111 4.3.4).
    """
    if fetched.status == 304 and not fetched.cache_control and not fetched.expires:
        if polling.fresh_until is None or polling.last_success is None:
            return None
        return fetched.at + (polling.fresh_until - polling.last_success)
    if not fetched.cache_control and not fetched.expires:
        return None
    seconds = freshness(
        cache_control=fetched.cache_control,
        expires=fetched.expires,
        date=fetched.date,
        age=fetched.age,
    )
    return fetched.at + timedelta(seconds=seconds) if seconds else None


def retry_after(fetched: Fetched) -> datetime | None:
    """Until when no request is wanted by Retry-After, in seconds or as a date, whatever
    the status; None if it names no time.

    For a 429 without the header, whatever else it says of a reset counts.
    """
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
    last = polling.last_fetch
    is_outdated = last is not None and fetched.at < last  # a newer answer set them
    if fetched.error or is_outdated:
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


PERMANENT = (301, 308)
SIGHTINGS = 3
WATCHED_FOR = timedelta(days=1)


class NextRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Where the next request goes ("": the feed's own URL), and the watched
    redirect."""

    fetch_url: str
    redirect: Redirect | None


def next_request_after_success(polling: Polling, fetched: Fetched) -> NextRequest:
    """The next request after a good answer: a permanent redirect is counted."""
    target = _permanent_target(fetched) if fetched.redirects else ""
    if not target:
        return NextRequest(fetch_url=polling.fetch_url, redirect=None)
    seen = polling.redirect
    if seen is None or seen.target != target:
        first = Redirect(target=target, sightings=1, first_seen=fetched.at)
        return NextRequest(fetch_url=polling.fetch_url, redirect=first)
    sightings = seen.sightings + 1
    if sightings >= SIGHTINGS and fetched.at - seen.first_seen >= WATCHED_FOR:
        return NextRequest(fetch_url=target, redirect=None)
    again = Redirect(target=target, sightings=sightings, first_seen=seen.first_seen)
    return NextRequest(fetch_url=polling.fetch_url, redirect=again)


def next_request_after_failure(polling: Polling, fetched: Fetched) -> NextRequest:
    """The next request after an error; a believed target that is gone is dropped."""
    if fetched.status in (404, 410):
        return NextRequest(fetch_url="", redirect=None)
    return NextRequest(fetch_url=polling.fetch_url, redirect=polling.redirect)


def source_resource(url: str, fetched: Fetched) -> str:
    """The resource that a feed's document came from; "" if it is the feed's own."""
    resource = resource_url(fetched.url)
    return "" if resource == resource_url(url.partition("#")[0]) else resource


def comes_from_elsewhere(feed: StoredFeed, fetched: Fetched) -> bool:
    """Whether a document comes from another URL than the feed's own and the last one's.

    If that is another feed's URL, this feed takes over, once, what that feed has seen.
    """
    found_at = source_resource(feed.url, fetched)
    return found_at not in ("", feed.polling.found_at)


def _permanent_target(fetched: Fetched) -> str:
    """Where the leading permanent redirects led to; "" if the first one is not."""
    target = ""
    for followed in fetched.redirects:
        if followed.status not in PERMANENT:
            break
        target = followed.target
    return target
