"""At which of other people's hubs feeds are subscribed, as it is set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hub.core.host_set import HostSet


@dataclass(frozen=True, slots=True)
class UsedHubs:
    """All but those on ``unused`` hosts; none if not ``is_on``."""

    is_on: bool = True
    unused: HostSet = field(default_factory=HostSet)

    def include(self, hub: str) -> bool:
        """Whether feeds are subscribed at this hub, a URL."""
        return self.is_on and not self.unused.covers(hub)

    def left_out(self, hubs: Iterable[str]) -> list[str]:
        """Those of these hubs at which no feed is subscribed."""
        return [hub for hub in hubs if not self.include(hub)]
