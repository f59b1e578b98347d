"""How many of the workers may read sites at a time.

A visit to a site takes minutes, one to a feed a second or two: were all workers with
sites, no feed would be asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from protocols.model import SITE_FORMATS
from storage.records import StoredFeed

SHARE: Final = 4
"""One worker of so many, and one at least."""


class NoPlace(Exception):
    """A feed has turned out to be a site, and nothing more of it may be read now."""


class SitePlaces:
    """Of ``concurrency`` workers. What is not known to be a site yet needs no place
    before it shows to be one."""

    def __init__(self, concurrency: int) -> None:
        self._free = max(1, concurrency // SHARE)

    @contextmanager
    def hold(self, feed: StoredFeed) -> Iterator[bool]:
        """Whether the feed may be visited now; its place is held meanwhile."""
        if feed.format not in SITE_FORMATS:
            yield True
            return
        with self._take() as is_free:
            yield is_free

    @contextmanager
    def hold_for_new(self, feed: StoredFeed) -> Iterator[None]:
        """For the rest of a visit, if it began as that of any feed. Raises `NoPlace`.

        Were there none to be had, a hundred sites that are added at once would have all
        workers.
        """
        if feed.format in SITE_FORMATS:
            yield
            return
        with self._take() as is_free:
            if not is_free:
                raise NoPlace
            yield

    @contextmanager
    def _take(self) -> Iterator[bool]:
        if not self._free:
            yield False
            return
        self._free -= 1
        try:
            yield True
        finally:
            self._free += 1
