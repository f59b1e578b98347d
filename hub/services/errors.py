"""Errors of the use cases.

ServiceError
├── AddressRefused     the address guard allows no request to that URL
├── Conflict           the thing is in a state that does not allow this
├── HubClosed          the open hub is switched off
├── SeveralFeeds       a page names several feeds, and none is clearly meant
└── TooManyWaiting     a bounded queue is full; later there will be room
"""

from __future__ import annotations

from protocols.errors import FeedLink


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


class HubClosed(ServiceError):
    """The open hub is switched off."""

    def __init__(self) -> None:
        super().__init__(
            "this hub takes no subscriptions from outside (FANFARE_OPEN_HUB=off)"
        )


class SeveralFeeds(ServiceError):
    """A page names several feeds, and none of them is clearly meant."""

    def __init__(self, url: str, feeds: tuple[FeedLink, ...]) -> None:
        self.url = url
        self.feeds = feeds
        super().__init__(f"{url} names {len(feeds)} feeds; add the one that is meant")


class TooManyWaiting(ServiceError):
    """A bounded queue is full; later there will be room."""
