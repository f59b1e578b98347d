"""Errors of the use cases.

ServiceError
├── AddressRefused     the address guard allows no request to that URL
├── Conflict           the thing is in a state that does not allow this
├── Gone               it was here, and will not be again
├── HubClosed          the open hub is switched off
└── TooManyWaiting     a bounded queue is full; later there will be room
"""

from __future__ import annotations


class ServiceError(Exception):
    """A use case that was asked for cannot be done."""


class AddressRefused(ServiceError):
    """The address guard allows no request to that URL."""

    def __init__(self, field: str, url: str, setting: str) -> None:
        self.field = field
        self.url = url
        self.setting = setting
        super().__init__(
            f"{field}: the hub does not connect to {url}, which is a private address"
            f" or a port of another service; {setting} can allow its network"
        )


class Conflict(ServiceError):
    """The thing is in a state that does not allow this."""


class Gone(ServiceError):
    """It was here, and will not be again."""


class HubClosed(ServiceError):
    """The open hub is switched off."""

    def __init__(self) -> None:
        super().__init__(
            "this hub takes no subscriptions from outside (FANFARE_OPEN_HUB=off)"
        )


class TooManyWaiting(ServiceError):
    """A bounded queue is full; later there will be room."""
