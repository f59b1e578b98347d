"""A client of an application in this process."""

from __future__ import annotations

import httpx2
from starlette.types import ASGIApp


def client_of(application: ASGIApp) -> httpx2.AsyncClient:
    """What the application raises it answers with 500, as behind a server."""
    transport = httpx2.ASGITransport(application, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://hub.example")
