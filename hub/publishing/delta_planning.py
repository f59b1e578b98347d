"""Which collections of a section are due, and which pages they contain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hub.publishing.collection_store import Chain, Generation
from protocols.scp.collection import ALL
from storage.contract import PageStore
from storage.records import PageId, PageSection, PublishedPage


@dataclass(frozen=True, slots=True)
class CollectionPlan:
    section: PageSection
    chain: Chain | None  # where its delta begins; None: it has no delta yet
    is_delta_due: bool
    is_snapshot_due: bool

    @property
    def name(self) -> str:
        return self.section.name or ALL


def plan_collections(
    section: PageSection,
    generation: Generation,
    position: int,
    *,
    is_snapshot_due: bool,
) -> CollectionPlan:
    """The collections of a section that are due. A snapshot comes with a delta of the
    same moment, even an empty one: readers of either go on with the next delta."""
    name = section.name or ALL
    chain = generation.chains.get(name)
    is_behind = chain is not None and position > chain.position
    return CollectionPlan(
        section=section,
        chain=chain,
        is_delta_due=chain is not None and (is_behind or is_snapshot_due),
        is_snapshot_due=is_snapshot_due,
    )


BATCH = 50
"""Pages that are rendered at a time, in a thread beside the event loop."""


class SnapshotPages:
    """All pages of a section, batch by batch."""

    def __init__(self, pages: PageStore, section: str) -> None:
        self._pages = pages
        self._section = section
        self._after = PageId(0)

    async def next(self) -> Sequence[PublishedPage]:
        return await self._pages.pages(self._section, after=self._after, limit=BATCH)

    def pass_by(self, pages: Sequence[PublishedPage]) -> None:
        self._after = pages[-1].id


class DeltaPages:
    """Pages changed up to a position; later changes come with the next delta."""

    def __init__(
        self, pages: PageStore, section: str, *, after: int, through: int
    ) -> None:
        self._pages = pages
        self._section = section
        self._after = after
        self._through = through

    async def next(self) -> Sequence[PublishedPage]:
        found = await self._pages.changed(self._section, after=self._after, limit=BATCH)
        return [each for each in found if each.change <= self._through]

    def pass_by(self, pages: Sequence[PublishedPage]) -> None:
        self._after = pages[-1].change
