"""What crawlers get: the sitemap, and collections by their names."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hub.publishing.collection_builder import (
    BuildOptions,
    BuildOutcome,
    CollectionBuilder,
)
from hub.publishing.collection_publisher import CollectionPublisher
from hub.publishing.collection_store import (
    CollectionStore,
    Generation,
    StoredCollection,
)
from hub.runtime.clock import Clock
from hub.services.service_errors import Conflict, Gone
from protocols.scp.collection import ALL, CollectionType, Encoding
from protocols.scp.write.sitemap import (
    ListedCollection,
    ListedSection,
    render_sitemap,
    update_frequency,
)
from storage.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitemap:
    body: bytes
    etag: str
    modified: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptSitemap:
    """The last sitemap, valid as long as the same collections are ``listed``."""

    generation: Generation
    listed: Sequence[StoredCollection]
    sitemap: Sitemap


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCollection:
    """A collection's file, and the headers that it is served with.

    ``modified``: when it was generated, but not after now (RFC 9110 8.8.2.1).
    ``max_age``: seconds for which caches may keep it.
    """

    collection: StoredCollection
    path: Path
    modified: datetime
    max_age: int


class CollectionService:
    """Serves collections. ``is_on`` False: there are none."""

    def __init__(
        self,
        builder: CollectionBuilder,
        store: CollectionStore,
        clock: Clock,
        public_url: str,
        publisher: CollectionPublisher,
        *,
        is_on: bool = True,
    ) -> None:
        self._publisher = publisher
        self._builder = builder
        self._store = store
        self._clock = clock
        self._public_url = public_url
        self.is_on = is_on
        self._kept: _KeptSitemap | None = None

    def robots(self) -> str:
        """The hub's robots.txt: crawlers may read all but the API, and find the
        sitemap."""
        lines = ["User-agent: *", "Disallow: /api/"]
        if self.is_on:
            lines += ["", f"Sitemap: {self._public_url}/sitemap.xml"]
        return "\n".join(lines) + "\n"

    async def sitemap(self) -> Sitemap:
        """The sitemap. It does not name collections that may contain text withdrawn a
        moment ago.

        Raises `NotFound` when there are no collections, and `StorageError`.
        """
        if not self.is_on:
            raise NotFound("sitemap", "of collections")
        hidden = await self._builder.withdrawn() | self._store.lost()
        generation, now, kept = self._store.generation, self._clock.now(), self._kept
        listed = [
            each
            for each in generation.listed
            if each.expires > now and each.name not in hidden
        ]
        if kept is not None and kept.generation is generation and kept.listed == listed:
            return kept.sitemap
        is_whole = len(listed) == len(generation.listed)
        made = min(generation.made, now)
        rendered = self._render(listed, made if is_whole else now)
        self._kept = _KeptSitemap(
            generation=generation, listed=listed, sitemap=rendered
        )
        return rendered

    def _render(self, found: list[StoredCollection], modified: datetime) -> Sitemap:
        listed = sorted(
            found, key=lambda each: (each.section, each.since is not None, each.name)
        )
        options = self._builder.options
        codings = dict.fromkeys([options.encoding, Encoding.GZIP])
        body = render_sitemap(
            sections=_sections(listed),
            collections=[self._listed(each) for each in listed],
            pages=[f"{self._public_url}/"],
            compression=[each.value for each in codings if each is not Encoding.PLAIN],
            frequency=update_frequency(options.delta_seconds),
        )
        etag = hashlib.sha256(body).hexdigest()[:32]
        return Sitemap(body=body, etag=etag, modified=modified)

    async def find(self, name: str) -> ServedCollection:
        """A collection by its name.

        Raises `NotFound`, `StorageError`, and `Gone` for a collection that is no longer
        kept or that contains withdrawn text, even if withdrawn a moment ago.
        """
        withdrawn = await self._builder.withdrawn() if self.is_on else frozenset()
        generation = self._store.generation
        found = self._store.find(name) if self.is_on else None
        is_over = found and (found.gone <= self._clock.now() or name in withdrawn)
        if name in generation.gone or is_over:
            raise Gone(
                f"the collection {name} has expired or was withdrawn; the sitemap has"
                " newer ones"
            )
        path = self._store.path(name)
        if found is None or not path.is_file():
            raise NotFound("collection", name)
        options = self._builder.options
        is_delta = found.type is CollectionType.DELTA
        seconds = options.delta_seconds if is_delta else options.snapshot_seconds
        return ServedCollection(
            collection=found,
            path=path,
            modified=min(found.generated, self._clock.now()),
            max_age=int(seconds),
        )

    async def build(self, *, snapshots: bool) -> Sequence[StoredCollection]:
        """Build collections now. Raises `Conflict` if they are switched off,
        `StorageError`, OSError."""
        self._check_on()
        return await self._builder.build(snapshots=snapshots)

    def ask(self, *, snapshots: bool) -> None:
        """Have collections built in the background. Raises `Conflict`."""
        self._check_on()
        self._publisher.ask(snapshots=snapshots)

    def _check_on(self) -> None:
        if not self.is_on:
            raise Conflict("collections are disabled (FANFARE_SCP=off)")

    @property
    def is_wanted(self) -> bool:
        """Whether a build was asked for that is not over."""
        return self._publisher.is_asked

    @property
    def generation(self) -> Generation:
        return self._store.generation

    @property
    def options(self) -> BuildOptions:
        return self._builder.options

    @property
    def last_build(self) -> BuildOutcome | None:
        """The last build that has ended since the hub started; None if there is
        none."""
        return self._builder.last_build

    @property
    def pages_written(self) -> int | None:
        """Pages that the current build has written; None if no build is under way."""
        return self._builder.pages_written

    def _listed(self, each: StoredCollection) -> ListedCollection:
        return ListedCollection(
            head=each.head,
            url=f"{self._public_url}/scp/{each.name}",
            expires=each.expires,
            pages=each.pages,
            size=each.size,
        )


def _sections(listed: Sequence[StoredCollection]) -> list[ListedSection]:
    """The sections, ``all`` first, with the pages of their latest snapshot."""
    pages = {
        each.section: each.pages
        for each in listed
        if each.type is CollectionType.SNAPSHOT
    }
    names = sorted(pages, key=lambda name: (name != ALL, name))
    return [ListedSection(name=name, pages=pages[name]) for name in names]
