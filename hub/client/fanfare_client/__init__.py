"""A client of a Fanfare hub: subscribe, follow topics, check deliveries, read back.

The methods of `HubClient` block, those of `AsyncHubClient` are awaited; otherwise they
are the same. The rest of the hub's API is described by its ``/api/openapi.json``. The
package needs ``fanfare-hub[client]`` and imports nothing of the hub.
"""

from .received_deliveries import ForgedDelivery, ReceivedDelivery, read_delivery
from .requested_calls import HubSubscription, HubUnavailable, RequestRefused
from .stream_position import StreamEvent
from .waiting_clients import AsyncHubClient, HubClient

__all__ = [
    "AsyncHubClient",
    "ForgedDelivery",
    "HubClient",
    "HubSubscription",
    "HubUnavailable",
    "ReceivedDelivery",
    "RequestRefused",
    "StreamEvent",
    "read_delivery",
]
