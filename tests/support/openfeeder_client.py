"""A reader of OpenFeeder 1.0, written from its specification alone.

It shares no code with the hub. Every document that it reads is checked against a
schema, which was written from the same text.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2
import jsonschema

FOLDER = Path(__file__).parents[1] / "data" / "openfeeder"
Json = dict[str, Any]


@cache
def _validator(name: str) -> Any:
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    return jsonschema.Draft202012Validator(schema, format_checker=checker)


def faults(name: str, document: object) -> list[str]:
    """Where a document breaks the specification; ``name``: that of its schema."""
    return [
        f"{each.json_path}: {each.message}"
        for each in _validator(name).iter_errors(document)
    ]


@dataclass
class OpenFeederClient:
    """A reader with a copy of the site: ``pages``, by URL."""

    http: httpx2.AsyncClient
    base: str = "http://hub.example"
    key: str = ""
    pages: dict[str, Json] = field(default_factory=dict)
    token: str = "1970-01-01T00:00:00Z"  # where the next synchronisation begins
    endpoint: str = ""
    deleted: dict[str, str] = field(default_factory=dict)
    tracks_deletions: bool = True

    async def discover(self) -> Json:
        answer = await self._get(urljoin(self.base, "/.well-known/openfeeder.json"), {})
        document: Json = answer.json()
        assert faults("discovery", document) == []
        self.endpoint = urljoin(self.base, document["feed"]["endpoint"])
        return document

    async def walk(self, limit: int = 50) -> list[str]:
        """Read the whole index and every page in it; return their URLs in order."""
        urls: list[str] = []
        page, total = 1, 1
        while page <= total:
            index = await self.ask("index", page=str(page), limit=str(limit))
            total = index["total_pages"]
            urls += [each["url"] for each in index["items"]]
            page += 1
        self.pages = {url: await self.fetch(url) for url in urls}
        return urls

    async def sync(self) -> None:
        """Continue from where it was, until there is nothing more."""
        while True:
            before = self.token
            await self.sync_once()
            if self.token == before:
                return

    async def sync_once(self) -> Json:
        answer = await self.ask("sync", since=self.token)
        sync = answer["sync"]
        for each in answer["added"] + answer["updated"]:
            self.pages[each["url"]] = await self.fetch(each["url"])
        for tombstone in answer["deleted"]:
            self.pages.pop(tombstone["url"], None)
            self.deleted[tombstone["url"]] = tombstone["deleted_at"]
        # "opaque cursor that encodes the as_of timestamp"
        assert json.loads(base64.b64decode(sync["sync_token"]))["t"] == sync["as_of"]
        counted = {name: len(answer[name]) for name in ("added", "updated", "deleted")}
        assert sync["counts"] == counted
        self.tracks_deletions = sync.get("deleted_tracking", True)
        self.token = sync["sync_token"]
        return answer

    async def fetch(self, url: str) -> Json:
        page = await self.ask("page", url=url, limit="50")
        assert page["url"] == url
        ids = [each["id"] for each in page["chunks"]]
        assert len(ids) == len(set(ids)) == page["meta"]["returned_chunks"]
        return page

    async def ask(self, schema: str, **query: str) -> Json:
        if not self.endpoint:
            await self.discover()
        answer = await self._get(self.endpoint, query)
        assert answer.status_code == 200, answer.text
        document: Json = answer.json()
        assert faults(schema, document) == []
        return document

    async def _get(self, url: str, query: dict[str, str]) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        answer = await self.http.get(url, params=query, headers=headers)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-openfeeder"] == "1.0"
        assert answer.headers["x-openfeeder-cache"] in ("HIT", "MISS")
        return answer
