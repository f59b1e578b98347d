from __future__ import annotations

import asyncio
import gc
from weakref import ref

import pytest

from hub.runtime import garbage_collection


class Circle:
    """Refers to itself, as a connection and its request do to each other."""

    def __init__(self) -> None:
        self.itself = self


async def test_what_refers_to_itself_does_not_wait_until_millions_of_others_came() -> (
    None
):
    pauses: list[float] = []
    gone = ref(Circle())

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise asyncio.CancelledError

    gc.disable()
    try:
        with pytest.raises(asyncio.CancelledError):
            await garbage_collection.collect_periodically(sleep)
        assert gone() is None
    finally:
        gc.enable()
    assert pauses[0] == garbage_collection.EVERY
    assert pauses[1] >= garbage_collection.EVERY
