"""``/docs/api``: the OpenAPI document as pages for people, one for each tag.

A page is made of the document alone when it is first asked for, and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.offloading import run_in_thread
from hub.web.api.api_descriptions import MEANINGS, ApiReader
from hub.web.operation import HTML, Operation, Routes
from hub.web.page_rendering import answer_unless_known, render_page
from hub.web.problems import Problem

PATH = "/docs/api"


def _text(template: str, values: Callable[[], dict[str, Any]]) -> bytes:
    return bytes(render_page(template, section="API", path=PATH, **values()).body)


class ApiPages(Routes):
    tag = "pages"

    def __init__(self, document: Callable[[], Mapping[str, Any]], url: str) -> None:
        """Take ``document``, which returns the OpenAPI document, and the hub's ``url``.

        ``document`` is called once.
        """
        self._document = document
        self._url = url
        self._texts: dict[str, bytes] = {}

    @Operation(
        method="GET",
        path=PATH,
        id="get_api_index",
        summary="A page of all operations, by tag",
        answers={200: {HTML: str}, 304: None},
    )
    async def index(self, request: Request) -> Response:
        return await self._answer(request, "", "api_index.html", self._of_index)

    @Operation(
        method="GET",
        path=f"{PATH}/{{tag}}",
        id="get_api_page",
        summary="A page of the operations of one tag, with their types and examples",
        answers={200: {HTML: str}, 304: None},
        problems=(404, 429),
    )
    async def page(self, request: Request) -> Response:
        tag = request.path_params["tag"]
        if tag not in self._reader.tags():
            raise Problem(HTTPStatus.NOT_FOUND, "the interface has no such part")
        values = partial(self._of_tag, tag)
        return await self._answer(request, tag, "api_page.html", values)

    @cached_property
    def _reader(self) -> ApiReader:
        return ApiReader(self._document(), self._url)

    def _of_index(self) -> dict[str, Any]:
        reader = self._reader
        tags = reader.tags()
        return {
            "tags": [(tag, MEANINGS[tag], [*reader.operations(tag)]) for tag in tags]
        }

    def _of_tag(self, tag: str) -> dict[str, Any]:
        return {"page": self._reader.page(tag), "tags": self._reader.tags()}

    async def _answer(
        self,
        request: Request,
        name: str,
        template: str,
        values: Callable[[], dict[str, Any]],
    ) -> Response:
        if name not in self._texts:
            self._texts[name] = await run_in_thread(partial(_text, template, values))
        return answer_unless_known(request, self._texts[name])
