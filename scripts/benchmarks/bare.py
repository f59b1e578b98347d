"""The floors: the least that sends the same requests, with nothing kept or decided.

One aiohttp session, as many workers as the hub has, a deadline on each request, every
answer read: what somebody would write who only wants to send them.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass

import aiohttp

_DEADLINE = aiohttp.ClientTimeout(total=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    url: str
    secret: bytes


def bare_session(*, connections: int) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=connections)
    return aiohttp.ClientSession(
        connector=connector, timeout=_DEADLINE, cookie_jar=aiohttp.DummyCookieJar()
    )


async def get_all(
    session: aiohttp.ClientSession, urls: Sequence[str], etag: str, workers: int
) -> None:
    """Ask for every URL once, conditionally."""
    waiting = iter(urls)
    headers = {"If-None-Match": etag, "Accept-Encoding": "gzip"}

    async def work() -> None:
        for url in waiting:
            async with session.get(url, headers=headers) as answer:
                await answer.read()

    await _together(workers, work)


async def get_each(
    session: aiohttp.ClientSession, urls: Sequence[str], workers: int
) -> None:
    """Ask for every URL once."""
    waiting = iter(urls)

    async def work() -> None:
        for url in waiting:
            async with session.get(url) as answer:
                await answer.read()

    await _together(workers, work)


async def post_all(
    session: aiohttp.ClientSession,
    deliveries: Sequence[Delivery],
    body: bytes,
    content_type: str,
    workers: int,
) -> None:
    """Deliver one body to every callback, signed with its secret."""
    waiting = iter(deliveries)

    async def work() -> None:
        for each in waiting:
            digest = hmac.new(each.secret, body, hashlib.sha256).hexdigest()
            headers = {
                "Content-Type": content_type,
                "X-Hub-Signature": f"sha256={digest}",
            }
            async with session.post(each.url, data=body, headers=headers) as answer:
                await answer.read()

    await _together(workers, work)


async def _together(
    workers: int, work: Callable[[], Coroutine[None, None, None]]
) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())
