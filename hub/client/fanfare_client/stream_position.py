"""Where a client of the live stream is in the log, over all its connections."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed, InvalidStatus

from .requested_calls import HubUnavailable, RequestRefused

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 30.0
CONNECT_SECONDS: Final = 30.0
LARGEST_MESSAGE: Final = 64 * 1024 * 1024
DO_NOT_RETURN: Final = range(3500, 4000)
"""Close codes after which a new connection would be closed for the same reason."""
_BUSY: Final = (429, 502, 503, 504)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """One record of the hub's log, or what became of a topic.

    ``kind``: ``entries``, ``updated``, ``deleted``, ``error`` or ``recovered`` for a
    record. ``reset``: records were missed and cannot be sent any more.
    ``unsubscribed``: nothing more of the topic comes, for the ``reason``. ``cursor``:
    keep it when the event has been handled, and begin there next time; "" with
    ``unsubscribed``.
    """

    kind: str
    topic: str
    cursor: str
    reason: str = ""
    document: dict[str, Any] = field(default_factory=dict)

    @property
    def items(self) -> list[dict[str, Any]]:
        """Return the entries, newest first."""
        return list(self.document.get("items", ()))


@dataclass(slots=True, kw_only=True)
class StreamPosition:
    """The topics that are left, and the ``cursor`` where the next connection begins.

    A cursor of "" stands for the present: only what is published from now on comes.
    """

    url: str
    topics: Sequence[str]
    updates: str
    cursor: str
    confirmed: set[str] = field(default_factory=set)
    has_connected: bool = False
    wait: float = FIRST_WAIT

    def __post_init__(self) -> None:
        if not self.topics:
            raise ValueError("topics: expected at least one")

    @property
    def address(self) -> str:
        """The URL of the next connection."""
        query = [("topic", topic) for topic in self.topics]
        query += [("updates", self.updates), ("format", "json")]
        query += [("cursor", self.cursor)] if self.cursor else []
        return f"ws{self.url.removeprefix('http')}/stream?{urlencode(query)}"

    def take(self, text: str | bytes) -> StreamEvent | None:
        """Return the event in a message, if it has one. Raises `RequestRefused`."""
        self.has_connected, self.wait = True, FIRST_WAIT
        message = json.loads(text)
        kind, topic = message["type"], message.get("topic", "")
        if kind == "error" and topic not in self.confirmed:
            status = 404 if message["error"] == "unknown_topic" else 400
            detail = f"{topic}: {message['reason']}" if topic else message["reason"]
            raise RequestRefused(status, detail, message.get("field", ""))
        if kind in ("error", "unsubscribed"):  # the topic has ended
            self.topics = [each for each in self.topics if each != topic]
            return StreamEvent(
                kind="unsubscribed",
                topic=topic,
                cursor="",
                reason=message.get("reason", ""),
            )
        self.cursor = message.get("cursor") or self.cursor
        if kind == "subscribed":
            self.confirmed.add(topic)
        if kind == "reset":
            return StreamEvent(kind=kind, topic=topic, cursor=self.cursor)
        if kind != "notification":
            return None
        return StreamEvent(
            kind=message["kind"],
            topic=topic,
            cursor=self.cursor,
            document=message["body"],
        )

    def next_wait(self, error: Exception) -> float:
        """Return the seconds to wait before the next connection.

        Raises `RequestRefused` if another connection would not help, and
        `HubUnavailable` if there was none yet.
        """
        if isinstance(error, InvalidStatus):
            status = error.response.status_code
            if status not in _BUSY:
                raise _refusal(status, bytes(error.response.body)) from error
        told = error.rcvd if isinstance(error, ConnectionClosed) else None
        if told is not None and told.code in DO_NOT_RETURN:
            raise RequestRefused(told.code, told.reason) from error
        if not self.has_connected:
            raise HubUnavailable(f"no live stream at {self.url}: {error}") from error
        wait, self.wait = self.wait, min(self.wait * 2, LONGEST_WAIT)
        return wait * random.uniform(0.5, 1.0)  # noqa: S311 - spreads returns


def _refusal(status: int, body: bytes) -> RequestRefused:
    try:
        problem = json.loads(body)
        return RequestRefused(status, problem["detail"], problem.get("field", ""))
    except (ValueError, KeyError, TypeError):
        return RequestRefused(status, body.decode(errors="replace")[:500])
