"""A client of an application in this process."""

from __future__ import annotations

import httpx2
from starlette.types import ASGIApp


def client_of(
    application: ASGIApp,
    address: str = "127.0.0.1",
    port: int = 123,
    base_url: str = "http://hub.example",
) -> httpx2.AsyncClient:
    """A client that gets a 500 for what the application raises, as from a server."""
    transport = httpx2.ASGITransport(
        application, raise_app_exceptions=False, client=(address, port)
    )
    return httpx2.AsyncClient(transport=transport, base_url=base_url)
