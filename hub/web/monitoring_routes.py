"""``/healthz``, ``/readyz`` and ``/metrics``: for machines, without a token."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from hub.services import OperationsService
from hub.services.hub_operations import MetricsService
from hub.web.json_output import JsonObject, json_response
from hub.web.operation import JSON, TEXT, Operation, Routes
from protocols.prometheus import CONTENT_TYPE, render


class AliveJson(JsonObject):
    alive: bool


class ReadinessJson(JsonObject):
    """Whether the hub can work, and why not; ``warnings`` do not stop it."""

    ready: bool
    troubles: Sequence[str]
    warnings: Sequence[str]


class MonitoringRoutes(Routes):
    tag = "monitoring"

    def __init__(self, operations: OperationsService, metrics: MetricsService) -> None:
        self._operations = operations
        self._metrics = metrics

    @Operation(
        method="GET",
        path="/healthz",
        id="get_liveness",
        summary="Whether the process is alive",
        answers={200: {JSON: AliveJson}},
        problems=(),
    )
    async def alive(self, request: Request) -> Response:
        return json_response(AliveJson(alive=True))

    @Operation(
        method="GET",
        path="/readyz",
        id="get_readiness",
        summary="Whether the hub can work, and why not",
        answers={200: {JSON: ReadinessJson}, 503: {JSON: ReadinessJson}},
        problems=(),
    )
    async def ready(self, request: Request) -> Response:
        troubles = await self._operations.troubles()
        status = HTTPStatus.SERVICE_UNAVAILABLE if troubles else HTTPStatus.OK
        warnings = self._operations.warnings()
        return json_response(
            ReadinessJson(ready=not troubles, troubles=troubles, warnings=warnings),
            status,
        )

    @Operation(
        method="GET",
        path="/metrics",
        id="get_metrics",
        summary="Numbers for Prometheus, text format 0.0.4",
        answers={200: {TEXT: str}},
        problems=(503,),
    )
    async def metrics(self, request: Request) -> Response:
        return Response(
            render(await self._metrics.families()),
            headers={"Content-Type": CONTENT_TYPE},
        )
