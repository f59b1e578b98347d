"""``/metrics``: for Prometheus. Numbers only, so it takes no token."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hub.services.metrics import MetricsService
from protocols.prometheus import CONTENT_TYPE, render


class MetricsRoutes:
    def __init__(self, metrics: MetricsService) -> None:
        self._metrics = metrics

    def routes(self) -> list[Route]:
        return [Route("/metrics", self.show, methods=["GET"])]

    async def show(self, request: Request) -> Response:
        return Response(
            render(await self._metrics.families()),
            headers={"Content-Type": CONTENT_TYPE},
        )
