"""Whether a feed can be pushed, and by whom: the hubs that a topic names.

They are named in its `Link` header, or otherwise in its document (WebSub 4).
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from msgspec.structs import replace

from hub.core.fetched import Fetched
from protocols.http import parse_link_header
from protocols.legacy_pings import cloud_url
from protocols.model import Feed, first_href
from protocols.protocol_errors import InvalidValue
from protocols.urls import normal_url, resource_url
from protocols.websub.callbacks import read_web_url
from storage.records import PushOffer, PushWay

MOST_HUBS = 10
VALIDATE = "validate"
"""Superfeedr's relation of a URL that allows or refuses subscriptions."""


def hubs_of_header(fetched: Fetched) -> tuple[str, ...]:
    """The hubs that a ``Link`` header names, in order, ten at most."""
    if not fetched.link:
        return ()
    links = parse_link_header(fetched.link, fetched.url)
    return tuple(link.href for link in links if link.rel == "hub")[:MOST_HUBS]


def hubs_of_feed(head: Feed) -> tuple[str, ...]:
    return tuple(link.href for link in head.links if link.rel == "hub")


def validator_of_header(fetched: Fetched) -> str:
    """The URL at which the publisher wants to be asked about subscriptions; "" if it
    names none."""
    links = parse_link_header(fetched.link, fetched.url) if fetched.link else ()
    return next((link.href for link in links if link.rel == VALIDATE), "")


def validator_of_feed(head: Feed) -> str:
    return first_href(head.links, VALIDATE)


MOST_MARKS = 4
SITE = "site "
"""Prefix of a mark that is the address of a site."""
_LONGEST_MARK = 2_048


def offer_of(fetched: Fetched, head: Feed, url: str, own_url: str) -> PushOffer | None:
    """The offer of a whole document; None if it names no hub.

    ``url`` is where the feed is polled, ``own_url`` where this hub is reached, which
    never subscribes to itself. WebSub is preferred to rssCloud, which only tells that
    there is news. Subscribers "MUST first check for HTTP Link headers" (WebSub 4); of
    several hubs https is preferred.
    """
    hub = _chosen(hubs_of_header(fetched) or hubs_of_feed(head), own_url)
    cloud = "" if hub else _chosen([_cloud(head)], own_url)
    if not hub and not cloud:
        return None
    topic = (_self_of(fetched, head) or _address(url)) if hub else _address(url)
    if not topic or _is_own(topic, own_url):
        return None
    return PushOffer(
        way=PushWay.WEBSUB if hub else PushWay.CLOUD,
        hub=hub or cloud,
        topic=topic,
        marks=_all_marks(head),
    )


def marks_of(head: Feed) -> tuple[str, ...]:
    """What a document is known by: its id and its own addresses, or else its site.

    The site does not tell two feeds of one site apart.
    """
    own = [head.id, *_addresses(head, "self")]
    site = _addresses(head, "alternate")
    found = list(filter(None, own)) or [f"{SITE}{each}" for each in site]
    marks = dict.fromkeys(mark for mark in found if len(mark) <= _LONGEST_MARK)
    return tuple(marks)[:MOST_MARKS]


def _all_marks(head: Feed) -> tuple[str, ...]:
    """All marks by which any document of the feed may be known."""
    nameless = replace(
        head, id="", links=tuple(link for link in head.links if link.rel != "self")
    )
    return marks_of(head) + marks_of(nameless)[:1]


def _addresses(head: Feed, relation: str) -> list[str]:
    """The addresses of one relation that the head names; http and https are one."""
    links = (resource_url(link.href) for link in head.links if link.rel == relation)
    return [f"https://{url.partition('://')[2]}" for url in links if url]


def _self_of(fetched: Fetched, head: Feed) -> str:
    """The topic that the document names; "" if it cannot be polled."""
    links = parse_link_header(fetched.link, fetched.url) if fetched.link else ()
    named = [link.href for link in links if link.rel == "self"]
    named += [link.href for link in head.links if link.rel == "self"]
    return next(filter(None, map(_address, named)), "")


def _chosen(hubs: Iterable[str], own_url: str) -> str:
    usable = [hub for hub in map(_address, hubs) if hub and not _is_own(hub, own_url)]
    return next((hub for hub in usable if hub.startswith("https:")), "") or next(
        iter(usable), ""
    )


def _cloud(head: Feed) -> str:
    cloud = head.extensions.get("rss", {}).get("cloud")
    return cloud_url(cloud) if isinstance(cloud, dict) else ""


def _address(url: str) -> str:
    try:
        return read_web_url(url.partition("#")[0], "url")
    except InvalidValue:
        return ""


def _is_own(url: str, own_url: str) -> bool:
    return urlsplit(normal_url(url))[:2] == urlsplit(normal_url(own_url))[:2]
