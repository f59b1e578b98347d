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


def feed_id(feed: Feed, topic: str) -> str:
    """The feed's own id; else the topic, as long as anything is known of the feed.

    Superfeedr made one of the title and the hour of ``updated``, which was another one
    with every hour; ours stays, and it is an IRI.
    """
    return feed.id or (topic if feed.title or feed.links else "")


def source_id(source: Feed) -> str:
    """Its own id, else where its document or its site is; "" if that is not known."""
    return source.id or _link(source, "self") or _link(source, "alternate")


def source_topic(source: Feed) -> str:
    """Where a source can be subscribed to; "" if that is not known."""
    return _link(source, "superfeedr") or _link(source, "self")


def author_id(author: Author) -> str:
    return author.id or (slug(author.name) if author.name else "")


def _link(feed: Feed, rel: str) -> str:
    return next((link.href for link in feed.links if link.rel == rel), "")
