"""``/api/lists``: lists of feeds, read for whoever may want to add these."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hub.services.lists import ListService
from hub.web.decoding import Document, read_body
from hub.web.encoding import Members, json_response
from protocols.errors import InvalidValue
from protocols.outline_walk import DEEPEST, MOST_LISTS, OutlineWalk

PART = 5_000
"""Feeds in one answer."""


class ListsToRead(Document):
    """The body of ``POST /api/lists``; ``depth``: how deep these are themselves,
    ``skip``: feeds that are known from the parts before."""

    urls: list[str]
    depth: int = 0
    skip: int = 0


class ListRoutes:
    def __init__(self, lists: ListService) -> None:
        self._lists = lists

    def routes(self) -> list[Route]:
        return [Route("/lists", self.read, methods=["POST"])]

    async def read(self, request: Request) -> Response:
        body = await read_body(request, ListsToRead)
        if not 1 <= len(body.urls) <= MOST_LISTS:
            raise InvalidValue("urls", f"1 to {MOST_LISTS} of them")
        if not 0 <= body.depth <= DEEPEST:
            raise InvalidValue("depth", f"0 to {DEEPEST}")
        if body.skip < 0:
            raise InvalidValue("skip", "a number of feeds")
        walk = await self._lists.part(body.urls, depth=body.depth, skip=body.skip)
        return json_response(walk_document(walk, body.skip))


def walk_document(walk: OutlineWalk, skip: int) -> Members:
    end = skip + PART
    return {
        "feeds": [
            {
                "url": feed.url,
                "title": feed.title,
                "description": feed.description,
                "section": feed.section,
            }
            for feed in walk.feeds[skip:end]
        ],
        "total": len(walk.feeds),
        "next": end if end < len(walk.feeds) else None,
        "lists": [
            {"url": each.url, "feeds": each.feeds, "trouble": each.trouble}
            for each in walk.lists
        ],
        "notes": walk.notes,
    }
