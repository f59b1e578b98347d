"""Topics that are no feeds, for those who want a topic just as it is."""

from __future__ import annotations

from contextlib import suppress

import orjson

from hub.core.fetched import Fetched, Understood
from protocols.checksum import checksum
from protocols.errors import EmptyDocument, LimitExceeded
from protocols.selectors import selector_of
from storage.records import FetchTarget


def is_content(target: FetchTarget, fetched: Fetched, understood: Understood) -> bool:
    """Whether a good answer that is no feed is no trouble, but the topic itself.

    It takes subscriptions that are as-is, and a topic that never was a feed: a feed
    whose server answers with a page about its maintenance is in trouble.
    """
    if fetched.error or understood.feed is not None or target.feed.format:
        return False
    if selector_of(target.feed.url):
        return False  # the topic is a part, and not the whole
    is_unusable = isinstance(understood.error, EmptyDocument | LimitExceeded)
    return target.keeps_body and not is_unusable


def content_hash(body: bytes) -> str:
    """The identity of what a resource says, in hex: of JSON in any order and spacing,
    and of the bytes of all else."""
    if body[:1] in (b"{", b"["):
        with suppress(ValueError, TypeError):  # no JSON, or nested too deep
            body = orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS)
    return checksum(body).hex()
