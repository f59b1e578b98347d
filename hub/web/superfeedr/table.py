"""All modes of the API; each module of them brings its own."""

from __future__ import annotations

from hub.services import Services
from hub.web.superfeedr.calls import Modes
from hub.web.superfeedr.listing import SubscriptionList
from hub.web.superfeedr.publishing import Publishing
from hub.web.superfeedr.retrieval import retrieval_modes
from hub.web.superfeedr.rights import rights_modes
from hub.web.superfeedr.subscribing import Subscribing


def create_modes(services: Services) -> Modes:
    """The order is that in which people are told of them."""
    return {
        **Subscribing(services.superfeedr, services.retrieval).modes(),
        **SubscriptionList(services.storage.listings).modes(),
        **Publishing(services.websub, services.publishing).modes(),
        **retrieval_modes(services),
        **rights_modes(),
    }
