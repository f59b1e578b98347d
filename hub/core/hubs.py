"""Which hubs a topic names (WebSub 4): in its header, or else in its document."""

from __future__ import annotations

from hub.core.fetched import Fetched
from protocols.http import parse_link_header
from protocols.model import Feed

MOST_HUBS = 10
VALIDATE = "validate"
"""Superfeedr's relation of a URL that allows or refuses subscriptions."""


def hubs_of_header(fetched: Fetched) -> tuple[str, ...]:
    """In order; those beyond the tenth are left out."""
    links = parse_link_header(fetched.link, fetched.url)
    return tuple(link.href for link in links if link.rel == "hub")[:MOST_HUBS]


def hubs_of_feed(head: Feed) -> tuple[str, ...]:
    return tuple(link.href for link in head.links if link.rel == "hub")


def validator_of_header(fetched: Fetched) -> str:
    """Where the publisher wants to be asked about subscriptions; "" if nowhere."""
    links = parse_link_header(fetched.link, fetched.url)
    return next((link.href for link in links if link.rel == VALIDATE), "")


def validator_of_feed(head: Feed) -> str:
    return next((link.href for link in head.links if link.rel == VALIDATE), "")
