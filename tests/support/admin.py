"""The administrator of every hub that tests put together or start."""

from __future__ import annotations

from base64 import b64encode

TOKEN = "a token for tests"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
ADMIN_LOGIN = b64encode(f"admin:{TOKEN}".encode()).decode()
"""The administrator's login in base64, for the header or as ``authorization``."""
