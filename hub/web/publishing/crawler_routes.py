"""``/sitemap.xml``, ``/robots.txt`` and ``/scp/``: for crawlers (SCP 0.1)."""

from __future__ import annotations

import hashlib

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from hub.services.served_collections import CollectionService, ServedCollection
from hub.web.not_modified import is_current, not_modified, validators
from hub.web.operation import TEXT, Operation, Routes
from protocols.scp.collection import MEDIA_TYPE, CollectionType, Encoding

XML = "application/xml"


class CrawlerRoutes(Routes):
    tag = "crawlers"

    def __init__(self, collections: CollectionService) -> None:
        self._collections = collections

    @Operation(
        method="GET",
        path="/robots.txt",
        id="get_robots_txt",
        summary="What crawlers may read, and the address of the sitemap",
        answers={200: {TEXT: str}},
    )
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

    @Operation(
        method="GET",
        path="/sitemap.xml",
        id="get_sitemap",
        summary="The sitemap of collections (SCP 0.1)",
        answers={200: {XML: str}, 304: None},
        problems=(404, 429),
    )
    async def sitemap(self, request: Request) -> Response:
        found = await self._collections.sitemap()
        headers = {
            **validators(found.etag, found.modified),
            "Cache-Control": "public, max-age=60",
        }
        if is_current(request, found.etag, found.modified):
            return not_modified(headers)
        return Response(found.body, media_type=XML, headers=headers)

    @Operation(
        method="GET",
        path="/scp/{name}",
        id="get_collection",
        summary="A collection of pages, in JSON lines, compressed",
        description="Never changes under its name. 410 if it is no longer kept.",
        answers={200: {MEDIA_TYPE: str}, 304: None},
        headers={
            200: {"ETag": "sha256: followed by the hash of the uncompressed bytes"}
        },
        problems=(404, 410, 429),
    )
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


def _drop_other_ranges(request: Request) -> None:
    """Drop a Range header whose unit is not bytes.

    RFC 9110 14.2: a server "MUST ignore a Range header field that contains a range unit
    it does not understand".
    """
    unit, _, _ = request.headers.get("range", "").partition("=")
    if unit.strip().lower() != "bytes":
        headers = request.scope["headers"]
        request.scope["headers"] = [each for each in headers if each[0] != b"range"]


def _headers(served: ServedCollection, etag: str) -> dict[str, str]:
    """Headers of a file, which never changes under its name.

    A delta must be revalidated, so that no reader continues with an outdated one.
    """
    is_delta = served.collection.type is CollectionType.DELTA
    demand = "must-revalidate" if is_delta else "immutable"
    return {
        **validators(etag, served.modified),
        "Cache-Control": f"public, max-age={served.max_age}, {demand}",
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
    }
