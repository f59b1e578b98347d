"""The administrator's token: a setting, or a 0600 file beside the database."""

from __future__ import annotations

import secrets
from pathlib import Path

from hub.private_files import write_private

FILE_NAME = "admin-token"


class TokenUnreadable(Exception):
    """The token file exists but cannot be used, or cannot be made."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"admin token {path}: {reason}")


def token_file(database: Path) -> Path:
    """The path of the token file for the hub with that database."""
    return database.parent / FILE_NAME


def read_token(path: Path) -> str | None:
    """The token in the file, None if there is no file. Raises `TokenUnreadable`."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise TokenUnreadable(path, str(error)) from error
    if not token:
        raise TokenUnreadable(path, "the file is empty; delete it to get a new token")
    return token


def ensure_token(path: Path) -> str:
    """The token in the file, which is made first if there is none.

    The file appears whole or not at all. Raises `TokenUnreadable`.
    """
    token = read_token(path)
    if token is None:
        token = secrets.token_urlsafe(24)
        try:
            write_private(path, token)
        except OSError as error:
            raise TokenUnreadable(path, str(error)) from error
    elif path.stat().st_mode & 0o077:
        path.chmod(0o600)
    return token
