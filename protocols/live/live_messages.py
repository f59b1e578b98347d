"""The messages of the live stream, each one JSON object with a ``type``.

Clients subscribe and unsubscribe; everything else comes from the hub. Unknown members
are ignored, so that old and new ends understand each other.

A connection that the hub closes has a close code and a reason: 3000 to 3499 mean
"reconnect", 3500 to 3999 "do not"; lower codes are those of RFC 6455.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


@dataclass(frozen=True, slots=True)
class Closing:
    code: int
    reason: str  # at most 123 bytes, RFC 6455 5.5


NOT_TEXT: Final = Closing(1003, "expected text messages")
NOT_UTF_8: Final = Closing(1007, "expected text in UTF-8")
POLICY: Final = Closing(1008, "too many messages")
FAILED: Final = Closing(1011, "internal error")
SHUTDOWN: Final = Closing(3001, "the hub is shutting down; reconnect")
SLOW: Final = Closing(3008, "too slow; reconnect with the last cursor")
NOT_AUTHORIZED: Final = Closing(3500, "not authorized")
TOKEN_ENDED: Final = Closing(3500, "not authorized: the token was revoked or expired")
NO_TOPIC_LEFT: Final = Closing(3501, "all topics have ended")
DISCONNECTED: Final = Closing(3502, "disconnected by the operator of the hub")


class BodyFormat(StrEnum):
    """How the body of a notification is written: as an object, or as Atom text."""

    JSON = "json"
    ATOM = "atom"


class WantedUpdates(StrEnum):
    """Which notifications of changes to known entries a subscription asks for."""

    NONE = "none"
    FRESH = "fresh"
    ALL = "all"


MessageId = str | int
"""An id that the client gives a request; the answer repeats it."""


# --- from the client -------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe:
    """Asks for a topic. With ``cursor`` None for all from now on, else for all after
    it.
    """

    topic: str
    id: MessageId | None = None
    format: BodyFormat = BodyFormat.JSON
    updates: WantedUpdates = WantedUpdates.FRESH
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsubscribe:
    topic: str
    id: MessageId | None = None


ClientMessage = Subscribe | Unsubscribe


# --- from the hub ------------------------------------------------------------------


class LiveErrorCode(StrEnum):
    """The kind of an error, for programs."""

    INVALID = "invalid"  # the message is invalid; ``field`` says where
    UNKNOWN_TOPIC = "unknown_topic"  # or one that this client may not see
    NOT_SUBSCRIBED = "not_subscribed"
    TOO_MANY_TOPICS = "too_many_topics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribed:
    """The topic is subscribed to. Everything after ``cursor`` will be sent."""

    topic: str
    cursor: str
    id: MessageId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsubscribed:
    """No more of the topic will be sent. ``reason`` says why, if the client did not
    ask.
    """

    topic: str
    id: MessageId | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """Records of the topic were missed and can no longer be sent.

    They were trimmed from the log, or the hub was restored from a backup. What the log
    still has after ``cursor`` follows.
    """

    topic: str
    cursor: str
    id: MessageId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationMessage:
    """One record of the log, as the topic's subscribers get it.

    ``prev`` is the cursor of the topic's previous record, None if there is none. If it
    is later than the last cursor that the client knows, the client has missed a record.
    ``body`` is a JSON document as bytes, or an Atom document as text.
    """

    topic: str
    cursor: str
    prev: str | None
    kind: str
    body: bytes | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """Everything up to ``cursor`` has been sent."""

    cursor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMessage:
    """A message of the client that could not be carried out; the connection stays
    open.
    """

    error: LiveErrorCode
    reason: str
    id: MessageId | None = None
    topic: str | None = None
    field: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The last message of an event stream, which has no close frame to say why it
    ends.
    """

    code: int
    reason: str


ServerMessage = (
    Subscribed
    | Unsubscribed
    | Reset
    | NotificationMessage
    | Heartbeat
    | ErrorMessage
    | Closed
)
