"""Which of the feeds that a page names is meant, when one clearly is.

The rules, in order:

1. Feeds of comments are none that a site is followed by, unless there are no others.
2. Links of a type that is a feed's go before those that may be anything
   (``application/json``, ``application/xml``, ``text/xml``).
3. One that is left is it.
4. Several of which titles say the same but for the name of a format are one feed in
   several formats: Atom before RSS before JSON Feed before others, then the first.
5. Otherwise there is a choice, and it is not made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from protocols.errors import FeedLink

_COMMENTS: Final = re.compile(
    r"\b(?:comments?|kommentare?|commentaires?|comentarios?|commenti|reacties)\b",
    re.IGNORECASE,
)
_VAGUE_TYPES: Final = frozenset({"", "application/json", "application/xml", "text/xml"})
_FORMAT_WORDS: Final = re.compile(
    r"\b(?:rss|atom|rdf|xml|json|feed|(?:0\.9\d?|[012]\.\d)(?=\b))\b|[^\w]+",
    re.IGNORECASE,
)
_PREFERRED: Final = (
    "application/atom+xml",
    "application/rss+xml",
    "application/feed+json",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """``best`` is None if there is none, or no clear one; ``reason`` is for people."""

    feeds: tuple[FeedLink, ...]
    best: FeedLink | None
    reason: str


def choose(feeds: Sequence[FeedLink]) -> Choice:
    """Apply the rules to what a page names, in its order."""
    left = list({feed.href: feed for feed in reversed(feeds)}.values())[::-1]
    named = tuple(left)
    if not left:
        return Choice(feeds=(), best=None, reason="no feed was found")
    left = _without(left, _is_of_comments)
    left = _without(left, lambda feed: feed.type in _VAGUE_TYPES)
    if len(left) == 1:
        reason = "the only one" if len(named) == 1 else "the only one of its kind"
        return Choice(feeds=named, best=left[0], reason=reason)
    if len({_bare_title(feed) for feed in left}) == 1:
        best = min(left, key=_rank)
        reason = "one feed in several formats"
        return Choice(feeds=named, best=best, reason=reason)
    return Choice(feeds=named, best=None, reason="several feeds")


def _without(
    feeds: list[FeedLink], is_other: Callable[[FeedLink], bool]
) -> list[FeedLink]:
    return [feed for feed in feeds if not is_other(feed)] or feeds


def _is_of_comments(feed: FeedLink) -> bool:
    path = urlsplit(feed.href).path.replace("/", " ").replace("_", " ")
    return bool(_COMMENTS.search(feed.title) or _COMMENTS.search(path))


def _bare_title(feed: FeedLink) -> str:
    return " ".join(_FORMAT_WORDS.sub(" ", feed.title).lower().split())


def _rank(feed: FeedLink) -> int:
    known = feed.type in _PREFERRED
    return _PREFERRED.index(feed.type) if known else len(_PREFERRED)
