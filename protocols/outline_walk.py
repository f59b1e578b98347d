"""Walking lists of feeds that include each other, without ever going in circles.

Pure: what to ask for next, and what an answer adds. Lists may form a tree, a diamond
or a ring: each is read once, known by the address that it was found at in the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from protocols.outlines import MOST_FEEDS, FeedList, Inclusion, ListedFeed
from protocols.urls import resource_url

MOST_LISTS: Final = 50
DEEPEST: Final = 5
"""Lists inside of lists; the first one is not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkedList:
    """A list that was asked for; ``trouble`` says why it was not read."""

    url: str
    feeds: int = 0
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class _Wanted:
    inclusion: Inclusion
    depth: int


@dataclass(slots=True)
class OutlineWalk:
    """How far a walk has come: ``feeds`` are those found, each once, in their order."""

    feeds: list[ListedFeed] = field(default_factory=list)
    lists: list[WalkedList] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _waiting: deque[_Wanted] = field(default_factory=deque)
    _asked: set[str] = field(default_factory=set)
    _listed: set[str] = field(default_factory=set)
    _current: _Wanted | None = None

    def begin(self, urls: Sequence[str], *, depth: int = 0) -> None:
        """Lists to read; ``depth`` is how deep they are themselves."""
        self._want([Inclusion(url=url) for url in urls], depth)

    def begin_with(self, found: FeedList) -> None:
        """A list that is there already."""
        self._add(found, "", 0)

    def next_url(self) -> str | None:
        """The list to ask for now; None: all is read. Its answer comes next, by
        `take` or `give_up`."""
        while self._waiting:
            wanted = self._waiting.popleft()
            resource = resource_url(wanted.inclusion.url)
            if resource in self._asked:
                continue
            if len(self.lists) >= MOST_LISTS:
                self._waiting.clear()
                self.notes.append(f"only the first {MOST_LISTS} lists were read")
                return None
            self._asked.add(resource)
            self._current = wanted
            return wanted.inclusion.url
        return None

    def take(self, url: str, found: FeedList) -> None:
        """The list that was asked for, and the URL it was found at in the end."""
        wanted = self._answered()
        resource = resource_url(url)
        is_elsewhere = resource != resource_url(wanted.inclusion.url)
        if is_elsewhere and resource in self._asked:
            return
        self._asked.add(resource)
        added = self._add(found, wanted.inclusion.section, wanted.depth)
        self.lists.append(WalkedList(url=url, feeds=added))

    def give_up(self, trouble: str) -> None:
        """The list that was asked for cannot be read; the others can."""
        url = self._answered().inclusion.url
        self.lists.append(WalkedList(url=url, trouble=trouble))

    def stop(self, reason: str) -> None:
        """Ask for nothing more."""
        self._waiting.clear()
        self.notes.append(reason)

    def _answered(self) -> _Wanted:
        wanted, self._current = self._current, None
        if wanted is None:
            raise RuntimeError("no list was asked for")
        return wanted

    def _add(self, found: FeedList, section: str, depth: int) -> int:
        self.notes += found.notes
        before = len(self.feeds)
        for feed in found.feeds:
            resource = resource_url(feed.url)
            if resource in self._listed:
                continue
            if len(self.feeds) >= MOST_FEEDS:
                self.stop(f"only the first {MOST_FEEDS} feeds were read")
                break
            self._listed.add(resource)
            self.feeds.append(_within(section, feed))
        self._want([_inside(section, each) for each in found.inclusions], depth + 1)
        return len(self.feeds) - before

    def _want(self, inclusions: Sequence[Inclusion], depth: int) -> None:
        if inclusions and depth > DEEPEST:
            self.notes.append(f"lists more than {DEEPEST} levels deep were not read")
            return
        self._waiting.extend(_Wanted(each, depth) for each in inclusions)


def _within(section: str, feed: ListedFeed) -> ListedFeed:
    if feed.section or not section:
        return feed
    return ListedFeed(
        url=feed.url,
        title=feed.title,
        description=feed.description,
        section=section,
    )


def _inside(section: str, inclusion: Inclusion) -> Inclusion:
    return Inclusion(url=inclusion.url, section=inclusion.section or section)
