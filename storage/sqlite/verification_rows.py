"""Rows of verifications, and the values they stand for."""

from __future__ import annotations

import msgspec

from storage.records import (
    AccountWish,
    Format,
    Verification,
    VerificationMode,
    VerificationState,
    VerificationTry,
)
from storage.secrets import SecretBox
from storage.sqlite.readers import Row
from storage.sqlite.times import from_milliseconds, from_milliseconds_or_none


def read_verification(row: Row, box: SecretBox) -> Verification:
    """From the view ``stored_verifications``."""
    return Verification(
        id=row[0],
        account=row[1],
        mode=VerificationMode(row[2]),
        topic=row[3],
        callback=row[4],
        lease_seconds=row[5],
        secret=box.decrypt(row[6]),
        algorithm=row[7],
        format=Format(row[8]),
        verify_token=row[9],
        state=VerificationState(row[10]),
        created_at=from_milliseconds(row[11]),
        attempts=row[12],
        due=from_milliseconds_or_none(row[13]),
        last=_read_last(*row[14:18]),
        wish=_read_wish(row[18], box),
    )


def write_wish(wish: AccountWish | None, box: SecretBox) -> str:
    """Encrypted: who knows what a request's parameters and headers hold."""
    return "" if wish is None else box.encrypt(msgspec.json.encode(wish).decode())


def _read_wish(text: str, box: SecretBox) -> AccountWish | None:
    return msgspec.json.decode(box.decrypt(text), type=AccountWish) if text else None


def _read_last(
    tried_at: int | None, status: int, excerpt: str, reason: str
) -> VerificationTry | None:
    if tried_at is None:
        return None
    at = from_milliseconds(tried_at)
    return VerificationTry(at=at, status=status, excerpt=excerpt, reason=reason)
