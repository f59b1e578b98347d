"""``/sitemap.xml``, ``/robots.txt`` and ``/scp/``: for crawlers (SCP 0.1)."""

from __future__ import annotations

import hashlib
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from hub.collections.shelf import StoredCollection
from hub.services.collections import CollectionService, ServedCollection
from hub.web.conditions import is_current, not_modified, validators
from hub.web.decoding import Document, read_body
from hub.web.encoding import Members, json_response
from protocols.scp.collection import MEDIA_TYPE, CollectionType, Encoding

XML = "application/xml"


class CollectionsToBuild(Document):
    """The body of ``POST /api/scp/build``."""

    snapshots: bool = False


class ScpRoutes:
    def __init__(self, collections: CollectionService) -> None:
        self._collections = collections

    def public_routes(self) -> list[Route]:
        return [
            Route("/robots.txt", self.robots, methods=["GET"]),
            Route("/sitemap.xml", self.sitemap, methods=["GET"]),
            Route("/scp/{name}", self.collection, methods=["GET"]),
        ]

    def routes(self) -> list[Route]:
        return [Route("/scp/build", self.build, methods=["POST"])]

    async def robots(self, request: Request) -> Response:
        text = self._collections.robots()
        etag = hashlib.sha256(text.encode()).hexdigest()[:32]
        headers = {
            **validators(etag, None),
            "Cache-Control": "public, max-age=3600",
        }
        if is_current(request, etag, None):
            return not_modified(headers)
        return PlainTextResponse(text, headers=headers)

    async def sitemap(self, request: Request) -> Response:
        found = await self._collections.sitemap()
        headers = {
            **validators(found.etag, found.modified),
            "Cache-Control": "public, max-age=60",
        }
        if is_current(request, found.etag, found.modified):
            return not_modified(headers)
        return Response(found.body, media_type=XML, headers=headers)

    async def collection(self, request: Request) -> Response:
        served = await self._collections.find(request.path_params["name"])
        each = served.collection
        etag = f"sha256:{each.digest}"
        headers = _headers(served, etag)
        if is_current(request, etag, served.modified):
            return not_modified(headers)
        if each.encoding is not Encoding.PLAIN:
            headers["Content-Encoding"] = each.encoding.value
        _drop_other_ranges(request)
        return FileResponse(served.path, headers=headers, media_type=MEDIA_TYPE)

    async def build(self, request: Request) -> Response:
        body = await read_body(request, CollectionsToBuild)
        built = await self._collections.build(snapshots=body.snapshots)
        return json_response(
            {"collections": [_document(each) for each in built]}, HTTPStatus.CREATED
        )


def _drop_other_ranges(request: Request) -> None:
    """RFC 9110 14.2: "An origin server MUST ignore a Range header field that contains

    a range unit it does not understand."
    """
    unit, _, _ = request.headers.get("range", "").partition("=")
    if unit.strip().lower() != "bytes":
        headers = request.scope["headers"]
        request.scope["headers"] = [each for each in headers if each[0] != b"range"]


def _headers(served: ServedCollection, etag: str) -> dict[str, str]:
    """A file never changes under its name; a delta is to be asked for again, lest a

    reader goes on with one that is not the last.
    """
    is_delta = served.collection.type is CollectionType.DELTA
    demand = "must-revalidate" if is_delta else "immutable"
    return {
        **validators(etag, served.modified),
        "Cache-Control": f"public, max-age={served.max_age}, {demand}",
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
    }


def _document(each: StoredCollection) -> Members:
    return {
        "name": each.name,
        "section": each.section,
        "type": each.type,
        "generated": each.generated,
        "since": each.since,
        "expires": each.expires,
        "pages": each.pages,
        "size": each.size,
    }
