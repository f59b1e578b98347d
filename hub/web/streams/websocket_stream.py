"""``GET /stream`` as a websocket: JSON messages in both directions."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import structlog
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from hub.limits.token_bucket import Rate, TokenBucket
from hub.live.live_connections import (
    Interest,
    LiveConnection,
    NotSubscribed,
    TooManyTopics,
    UnknownTopic,
)
from hub.live.prepared_message import PreparedMessage
from hub.runtime.clock import Clock
from hub.services.live_access import LiveService
from hub.services.token_authentication import Principal
from hub.web.authentication import Authenticator
from hub.web.problems import Problem
from hub.web.rate_limits import RateLimits
from hub.web.server.websocket_protocol import websocket_of
from hub.web.streams.stream_requests import (
    find_principal,
    read_stream_request,
    refuse_without_room,
)
from protocols.live.live_messages import (
    FAILED,
    NOT_AUTHORIZED,
    NOT_TEXT,
    POLICY,
    ErrorMessage,
    LiveErrorCode,
    MessageId,
    Subscribe,
    Unsubscribe,
)
from protocols.live.message_decoding import InvalidMessage, read_client_message
from protocols.protocol_errors import InvalidValue
from storage.errors import StorageError

MESSAGES = Rate(per_second=50.0, burst=2_000.0)
"""What a client may send. The burst suffices to subscribe to all topics that it may."""

log = structlog.get_logger()


class MessageStream:
    """An ASGI application. Errors in a client's message are reported by a message."""

    def __init__(
        self,
        live: LiveService,
        authenticator: Authenticator,
        clock: Clock,
        limits: RateLimits,
    ) -> None:
        self._live = live
        self._authenticator = authenticator
        self._limits = limits
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises `Problem` and `StorageError` before the handshake, then nothing."""
        writer = websocket_of(scope)
        socket = WebSocket(scope, receive, send)
        principal, is_refused = await self._principal(HTTPConnection(scope))
        address = self._limits.client(socket)
        client = self._live.client(principal, may_ask=True, address=address)
        refuse_without_room(self._live.stream, client)
        await socket.accept()
        # After the handshake, as browsers tell no reason why a handshake has failed.
        if is_refused or not self._live.may_listen(principal):
            writer.close(NOT_AUTHORIZED)
            return
        async with asyncio.TaskGroup() as tasks:
            connected = self._live.stream.connected(writer, tasks, "websocket", client)
            with connected as connection:
                conversation = Conversation(
                    self._live, connection, principal, self._clock
                )
                await conversation.hold(socket)

    async def _principal(
        self, request: HTTPConnection
    ) -> tuple[Principal | None, bool]:
        """Return who connects, and whether the client showed an invalid token."""
        try:
            return await find_principal(request, self._authenticator), False
        except Problem as problem:
            if problem.status is not HTTPStatus.UNAUTHORIZED:
                raise
            return None, True


class Conversation:
    """The messages that one client sends, and what it is answered."""

    def __init__(
        self,
        live: LiveService,
        connection: LiveConnection,
        principal: Principal | None,
        clock: Clock,
    ) -> None:
        self._live = live
        self._connection = connection
        self._writer = connection.writer
        self._principal = principal
        self._clock = clock
        self._bucket = TokenBucket(MESSAGES, clock.monotonic())

    async def hold(self, socket: WebSocket) -> None:
        """Serve the client until it disconnects or the hub ends the connection."""
        try:
            # Not the socket, which would keep the parsed query for its whole life.
            await self._begin(HTTPConnection(socket.scope))
            while (message := await socket.receive())["type"] == "websocket.receive":
                text = message.get("text")
                if text is None:
                    return self._writer.close(NOT_TEXT)
                if self._is_too_much():
                    return self._writer.close(POLICY)
                await self._hear(text)
        except StorageError as error:
            log.warning("live_request_failed", error=str(error))
            self._writer.close(FAILED)

    async def _begin(self, request: HTTPConnection) -> None:
        """Listen to the topics that the URL names; they all begin together."""
        try:
            requests = read_stream_request(request).requests()
        except InvalidValue as error:
            return self._tell(_invalid(error))
        interests = [
            interest
            for request in requests
            if (interest := await self._find(request)) is not None
        ]
        if interests:
            await self._subscribe(interests)

    async def _hear(self, text: str) -> None:
        try:
            message = read_client_message(text)
        except InvalidMessage as error:
            return self._tell(_invalid(error, error.id))
        if isinstance(message, Unsubscribe):
            self._unsubscribe(message)
        elif (interest := await self._find(message)) is not None:
            await self._subscribe([interest])

    async def _find(self, request: Subscribe) -> Interest | None:
        try:
            return await self._live.find(self._principal, request)
        except InvalidValue as error:
            self._tell(_invalid(error, request.id, request.topic))
        except UnknownTopic as error:
            self._refuse(LiveErrorCode.UNKNOWN_TOPIC, error, request)
        return None

    async def _subscribe(self, interests: list[Interest]) -> None:
        try:
            await self._live.subscribe(self._connection, interests)
        except TooManyTopics as error:
            first = interests[0]
            self._tell(
                ErrorMessage(
                    error=LiveErrorCode.TOO_MANY_TOPICS,
                    reason=str(error),
                    id=first.id,
                    topic=first.key.topic,
                )
            )

    def _unsubscribe(self, request: Unsubscribe) -> None:
        try:
            self._live.unsubscribe(self._connection, request)
        except InvalidValue as error:
            self._tell(_invalid(error, request.id, request.topic))
        except NotSubscribed as error:
            self._refuse(LiveErrorCode.NOT_SUBSCRIBED, error, request)

    def _refuse(
        self, code: LiveErrorCode, error: Exception, request: Subscribe | Unsubscribe
    ) -> None:
        self._tell(
            ErrorMessage(
                error=code,
                reason=str(error),
                id=request.id,
                topic=request.topic,
                field="topic",
            )
        )

    def _tell(self, message: ErrorMessage) -> None:
        self._writer.write(PreparedMessage(message))

    def _is_too_much(self) -> bool:
        return self._bucket.take(self._clock.monotonic()) > 0


def _invalid(
    error: InvalidValue, id: MessageId | None = None, topic: str | None = None
) -> ErrorMessage:
    return ErrorMessage(
        error=LiveErrorCode.INVALID,
        reason=str(error),
        id=id,
        topic=topic,
        field=error.field,
    )
