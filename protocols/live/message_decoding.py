"""Read messages from JSON. Errors name the member at fault."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeVar, cast

import orjson

from protocols.cursor import read_cursor
from protocols.live.live_messages import (
    BodyFormat,
    ClientMessage,
    Closed,
    ErrorMessage,
    Heartbeat,
    LiveErrorCode,
    MessageId,
    NotificationMessage,
    Reset,
    ServerMessage,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
    WantedUpdates,
)
from protocols.protocol_errors import InvalidValue

LONGEST_ID = 128
"""Characters or digits."""

_Choice = TypeVar("_Choice", bound=StrEnum)


class InvalidMessage(InvalidValue):
    """A message that cannot be understood; ``id`` is the client's id for it."""

    def __init__(self, cause: InvalidValue, id: MessageId | None) -> None:
        super().__init__(cause.field, cause.expected, cause.value)
        self.id = id


def read_client_message(text: str | bytes) -> ClientMessage:
    """Read a message of a client. Raises `InvalidMessage`."""
    id: MessageId | None = None
    try:
        members = _Members(text)
        id = members.id()
        return _client_message(members, id)
    except InvalidValue as cause:
        raise InvalidMessage(cause, id) from None


def read_server_message(text: str | bytes) -> ServerMessage:
    """Read a message of the hub, as a client does. Raises `InvalidValue`."""
    members = _Members(text)
    match members.text("type"):
        case "subscribed":
            return Subscribed(
                topic=members.text("topic"), cursor=members.cursor(), id=members.id()
            )
        case "unsubscribed":
            return Unsubscribed(
                topic=members.text("topic"),
                id=members.id(),
                reason=members.optional_text("reason"),
            )
        case "reset":
            return Reset(
                topic=members.text("topic"), cursor=members.cursor(), id=members.id()
            )
        case "notification":
            return _notification(members)
        case "heartbeat":
            return Heartbeat(cursor=members.cursor())
        case "error":
            return _error(members)
        case "closed":
            return Closed(code=members.number("code"), reason=members.text("reason"))
        case other:
            raise InvalidValue("type", "a message of the hub", other)


def _client_message(members: _Members, id: MessageId | None) -> ClientMessage:
    match members.text("type"):
        case "subscribe":
            cursor = members.optional_text("cursor")
            if cursor is not None:
                read_cursor(cursor)
            return Subscribe(
                id=id,
                topic=members.text("topic"),
                format=members.choice("format", BodyFormat.JSON),
                updates=members.choice("updates", WantedUpdates.FRESH),
                cursor=cursor,
            )
        case "unsubscribe":
            return Unsubscribe(id=id, topic=members.text("topic"))
        case other:
            raise InvalidValue("type", "subscribe or unsubscribe", other)


def _notification(members: _Members) -> NotificationMessage:
    prev = members.optional_text("prev")
    if prev is not None:
        read_cursor(prev, "prev")
    return NotificationMessage(
        topic=members.text("topic"),
        cursor=members.cursor(),
        prev=prev,
        kind=members.text("kind"),
        body=members.body(),
    )


def _error(members: _Members) -> ErrorMessage:
    return ErrorMessage(
        error=members.choice("error", LiveErrorCode.INVALID),
        reason=members.text("reason"),
        id=members.id(),
        topic=members.optional_text("topic"),
        field=members.optional_text("field"),
    )


class _Members:
    """The members of one JSON object, each read as the required type."""

    def __init__(self, text: str | bytes) -> None:
        try:
            document = orjson.loads(text)
        except orjson.JSONDecodeError:
            raise InvalidValue("message", "a JSON object") from None
        if not isinstance(document, dict):
            raise InvalidValue("message", "a JSON object")
        self._members = cast("dict[str, Any]", document)

    def text(self, name: str) -> str:
        value = self.optional_text(name)
        if not value:
            raise InvalidValue(name, "a non-empty string")
        return value

    def optional_text(self, name: str) -> str | None:
        value = self._members.get(name)
        if value is not None and not isinstance(value, str):
            raise InvalidValue(name, "a string")
        return value

    def number(self, name: str) -> int:
        value = self._members.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise InvalidValue(name, "a whole number")
        return value

    def id(self) -> MessageId | None:
        value = self._members.get("id")
        if value is None:
            return None
        is_name = isinstance(value, str | int) and not isinstance(value, bool)
        if not is_name or len(str(value)) > LONGEST_ID:
            raise InvalidValue(
                "id", f"a string or whole number of at most {LONGEST_ID} characters"
            )
        return cast("MessageId", value)

    def cursor(self) -> str:
        value = self.text("cursor")
        read_cursor(value)
        return value

    def choice(self, name: str, default: _Choice) -> _Choice:
        value = self.optional_text(name)
        return default if value is None else read_choice(name, value, type(default))

    def body(self) -> bytes | str:
        value = self._members.get("body")
        if isinstance(value, str):
            return value
        if isinstance(value, dict):
            return orjson.dumps(value)
        raise InvalidValue("body", "an object or a string")


def read_choice(field: str, value: str, choices: type[_Choice]) -> _Choice:
    """Read one of the choices. Raises `InvalidValue`, which names the field and lists
    them.
    """
    try:
        return choices(value)
    except ValueError:
        expected = f"one of {', '.join(choices)}"
        raise InvalidValue(field, expected, value) from None
