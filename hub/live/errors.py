"""Why a live connection or subscription does not come about."""

from __future__ import annotations


class UnknownTopic(Exception):
    """No such topic, or none that this client may see: it is not told which."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        super().__init__("no such topic here")


class NotSubscribed(Exception):
    """A topic was to be left that the connection does not listen to."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        super().__init__("this connection has no subscription to the topic")


class TooManyTopics(Exception):
    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"expected at most {limit} topics on one connection")


class ShareTaken(Exception):
    """Who asks has as many live connections as one may have."""

    def __init__(self, holder: str, most: int) -> None:
        super().__init__(
            f"expected at most {most} live connections of one {holder} at a time"
        )


class NoRoom(Exception):
    """The hub takes no more connections: it has enough, or is about to stop."""

    def __init__(self) -> None:
        super().__init__("the hub takes no more live connections now")
