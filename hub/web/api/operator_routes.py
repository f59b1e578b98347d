"""``/healthz`` and ``/readyz`` for machines; ``/api/health`` and the backup."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hub.services import OperationsService
from hub.web.decoding import Document, read_body
from hub.web.encoding import health_document, json_response


class Backup(Document):
    """The body of ``POST /api/db/backup``: a new file on the hub's machine."""

    destination: str


class OperationsRoutes:
    def __init__(self, operations: OperationsService) -> None:
        self._operations = operations

    def public_routes(self) -> list[Route]:
        return [
            Route("/healthz", self.alive, methods=["GET"]),
            Route("/readyz", self.ready, methods=["GET"]),
        ]

    def routes(self) -> list[Route]:
        return [
            Route("/health", self.health, methods=["GET"]),
            Route("/db/backup", self.backup, methods=["POST"]),
        ]

    async def alive(self, request: Request) -> Response:
        return json_response({"alive": True})

    async def ready(self, request: Request) -> Response:
        troubles = await self._operations.troubles()
        status = HTTPStatus.SERVICE_UNAVAILABLE if troubles else HTTPStatus.OK
        found = {
            "ready": not troubles,
            "troubles": troubles,
            "warnings": self._operations.warnings(),
        }
        return json_response(found, status)

    async def health(self, request: Request) -> Response:
        return json_response(health_document(await self._operations.health()))

    async def backup(self, request: Request) -> Response:
        body = await read_body(request, Backup)
        path = await self._operations.backup(body.destination)
        return json_response({"file": str(path)}, HTTPStatus.CREATED)
