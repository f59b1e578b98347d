"""A process that makes one request under uvloop and prints the status or the failure.

It runs as ``python -m tests.support.one_delivery PORT SECONDS``; a test can stop it.
"""

from __future__ import annotations

import asyncio
import sys

import uvloop

from hub.http.client_connections import ClientConnection
from hub.http.exchange import Purpose, Request, ResponseLimits
from hub.http.network_errors import NetworkError

HEAD = b"POST /hook HTTP/1.1\r\nHost: you.example\r\n\r\n"
REQUEST = Request(
    method="POST",
    url="http://you.example/hook",
    purpose=Purpose.CALLBACK,
    limits=ResponseLimits(seconds=60, idle_seconds=60),
    cuts_body=True,
)


async def open_to(port: int) -> ClientConnection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(
        lambda: ClientConnection(loop), "127.0.0.1", port
    )
    return connection


async def deliver(port: int, seconds: float) -> str:
    connection = await open_to(port)
    deadline = asyncio.get_running_loop().time() + seconds
    try:
        await connection.exchange(REQUEST, HEAD, deadline)
    except NetworkError as error:
        return error.reason
    finally:
        connection.close()
    return str(connection.reception.status)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(runner.run(deliver(int(sys.argv[1]), float(sys.argv[2]))))
