"""The administrator of every hub that tests put together or start."""

from __future__ import annotations

from base64 import b64encode

TOKEN = "a token for tests"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
ADMIN_LOGIN = b64encode(f"admin:{TOKEN}".encode()).decode()
"""As a password, for the header or a parameter ``authorization``."""
