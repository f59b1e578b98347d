"""Topics that are no feeds, for those who want a topic just as it is."""

from __future__ import annotations

from hub.core.fetched import Fetched, Understood
from protocols.errors import EmptyDocument, LimitExceeded
from storage.records import FetchTarget


def is_content(target: FetchTarget, fetched: Fetched, understood: Understood) -> bool:
    """Whether a good answer that is no feed is no trouble, but the topic itself.

    It takes subscriptions that are as-is, and a topic that never was a feed: a feed
    whose server answers with a page about its maintenance is in trouble.
    """
    if fetched.error or understood.feed is not None or target.feed.format:
        return False
    is_unusable = isinstance(understood.error, EmptyDocument | LimitExceeded)
    return target.keeps_body and not is_unusable
