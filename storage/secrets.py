"""Encryption of what must not be readable in a copied database file.

The key is in a file of its own beside the database, readable only by its owner. It
protects a database that leaves the machine without the key, not against the machine's
root.
"""

from __future__ import annotations

import hashlib
import os
from base64 import b64decode, b64encode
from functools import lru_cache
from hmac import compare_digest, digest
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from storage.errors import DatabaseUnusable, StorageError

_KEY_BYTES = 32
_NONCE_BYTES = 12
_TEXTS_KEPT = 16_384
"""Decrypted texts kept in memory, where the key is, too: each record of a topic is
signed with the secrets of the same subscriptions."""


class SecretBox:
    """Encrypts short texts with AES-256-GCM. The empty text stays empty."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)
        self._opened = lru_cache(_TEXTS_KEPT)(self._open)
        self.key_check = hashlib.sha256(b"fanfare key check" + key).hexdigest()[:32]
        self._fingerprint_key = hashlib.sha256(b"fanfare fingerprint" + key).digest()

    def encrypt(self, text: str) -> str:
        if not text:
            return ""
        nonce = os.urandom(_NONCE_BYTES)
        return b64encode(
            nonce + self._cipher.encrypt(nonce, text.encode(), None)
        ).decode("ascii")

    def decrypt(self, token: str) -> str:
        """Raises `StorageError` if the token was not made with this key."""
        return self._opened(token) if token else ""

    def _open(self, token: str) -> str:
        sealed = b64decode(token)
        nonce, encrypted = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return self._cipher.decrypt(nonce, encrypted, None).decode()
        except InvalidTag as error:
            raise StorageError("a stored secret does not fit the key file") from error

    def seal(self, data: bytes) -> bytes:
        """Like `encrypt`, for data that is long and seldom read."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, data, None)

    def unseal(self, sealed: bytes) -> bytes:
        """Raises `StorageError` if it was not sealed with this key."""
        try:
            return self._cipher.decrypt(
                sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None
            )
        except InvalidTag as error:
            raise StorageError("what is stored does not fit the key file") from error

    def fingerprint(self, text: str) -> bytes:
        """A hash that is the same for the same text and key, and reveals nothing
        without the key; b"" for the empty text."""
        if not text:
            return b""
        return digest(self._fingerprint_key, text.encode(), "sha256")[:16]

    def is_same(self, token: str, other: str) -> bool:
        """Whether two tokens encrypt the same text. False if one was made with another
        key."""
        try:
            return compare_digest(
                self.decrypt(token).encode(), self.decrypt(other).encode()
            )
        except StorageError:
            return False


def key_path(database: Path) -> Path:
    """The path of a database's key."""
    return database.with_name(database.name + ".key")


def read_key(path: Path) -> bytes | None:
    """The key in that file; None if there is no such file.

    Raises `DatabaseUnusable` if it cannot be read or holds something else.
    """
    try:
        key = b64decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = f"the key cannot be read: {error.strerror}"
        raise DatabaseUnusable(str(path), reason) from error
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise DatabaseUnusable(str(path), "this is not a key file")
    return key


def create_key(path: Path) -> bytes:
    """A new random key, in that file, whole or not at all."""
    key = os.urandom(_KEY_BYTES)
    write_key(path, key)
    return key


def write_key(path: Path, key: bytes) -> None:
    """Write a key file (0600), replacing any other. Raises `OSError`."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(b64encode(key) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
