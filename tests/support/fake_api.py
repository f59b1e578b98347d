"""A hub that only answers: canned documents by method and path, requests kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass
class FakeApi:
    """Set ``answers["GET /api/feeds"]``; the query is not part of the key. A document
    may be a function of the request's."""

    url: str = ""
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    requests: list[tuple[str, Any]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        self.requests.append((f"{method} {target}", json.loads(body or b"null")))
        missing = (404, {"title": "Not Found", "detail": f"no {target}"})
        status, document = self.answers.get(
            f"{method} {target.partition('?')[0]}", missing
        )
        if callable(document):
            document = document(json.loads(body or b"null"))
        raw = document if isinstance(document, bytes) else json.dumps(document).encode()
        return status, raw


@contextmanager
def serving(api: FakeApi) -> Iterator[FakeApi]:
    """Serve on a loopback port until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            api.tokens.append(self.headers.get("Authorization", ""))
            status, body = api.answer(self.command, self.path, self.rfile.read(length))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_DELETE = _respond

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        api.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()
