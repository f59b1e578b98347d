"""No test waits for ever."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable

import pytest

from tests.support.waiting import deadline, eventually


async def look_for_ever() -> None:
    await eventually(lambda: False)


def read_for_ever() -> None:
    reading, writing = os.pipe()
    try:
        os.read(reading, 1)
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize(
    "wait",
    [
        threading.Event().wait,
        read_for_ever,
        lambda: asyncio.run(asyncio.Event().wait()),
        lambda: asyncio.run(look_for_ever()),
    ],
    ids=["for a thread", "for a pipe", "in an event loop", "asking over and over"],
)
def test_a_wait_without_an_end_fails_the_test(wait: Callable[[], object]) -> None:
    with (
        pytest.raises(pytest.fail.Exception, match=r"no end after 0\.05 s"),
        deadline(0.05),
    ):
        wait()
