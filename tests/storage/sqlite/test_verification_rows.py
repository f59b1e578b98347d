"""What is kept of a request that is to be verified, as it lies in the database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from storage.records import (
    OPERATOR,
    AccountRequest,
    Format,
    NewVerification,
    VerificationMode,
)
from tests.support.new_database import open_new


async def test_parameters_and_headers_of_a_request_are_encrypted(
    tmp_path: Path,
) -> None:
    wish = AccountRequest(shown=(("own", "planted"),), headers=(("x-own", "planted"),))
    storage = await open_new(tmp_path / "hub.db")
    await storage.verifications.add(
        NewVerification(
            account=OPERATOR,
            mode=VerificationMode.SUBSCRIBE,
            topic="https://feeds.example/1",
            callback="https://reader.example/1",
            token="token",
            lease_seconds=300,
            secret="",
            algorithm="sha1",
            format=Format.JSON,
            verify_token="",
            account_request=wish,
        ),
        datetime(2026, 6, 2, tzinfo=UTC),
        most=9,
        most_of_host=9,
    )
    await storage.close()
    with closing(sqlite3.connect(tmp_path / "hub.db")) as database:
        kept = str(database.execute("SELECT * FROM verifications").fetchall())
    assert "reader.example" in kept
    assert "planted" not in kept
