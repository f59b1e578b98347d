"""A client of a Fanfare hub: subscribe, follow topics, check deliveries, read back.

The methods of `HubClient` block, those of `AsyncHubClient` are awaited; otherwise they
are the same. The rest of the hub's API is described by its ``/api/openapi.json``. The
package needs ``fanfare-hub[client]`` and imports nothing of the hub.
"""

try:
    from .received_deliveries import ForgedDelivery, ReceivedDelivery, read_delivery
    from .requested_calls import HubSubscription, HubUnavailable, RequestRefused
    from .stream_position import StreamEvent
    from .waiting_clients import AsyncHubClient, HubClient
except ModuleNotFoundError as error:
    if error.name not in ("httpx2", "websockets"):
        raise
    raise ModuleNotFoundError(
        "fanfare_client needs its extra: pip install 'fanfare-hub[client]'",
        name=error.name,
    ) from error

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
