"""What every part of a hub stands on, and who the hub says that it is."""

from __future__ import annotations

from dataclasses import dataclass

import hub
from hub.clock import Clock
from hub.config import Settings
from hub.metrics import Metrics
from hub.net import HttpNetwork, Network
from hub.polling.identity import Identity
from storage.interface import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    settings: Settings
    storage: Storage
    clock: Clock
    metrics: Metrics
    network: Network
    public_url: str

    @property
    def hub_url(self) -> str:
        return f"{self.public_url}/hub"


def create_network(settings: Settings) -> HttpNetwork:
    """The one way out, under the address guard as the settings have it."""
    return HttpNetwork(
        allow_topics=settings.allow_networks + settings.allow_topic_networks,
        allow_callbacks=settings.allow_networks + settings.allow_callback_networks,
    )


def identity(settings: Settings) -> Identity:
    """Who publishers are told is asking."""
    return Identity(
        product=f"Fanfare/{hub.__version__}",
        url=f"{settings.public_url}/about" if settings.public_url else "",
        contact=settings.contact,
    )
