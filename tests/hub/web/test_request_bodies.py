"""Bodies that do not come whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.requests import Request
from starlette.types import Message

from hub.web.problems import Problem
from hub.web.request_input import read_bytes


async def test_a_client_that_leaves_within_its_body_is_no_fault_of_the_hub() -> None:
    messages: Iterator[Message] = iter(
        [
            {"type": "http.request", "body": b"hub.mode", "more_body": True},
            {"type": "http.disconnect"},
        ]
    )

    async def receive() -> Message:
        return next(messages)

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(Problem) as caught:
        await read_bytes(request)
    assert (caught.value.status, caught.value.detail) == (400, "the body ended early")
