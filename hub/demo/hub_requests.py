"""Requests to the hub's ``/hub``, as a publisher or subscriber makes them."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlencode, urlsplit

ANSWER_SECONDS = 30.0


class DemoFailed(Exception):
    """The demonstration could not begin, or broke off."""


async def ask_hub(url: str, expected: HTTPStatus, fields: Mapping[str, str]) -> None:
    """Send a request to a hub; raises `DemoFailed` if it answers another status."""
    status, answer = await asyncio.to_thread(_post, url, fields)
    if status != expected:
        raise DemoFailed(f"the hub answered {status} to {fields['hub.mode']}: {answer}")


def _post(url: str, fields: Mapping[str, str]) -> tuple[int, str]:
    netloc = urlsplit(url).netloc
    connection = http.client.HTTPConnection(netloc, timeout=ANSWER_SECONDS)
    try:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/hub", urlencode(fields), kind)
        response = connection.getresponse()
        return response.status, response.read(1_000).decode(errors="replace")
    finally:
        connection.close()
