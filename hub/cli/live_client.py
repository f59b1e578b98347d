"""A client of the live stream that resumes after a lost connection."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidStatus,
    WebSocketException,
)
from websockets.sync.client import ClientConnection, connect

from hub.cli.hub_client import Hub
from hub.cli.wording import Failure
from protocols.cursor import read_cursor
from protocols.live.live_messages import (
    ErrorMessage,
    Heartbeat,
    NotificationMessage,
    Reset,
    Subscribed,
    Unsubscribed,
)
from protocols.live.message_decoding import read_server_message
from protocols.protocol_errors import InvalidValue

LARGEST_MESSAGE = 64 * 1024 * 1024
CONNECT_SECONDS = 5.0
DO_NOT_RETURN = range(3500, 4000)
"""Close codes after which a new connection would be closed for the same reason."""


class ConnectionLost(Exception):
    """The connection was lost, or could not be made; trying again may help."""


@dataclass(frozen=True, slots=True)
class TopicsConfirmed:
    """The hub has confirmed every topic: whatever is published from now on arrives."""


@dataclass(frozen=True, slots=True)
class RecordsMissed:
    """Records of a topic cannot be sent any more; it goes on after ``cursor``."""

    topic: str
    cursor: str


@dataclass(frozen=True, slots=True)
class TopicEnded:
    """A topic sends nothing any more, for this reason."""

    topic: str
    reason: str


@dataclass(slots=True)
class _Confirmations:
    """The topics of a connection that the hub has not confirmed yet."""

    open: set[str]

    def count(self, topic: str) -> Iterator[TopicsConfirmed]:
        if self.open == {topic}:
            yield TopicsConfirmed()
        self.open.discard(topic)


@dataclass(slots=True, kw_only=True)
class LiveClient:
    """Listens to topics. ``cursor``: its place in the log; "" until the hub tells."""

    hub: Hub
    topics: Sequence[str]
    format: str = "json"
    cursor: str = ""
    known: dict[str, str] = field(default_factory=dict)
    """The last cursor of each topic."""

    @contextlib.contextmanager
    def connected(self) -> Iterator[ClientConnection]:
        """Connect for the block. Raises `ConnectionLost`; `Failure` if a retry is
        useless."""
        try:
            with connect(
                self._url(),
                additional_headers=self._headers(),
                open_timeout=CONNECT_SECONDS,
                max_size=LARGEST_MESSAGE,
                proxy=None,
            ) as connection:
                yield connection
        except ConnectionClosed as closed:
            raise _ended(closed) from closed
        except InvalidStatus as error:
            status = error.response.status_code
            if status in (429, 503):
                raise ConnectionLost(f"HTTP {status}") from error
            raise Failure(f"{self.hub.url} answers HTTP {status}") from error
        except InvalidHandshake as error:
            raise ConnectionLost(str(error)) from error
        except (WebSocketException, InvalidValue) as error:
            raise Failure(str(error)) from error
        except OSError as error:
            raise ConnectionLost(str(error) or type(error).__name__) from error

    def events(
        self, connection: ClientConnection
    ) -> Iterator[NotificationMessage | TopicsConfirmed | RecordsMissed | TopicEnded]:
        """Yield what happens, until the connection ends.

        Raises `Failure` for an error message of the hub, and when no topic is left.
        """
        confirmations = _Confirmations(set(self.topics))
        for text in connection:
            message = read_server_message(text)
            match message:
                case NotificationMessage():
                    if self._is_gap(message):
                        yield RecordsMissed(message.topic, message.cursor)
                    self.known[message.topic] = self.cursor = message.cursor
                    yield message
                case Reset():
                    self.known.pop(message.topic, None)  # or the gap is reported twice
                    yield RecordsMissed(message.topic, message.cursor)
                case Subscribed():
                    self.known[message.topic] = self.cursor = message.cursor
                    yield from confirmations.count(message.topic)
                case Heartbeat():
                    self.cursor = message.cursor
                    self.known = dict.fromkeys(self.known, message.cursor)
                case ErrorMessage():
                    raise Failure(f"{message.topic or self.hub.url}: {message.reason}")
                case Unsubscribed(topic=topic):
                    self.topics = [each for each in self.topics if each != topic]
                    yield TopicEnded(topic, message.reason or "unsubscribed")
                    if not self.topics:
                        raise Failure("all topics have ended")

    def _is_gap(self, message: NotificationMessage) -> bool:
        """Return whether a record of the topic is missing before this one."""
        known = self.known.get(message.topic)
        if known is None or message.prev is None:
            return False
        return read_cursor(message.prev)[1] > read_cursor(known)[1]

    def _headers(self) -> dict[str, str]:
        token = self.hub.token
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _url(self) -> str:
        query = [("topic", topic) for topic in self.topics]
        query.append(("format", self.format))
        if self.cursor:
            query.append(("cursor", self.cursor))
        scheme, _, rest = self.hub.url.partition("://")
        secure = "wss" if scheme == "https" else "ws"
        return f"{secure}://{rest}/stream?{urlencode(query)}"


def _ended(closed: ConnectionClosed) -> ConnectionLost | Failure:
    if closed.rcvd is None:
        return ConnectionLost("without a close message")
    if closed.rcvd.code in DO_NOT_RETURN:
        return Failure(f"the hub closed the connection: {closed.rcvd.reason}")
    return ConnectionLost(closed.rcvd.reason or f"code {closed.rcvd.code}")
