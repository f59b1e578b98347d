"""Ids where the schema wants one and the feed has none."""

from __future__ import annotations

import re
from functools import lru_cache

from protocols.model import Author, Feed

_OTHERS = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=1_024)
def slug(text: str) -> str:
    """Lower case, every run of other characters than a-z and 0-9 one hyphen."""
    return _OTHERS.sub("-", text.lower())


def feed_id(feed: Feed) -> str:
    """The feed's own id; else ``slug(title)-Y-M-D-H`` of its date, as Superfeedr does.

    "" for a feed without a title. A made one changes with every hour of ``updated``:
    it is shown, and is no identity.
    """
    if feed.id or not feed.title:
        return feed.id
    at = feed.updated
    hour = f"{at.year}-{at.month}-{at.day}-{at.hour}" if at else ""
    return f"{slug(feed.title)}-{hour}"


def author_id(author: Author) -> str:
    return author.id or slug(author.name)
