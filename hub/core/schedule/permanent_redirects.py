"""Permanent redirects: watched for a day before they are believed.

301 and 308 count, 302 and 307 never do. Believed, the target is polled directly; a
target that is gone sends the poller back to the feed's own URL.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from hub.core.fetched import Fetched
from protocols.urls import resource_url
from storage.records import Polling, Redirect, StoredFeed

PERMANENT = (301, 308)
SIGHTINGS = 3
WATCHED_FOR = timedelta(days=1)


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """Where the next request goes ("": the feed's own URL), and what is watched."""

    fetch_url: str
    redirect: Redirect | None


def course_after_success(polling: Polling, fetched: Fetched) -> Course:
    """Sight a permanent redirect that led to a feed."""
    target = _permanent_target(fetched)
    if not target:
        return Course(fetch_url=polling.fetch_url, redirect=None)
    seen = polling.redirect
    if seen is None or seen.target != target:
        first = Redirect(target=target, sightings=1, first_seen=fetched.at)
        return Course(fetch_url=polling.fetch_url, redirect=first)
    sightings = seen.sightings + 1
    if sightings >= SIGHTINGS and fetched.at - seen.first_seen >= WATCHED_FOR:
        return Course(fetch_url=target, redirect=None)
    again = Redirect(target=target, sightings=sightings, first_seen=seen.first_seen)
    return Course(fetch_url=polling.fetch_url, redirect=again)


def course_after_failure(polling: Polling, fetched: Fetched) -> Course:
    """A redirect into trouble is no sighting; a believed target may be lost again."""
    if fetched.status in (404, 410):
        return Course(fetch_url="", redirect=None)
    return Course(fetch_url=polling.fetch_url, redirect=polling.redirect)


def landing(url: str, fetched: Fetched) -> str:
    """The resource that a feed's document came from; "" if it is the feed's own."""
    resource = resource_url(fetched.url)
    return "" if resource == resource_url(url.partition("#")[0]) else resource


def lands_elsewhere(feed: StoredFeed, fetched: Fetched) -> bool:
    """Whether a document comes from where the last one did not: from another's URL.

    What that other feed knows is then known to this one, too, once.
    """
    found_at = landing(feed.url, fetched)
    return found_at not in ("", feed.polling.found_at)


def _permanent_target(fetched: Fetched) -> str:
    """Where the leading permanent hops led to; "" if the first one is not."""
    target = ""
    for hop in fetched.hops:
        if hop.status not in PERMANENT:
            break
        target = hop.target
    return target
