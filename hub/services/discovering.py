"""How URLs are looked at before they are feeds of the hub."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from hub.core.fetched import Fetched
from hub.sites.feed_finder import LookupKind, LookupResult
from protocols.errors import InvalidValue
from storage.records import Credentials


class FeedScout(Protocol):
    """What the use cases need of `hub.sites.feed_finder.Scout`."""

    async def look(
        self,
        url: str,
        credentials: Credentials | None = None,
        kind: LookupKind = LookupKind.ANY,
    ) -> LookupResult: ...


class HandOver(Protocol):
    """What the use cases need of `hub.ingest.prefetched_responses.HandedOver`."""

    def hand_over(
        self, url: str, fetched: Fetched | None
    ) -> AbstractContextManager[None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovering:
    """Without a ``scout`` nothing is seen; without ``answers`` what was looked at is
    asked for once more."""

    scout: FeedScout | None = None
    answers: HandOver | None = None

    async def look(
        self, url: str, credentials: Credentials | None, kind: LookupKind
    ) -> LookupResult:
        if self.scout is None:
            return LookupResult()
        return await self.scout.look(url, credentials, kind)

    def answered(self, url: str, sight: LookupResult) -> AbstractContextManager[None]:
        """Meanwhile the first fetch of the URL gets the document that was seen."""
        if self.answers is None:
            return nullcontext()
        return self.answers.hand_over(url, sight.fetched)

    def best_answered(
        self, sight: LookupResult, credentials: Credentials | None
    ) -> AbstractContextManager[None]:
        """The same for the best that was found; not with credentials, for what they
        open is answered to nobody else."""
        best = sight.choice.best
        if self.answers is None or best is None or credentials is not None:
            return nullcontext()
        return self.answers.hand_over(best.href, sight.at_best)


def check_kind(field: str, kind: LookupKind, sight: LookupResult) -> None:
    """Who insists on a kind does not want whatever else is there.

    Raises `InvalidValue`, which names the ``field``.
    """
    site = sight.site.format if sight.site else None
    found = sight.feed.format if sight.feed else site
    if not kind.takes_feeds and (found is None or not kind.takes(found)):
        raise InvalidValue(field, f"the address of a site that offers {kind}")
