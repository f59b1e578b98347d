"""All that everybody can read of a hub: its open routes, and what these lead to.

As a program it prints what the hub in a directory published, each path with a digest:
``python -m tests.support.public_walk DIRECTORY``.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import re
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
from starlette.routing import Mount, Route

from hub.web.problem_types import ProblemType
from tests.support.application_client import client_of
from tests.support.services import Hub, open_hub

MOST_IDS = 8
"""Ids up to which paths are tried: more than there are."""
WALKED_ELSEWHERE = {
    "/assets/{name}",  # files of this tree, the same in every hub
    "/docs/api/{tag}",  # made of the program alone
    "/stream",  # endless; what it opens is tested with it
    "/hub/subscriptions/{token}",  # whoever has the token asked for it
    "/upstream/{token}",  # what other hubs are told, and nobody else
    "/playground/topics/{token}",  # whoever has the token made the run, or was given
    "/playground/callbacks/{token}",  # the address of it; both have its own texts alone
    "/identity",  # of a hub with a file for commands; tested with it
}
ABOUT_THE_HUB = ("/healthz", "/readyz", "/metrics", "/problems/{name}")
"""Paths that tell of the process; they are not part of what it publishes."""
ASKED = (
    "limit=50",
    "since=1970-01-01T00:00:00Z",
    "until=2999-01-01T00:00:00Z",
    "q=title&limit=50",
    "q=open",
)
"""Queries of OpenFeeder."""


@dataclass(frozen=True, slots=True)
class Answer:
    path: str
    status: int
    headers: dict[str, str]
    body: bytes  # uncompressed

    @property
    def text(self) -> str:
        return f"{self.headers}\n{self.body.decode()}"

    @property
    def stable(self) -> str:
        """A digest of what is said, without how long ago a page was made."""
        made = rb'"cached":(true|false),"cache_age_seconds":(null|\d+)'
        body = re.sub(made, b"", self.body)
        etag = self.headers.get("etag", "")
        said = f"{self.status} {etag}".encode() + body
        return hashlib.sha256(said).hexdigest()


OF_SESSIONS = ("/admin", "/account")
"""Paths of pages that require a session, and of the form that begins one."""


def public_routes(hub: Hub) -> list[Route]:
    """The routes that require no token."""
    return [
        route
        for route in hub.application.routes
        if isinstance(route, Route) and not isinstance(route, Mount)
        if "GET" in (route.methods or ()) and route.path not in WALKED_ELSEWHERE
        if not route.path.startswith(OF_SESSIONS)
    ]


def public_paths(routes: list[Route], asked: tuple[str, ...] = ASKED) -> set[str]:
    """The paths where a walk begins: those without ids, or with numbers for them."""
    numbers = range(1, MOST_IDS + 1)
    found = {
        route.path.replace("{id}", str(number))
        for route in routes
        for number in numbers
    }
    queries = {f"/openfeeder?{query}" for query in asked}
    named = {"/api/openapi.json"} | {f"/problems/{each}" for each in ProblemType}
    return {path for path in found if "{" not in path} | named | queries


async def walk(client: httpx2.AsyncClient, start: set[str]) -> AsyncIterator[Answer]:
    """Read all that can be read, following whatever leads to other pages of the hub."""
    waiting, seen = sorted(start), set(start)
    while waiting:
        path = waiting.pop()
        found = await client.get(path)
        body = found.content
        if body[:2] == b"\x1f\x8b":
            body = gzip.decompress(body)
        answer = Answer(path, found.status_code, dict(found.headers), body)
        yield answer
        for led in re.findall(r"http://hub\.example(/[^\s\"'<>;]*)", answer.text):
            link = led.replace("&amp;", "&").partition("#")[0]
            if link not in seen and link != "/hub" and not link.startswith("/stream"):
                seen.add(link)
                waiting.append(link)


async def digests(directory: Path) -> dict[str, str]:
    """Digests of all that the hub in a directory publishes, by path."""
    async with open_hub(directory) as hub, client_of(hub.application) as client:
        start = public_paths(public_routes(hub)) - set(ABOUT_THE_HUB)
        return {each.path: each.stable async for each in walk(client, start)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(digests(Path(sys.argv[1])))))
