"""``hub.mode=retrieve``, ``search`` and ``replay``: reading back stored entries."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from urllib.parse import urlencode

from starlette.responses import Response

from hub.delivery.notifications import NotificationBody
from hub.runtime.offloading import run_by_size
from hub.services import SearchService, Services
from hub.services.entry_notifications import render
from hub.services.entry_retrieval import (
    DEFAULT_COUNT,
    MOST_COUNT,
    EntryRange,
    RedeliveryService,
    RetrievalRequest,
    RetrievalService,
    Selection,
)
from hub.services.service_errors import NotReadable
from hub.web.not_modified import is_current, not_modified, validators
from hub.web.problems import Problem
from hub.web.rate_limits import RateLimits
from hub.web.request_input import LARGEST_ID, combined_field
from hub.web.superfeedr.answers import SANDBOXED, json_bytes_answer
from hub.web.superfeedr.calls import Call, Effect, Mode, Modes
from hub.web.superfeedr.listing import read_search, search_of
from hub.web.superfeedr.retrieval_streams import Streaming
from protocols.http import HeaderLink, format_link_header, quality
from protocols.live.live_messages import BodyFormat
from protocols.live.message_encoding import EVENT_STREAM
from protocols.protocol_errors import InvalidValue
from protocols.superfeedr.parameters import Parameters
from storage.records import TokenScope


class Wait(StrEnum):
    """How an answer goes on after the stored entries, with new ones as they come."""

    STREAM = "stream"
    POLL = "poll"


def retrieval_modes(services: Services, limits: RateLimits) -> Modes:
    retrieval = Retrieving(
        services.retrieval,
        services.search,
        services.redeliveries,
        Streaming(services.live, services.retrieval, limits),
    )
    return {
        "retrieve": Mode(answer=retrieval.retrieve, scope=TokenScope.RETRIEVE),
        "search": Mode(answer=retrieval.search, scope=TokenScope.RETRIEVE),
        "replay": Mode(
            answer=retrieval.replay, scope=TokenScope.RETRIEVE, effect=Effect.SENDS
        ),
    }


class Retrieving:
    def __init__(
        self,
        retrieval: RetrievalService,
        search: SearchService,
        redeliveries: RedeliveryService,
        streaming: Streaming,
    ) -> None:
        self._retrieval = retrieval
        self._search = search
        self._redeliveries = redeliveries
        self._streaming = streaming

    async def retrieve(self, call: Call) -> Response:
        """200 with a feed, newest entries first; or a stream, if one is asked for.

        Unless a format is asked for, a topic that is no feed is returned unchanged.
        """
        page = read_page(call.parameters)
        format = call.format or BodyFormat.ATOM
        wait = call.parameters.choice("wait", Wait)
        selection = await self._select(call)
        if accepts_event_stream(call):
            return await self._streaming.events(call, selection, page)
        if wait is Wait.STREAM:
            return await self._streaming.documents(call, selection, page, format)
        if call.format is None and wait is None:
            own = await self._retrieval.own_document(selection)
            if own is not None:
                return await answer_own_document(call, own)
        if wait is Wait.POLL:
            document = await self._streaming.poll(call, selection, page, format)
        else:
            collected = await self._retrieval.collect(selection, page)
            document = await render(collected, format)
        return await answer_document(call, document, format)

    async def search(self, call: Call) -> Response:
        """200 with a feed of the entries that match, even if there are none; a link
        ``next`` leads to older ones."""
        query = call.parameters.required("query", "words to search for")
        format, count = call.format or BodyFormat.ATOM, read_count(call.parameters)
        below = call.parameters.number("cursor", 0, least=0, most=LARGEST_ID) or None
        found = await self._search.find(call.principal, query, count, below)
        document = await render(found, format)
        answer = await answer_document(call, document, format)
        if found.next is not None:
            more = {"query": query, "count": count, "format": format}
            href = f"{found.topic}&{urlencode({**more, 'cursor': found.next})}"
            link = HeaderLink(href=href, rel="next")
            answer.headers["Link"] = format_link_header([link])
        return answer

    async def replay(self, call: Call) -> Response:
        """204 once the callback has taken its last entries; with ``async`` at once."""
        given = call.parameters
        topic, callback = given.topic(), given.callback()
        count = read_count(given, default=1)
        is_async = given.flag("async")
        try:
            await self._redeliveries.replay(
                call.principal, topic, callback, count, waits=not is_async
            )
        except NotReadable as error:
            raise _not_found(error) from error
        return Response(status_code=HTTPStatus.NO_CONTENT)

    async def _select(self, call: Call) -> Selection:
        try:
            return await self._retrieval.select(
                call.principal, read_wanted(call.parameters)
            )
        except NotReadable as error:
            raise _not_found(error) from error


def read_wanted(given: Parameters) -> RetrievalRequest:
    """Return what to retrieve; a topic takes precedence over a callback.

    Clients send callbacks that they never subscribed. Raises `InvalidValue`, and
    `NotReadable` for a search that can find nothing.
    """
    if given.all("hub.topic"):
        return RetrievalRequest(topic=given.topic())
    if given.all("hub.callback") and not given.one("hub.callback").startswith("{"):
        return RetrievalRequest(callback=given.callback())
    keys = search_of(given, "hub.callback")
    if not keys:
        return RetrievalRequest()
    search = read_search(keys, "hub.callback")
    if search is None:
        raise NotReadable("hub.callback", "the account has no such subscription")
    return RetrievalRequest(search=search)


def read_page(given: Parameters) -> EntryRange:
    """The entries to retrieve, as the parameters say. Raises `InvalidValue`."""
    return EntryRange(
        count=read_count(given),
        before=given.one("before").strip(),
        after=given.one("after").strip(),
    )


def read_count(given: Parameters, default: int = DEFAULT_COUNT) -> int:
    """The number of entries to retrieve. Raises `InvalidValue`."""
    return given.number("count", default, least=1, most=MOST_COUNT)


def accepts_event_stream(call: Call) -> bool:
    """Whether ``Accept`` names event streams, as an EventSource does."""
    return quality(combined_field(call.request.headers, "accept"), EVENT_STREAM) > 0


async def answer_document(
    call: Call, document: NotificationBody, format: BodyFormat
) -> Response:
    """Answer with a document, or 304 if the client has it.

    Raises `InvalidValue` for a bad name of a JSONP function.
    """
    if format is BodyFormat.JSON:
        answer = json_bytes_answer(call, document.body)
    else:
        if call.parameters.one("callback"):
            raise InvalidValue("callback", "format=json with it")
        answer = Response(
            document.body, headers={"Content-Type": document.content_type}
        )
    hashing = partial(_etag, answer.body)
    etag = await run_by_size(hashing, len(answer.body))
    if call.request.method == "GET" and is_current(call.request, etag, None):
        return not_modified(validators(etag, None))
    answer.headers.update(validators(etag, None))
    return answer


async def answer_own_document(call: Call, document: NotificationBody) -> Response:
    """Answer with a publisher's own document; browsers run no script of it.

    Raises `InvalidValue` for a bad name of a JSONP function.
    """
    answer = await answer_document(call, document, BodyFormat.ATOM)
    answer.headers.update(SANDBOXED)
    return answer


def _etag(body: bytes | memoryview) -> str:
    return hashlib.sha256(body).hexdigest()[:16]


def _not_found(error: NotReadable) -> Problem:
    return Problem(HTTPStatus.NOT_FOUND, str(error), field=error.field)
