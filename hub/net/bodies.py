"""Reading the body of an answer, never more than was agreed."""

from __future__ import annotations

from aiohttp import ClientResponse

from hub.errors import TooLarge
from hub.net.failures import AIOHTTP_FAILURES
from hub.net.inflation import Inflation


async def read_whole(response: ClientResponse, limit: int) -> bytes:
    """The decompressed body; raises TooLarge, BadAnswer and what aiohttp raises."""
    if (response.content_length or 0) > limit:
        raise TooLarge(limit)
    inflation = Inflation(response.headers.get("Content-Encoding", ""), limit)
    while piece := await response.content.readany():
        inflation.feed(piece)
    return inflation.finish()


async def read_beginning(response: ClientResponse, cut: int) -> tuple[bytes, bool]:
    """The first bytes, as they come, and whether that is all there is."""
    pieces: list[bytes] = []
    size = 0
    try:
        while piece := await response.content.readany():
            pieces.append(piece)
            size += len(piece)
            if size > cut:
                return b"".join(pieces)[:cut], False
    except AIOHTTP_FAILURES:
        return b"".join(pieces), False
    return b"".join(pieces), True
