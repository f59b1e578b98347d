"""A webhook receiver for one subscription, on the loopback address.

It takes one request at a time, with a deadline and a size limit, and returns what
arrived as lines to print.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

from hub.cli.wording import plural, printable
from hub.runtime.clock import SystemClock
from protocols.websub.signatures import verify, verify_webhook

LARGEST_DELIVERY = 64 * 1024 * 1024
REQUEST_SECONDS = 10.0
POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ReceivedLine:
    """A line to print: a delivery, or what is wrong with one.

    ``document`` is the delivery as programs get it.
    """

    text: str
    is_delivery: bool
    document: Mapping[str, object] = field(default_factory=dict)


class Receiver:
    """Listens from its creation, which raises `OSError` if it cannot."""

    def __init__(self, port: int, secret: str) -> None:
        self._secret = secret
        self._lines: list[ReceivedLine] = []
        self.ended = ""
        """The reason that the hub gave when it ended the subscription; "" before."""
        self.path = f"/{secrets.token_urlsafe(12)}"
        self._server = HTTPServer(("127.0.0.1", port), self._handler())
        self._server.timeout = POLL_SECONDS
        self.url = f"http://127.0.0.1:{self._server.server_port}{self.path}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.server_close()

    def receive(self) -> list[ReceivedLine]:
        """Answer one request, if one comes soon; return the lines to print for it."""
        self._server.handle_request()
        lines, self._lines = self._lines, []
        return lines

    def accept(self, body: bytes, headers: Message) -> HTTPStatus:
        """Check a delivery, and keep a line about it; return the status to answer."""
        now = SystemClock().now()
        at = f"{now:%H:%M:%S}"
        if not self._is_genuine(body, headers, now.timestamp()):
            self._lines.append(
                ReceivedLine(
                    f"{at}  a delivery with a wrong signature was ignored", False
                )
            )
            # WebSub §7.1: "MUST still return a 2xx success response code".
            return HTTPStatus.ACCEPTED
        kind = headers.get("Content-Type", "")
        mark = "test  " if headers.get("Fanfare-Test") else ""
        text = f"{at}  {mark}{describe(body, kind)}"
        document = _document(body, kind, now)
        self._lines.append(ReceivedLine(text, True, document))
        return HTTPStatus.NO_CONTENT

    def _is_genuine(self, body: bytes, headers: Message, now: float) -> bool:
        """Return whether both signatures are right, WebSub's and Standard Webhooks'.

        The latter also says when the delivery was sent.
        """
        is_signed = verify(headers.get("X-Hub-Signature", ""), self._secret, body)
        return is_signed and verify_webhook(
            headers.get("webhook-signature", ""),
            self._secret,
            id=headers.get("webhook-id", ""),
            timestamp=headers.get("webhook-timestamp", ""),
            body=body,
            now=now,
        )

    def hear_denial(self, query: str) -> HTTPStatus:
        """Note that the hub ended the subscription; return the status to answer."""
        values = parse_qs(query)
        if values.get("hub.mode") != ["denied"]:
            return HTTPStatus.NOT_FOUND
        self.ended = values.get("hub.reason", ["no reason given"])[0]
        return HTTPStatus.OK

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            timeout = REQUEST_SECONDS

            def do_POST(self) -> None:
                length = self.headers.get("Content-Length", "")
                if urlsplit(self.path).path != receiver.path:
                    self._answer(HTTPStatus.NOT_FOUND)
                elif not length.isdigit() or int(length) > LARGEST_DELIVERY:
                    self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
                else:
                    body = self.rfile.read(int(length))
                    self._answer(receiver.accept(body, self.headers))

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                known = parts.path == receiver.path
                self._answer(
                    receiver.hear_denial(parts.query) if known else HTTPStatus.NOT_FOUND
                )

            def _answer(self, status: HTTPStatus) -> None:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: what matters is told as lines."""

        return Handler


def _document(body: bytes, kind: str, now: datetime) -> dict[str, object]:
    """Return a delivery for programs; ``body`` is an object if it is JSON."""
    is_json = kind.startswith("application/json")
    content = json.loads(body) if is_json else body.decode(errors="replace")
    return {"at": f"{now:%Y-%m-%dT%H:%M:%SZ}", "content_type": kind, "body": content}


def describe(body: bytes, content_type: str) -> str:
    """Return a delivery in words: its entries, or the status it brings."""
    if not content_type.startswith("application/json"):
        return f"{plural(len(body), 'byte')} of {printable(content_type)}"
    document = json.loads(body)
    items = document.get("items")
    if items is None:
        status = document.get("status", {})
        return f"status {status.get('code')} {printable(str(status.get('http', '')))}"
    return "\n          ".join(map(_entry_line, items)) or "no entries"


def _entry_line(item: dict[str, object]) -> str:
    title = printable(str(item.get("title") or item.get("id") or "(untitled)"))
    link = printable(str(item.get("permalinkUrl") or ""))
    return f"{title}  {link}".rstrip()
