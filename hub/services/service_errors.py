"""Errors of the use cases.

ServiceError
├── AddressRefused     the address guard allows no request to that URL
├── Conflict           its present state does not allow this
│   └── DeliveryUnderWay   a callback is being sent something else
├── Gone               it existed, and is gone for good
├── HubClosed          the open hub is disabled
├── NotConfirmed       a callback was asked, and did not confirm
├── NotReadable        nothing that this account may read
├── NotAllowed         the topic's publisher refuses the subscription
├── NotSigned          content of a publisher without a valid signature
├── SearchOff          there is no search index
├── SeveralFeeds       a page names several feeds without a clear choice
└── TooManyWaiting     a bounded queue is full; try again later
"""

from __future__ import annotations

from protocols.protocol_errors import FeedLink


class ServiceError(Exception):
    """A use case cannot be carried out as requested."""


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
    """The present state does not allow this."""


class DeliveryUnderWay(Conflict):
    """A callback is being sent something else; a second later it may be over."""

    def __init__(self) -> None:
        super().__init__(
            "its callback is being sent something else at this moment; try again in"
            " a second"
        )


class Gone(ServiceError):
    """It existed, and is gone for good."""


class HubClosed(ServiceError):
    """The open hub is switched off."""

    field = ""

    def __init__(self) -> None:
        super().__init__(
            "this hub accepts no subscriptions without a token (FANFARE_OPEN_HUB=off)"
        )


class NotReadable(ServiceError):
    """Nothing that this account may read.

    The error does not say whether it exists. ``field`` names the parameter with the
    request.
    """

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        super().__init__(f"{field}: {reason}")


class NotConfirmed(ServiceError):
    """A callback was asked, and refused or gave no answer; the reason is included."""

    field = "hub.callback"

    def __init__(self, callback: str, reason: str = "") -> None:
        self.callback = callback
        self.reason = reason
        super().__init__(
            f"We could not verify your callback Error: {reason} (hub.callback)"
            if reason
            else f"Your callback {callback} didn't echo the challenge."
            " Please make sure it does (hub.callback)"
        )


class NotAllowed(ServiceError):
    """The topic's publisher was asked, and refuses the subscription."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}")


class NotSigned(ServiceError):
    """Content of a publisher that is not signed with the feed's secret."""

    field = "hub.signature"

    def __init__(self) -> None:
        super().__init__(
            "hub.signature: expected the HMAC of hub.content with the secret that the"
            " operator has set for this topic"
        )


class SearchOff(ServiceError):
    """There is no search index."""

    def __init__(self) -> None:
        super().__init__("this hub has no search (FANFARE_SEARCH_DAYS=0)")


class SeveralFeeds(ServiceError):
    """A page names several feeds, and none of them is clearly meant."""

    def __init__(self, url: str, feeds: tuple[FeedLink, ...]) -> None:
        self.url = url
        self.feeds = feeds
        super().__init__(f"{url} names {len(feeds)} feeds; add one of them")


class TooManyWaiting(ServiceError):
    """A bounded queue is full; try again later."""
