"""What is to be built of a section."""

from __future__ import annotations

from dataclasses import dataclass

from hub.collections.shelf import Chain, Generation
from protocols.scp.collection import ALL
from storage.records import PageSection


@dataclass(frozen=True, slots=True)
class SectionPlan:
    section: PageSection
    chain: Chain | None  # where its delta begins; None: it has none yet
    is_delta_due: bool
    is_snapshot_due: bool

    @property
    def name(self) -> str:
        return self.section.name or ALL


def plan_section(
    section: PageSection,
    generation: Generation,
    position: int,
    *,
    is_snapshot_due: bool,
) -> SectionPlan:
    """A snapshot comes with a delta of the same moment, be it empty: so whoever

    has either goes on with the next delta.
    """
    name = section.name or ALL
    chain = generation.chains.get(name)
    is_behind = chain is not None and position > chain.position
    return SectionPlan(
        section=section,
        chain=chain,
        is_delta_due=chain is not None and (is_behind or is_snapshot_due),
        is_snapshot_due=is_snapshot_due,
    )
