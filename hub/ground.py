"""What every part of a hub stands on, and who the hub says that it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random, SystemRandom

import hub
from hub.http import HttpNetwork, Network
from hub.http.resolver import Lookup
from hub.parsing.parser import Parser
from hub.polling.identity import Identity
from hub.polling.visitor import draw_jitter
from hub.runtime.clock import Clock, SystemClock
from hub.runtime.metrics import Metrics
from hub.settings import Settings
from storage.interface import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Seams:
    """What a simulation puts in the place of the world around a hub."""

    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=SystemRandom)
    jitter: Callable[[], float] = draw_jitter  # of polls, from -1 to 1
    network: Network | None = None  # None: the real one
    parser: Parser | None = None  # None: worker processes
    lookup: Lookup | None = None  # None: the system's resolver


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    settings: Settings
    storage: Storage
    clock: Clock
    metrics: Metrics
    network: Network
    public_url: str
    seams: Seams = field(default_factory=Seams)

    @property
    def hub_url(self) -> str:
        return f"{self.public_url}/hub"


def create_network(settings: Settings) -> HttpNetwork:
    """The one way out, under the address guard as the settings have it."""
    return HttpNetwork(
        allow_topics=settings.allow_networks + settings.allow_topic_networks,
        allow_callbacks=settings.allow_networks + settings.allow_callback_networks,
        allow_hubs=settings.allow_networks + settings.allow_hub_networks,
    )


def identity(settings: Settings) -> Identity:
    """Who publishers are told is asking."""
    return Identity(
        product=f"Fanfare/{hub.__version__}",
        url=f"{settings.public_url}/about" if settings.public_url else "",
        contact=settings.contact,
    )
