"""``POST /rpc``: pings of blogs by XML-RPC."""

from __future__ import annotations

import structlog
from starlette.requests import Request
from starlette.responses import Response

from hub.services.open_hub_requests import PingOutcome, PublishedUrl
from hub.services.publisher_notices import HintService
from hub.services.service_errors import TooManyWaiting
from hub.web.operation import Operation, Routes
from hub.web.request_input import check_type, read_bytes
from protocols.legacy_pings import (
    MOST_BYTES,
    Fault,
    FaultCode,
    ping_answer,
    read_call,
    read_ping,
    render_answer,
    render_fault,
)
from storage.errors import StorageError

RPC_PATH = "/rpc"
MEDIA_TYPE = "text/xml"
_OTHER_TYPES = ("", "application/xml")

log = structlog.get_logger()


class PingRoutes(Routes):
    tag = "pings"

    def __init__(self, hints: HintService) -> None:
        self._hints = hints

    @Operation(
        method="POST",
        path=RPC_PATH,
        id="ping_by_xml_rpc",
        summary="A blog's ping by XML-RPC: its feed is fetched soon",
        description="A body in XML: weblogUpdates.ping or weblogUpdates.extendedPing,"
        " with up to three URLs. Answered with a struct of flerror and message, or a"
        " fault.",
        answers={200: {MEDIA_TYPE: str}},
        problems=(408, 413, 415, 429),
    )
    async def answer(self, request: Request) -> Response:
        """ "Unless there's a lower-level error, always return 200 OK." """
        check_type(request, MEDIA_TYPE, *_OTHER_TYPES)
        body = await read_bytes(request, MOST_BYTES)
        try:
            answer = await self._ping(body)
        except Fault as fault:
            answer = render_fault(fault)
        except StorageError as error:
            log.error("ping_failed", error=str(error))
            answer = render_fault(
                Fault(FaultCode.OUT_OF_ORDER, "the hub cannot answer now")
            )
        return Response(answer, media_type=MEDIA_TYPE)

    async def _ping(self, body: bytes) -> bytes:
        urls = read_ping(read_call(body))
        try:
            pinged = await self._hints.take(urls)
        except TooManyWaiting as error:
            return render_answer(ping_answer(f"{error}", is_error=True))
        message, is_error = _outcome(pinged)
        return render_answer(ping_answer(message, is_error=is_error))


def _outcome(pinged: list[PublishedUrl]) -> tuple[str, bool]:
    """One outcome for all URLs of a blog: one URL that leads to a feed is enough."""
    outcomes = {each.outcome for each in pinged}
    if outcomes & {PingOutcome.FETCHED, PingOutcome.COALESCED}:
        return "Thanks for the ping; it is being fetched.", False
    if PingOutcome.LIMITED in outcomes:
        return (
            "Thanks for the ping; it was pinged very often and will be fetched later.",
            False,
        )
    return pinged[0].reason, True
