"""Sessions of a hub whose disk is full."""

from __future__ import annotations

from datetime import datetime

import pytest

from hub.services.operator_sessions import SessionService
from hub.services.token_authentication import ADMINISTRATOR, Principal
from storage.errors import WriteFailed
from storage.records import (
    IDLE_SESSION,
    Account,
    AccountId,
    TokenId,
    TokenScope,
)
from tests.support.clock import ManualClock
from tests.support.memory.sessions import MemorySessions
from tests.support.memory.tokens import MemoryTokens


class FullSessions(MemorySessions):
    async def add(
        self, digest: bytes, token: TokenId | None, now: datetime, *, is_link: bool
    ) -> None:
        raise WriteFailed("the disk is full")


async def test_who_has_the_admin_token_logs_in_on_a_full_disk() -> None:
    clock = ManualClock()
    sessions = SessionService(FullSessions(MemoryTokens()), clock, "token", "")
    secret, other = [await sessions.begin(ADMINISTRATOR) for _ in range(2)]
    assert await sessions.principal(secret) == ADMINISTRATOR
    await sessions.end(secret)
    assert await sessions.principal(secret) is None
    clock.advance(IDLE_SESSION.total_seconds())
    assert await sessions.principal(other) is None


async def test_an_account_logs_in_once_its_session_can_be_kept() -> None:
    sessions = SessionService(FullSessions(MemoryTokens()), ManualClock(), "token", "")
    alice = Principal(
        account=Account(id=AccountId(9), name="alice"),
        scopes=frozenset({TokenScope.LIST}),
        token=TokenId(1),
    )
    with pytest.raises(WriteFailed):
        await sessions.begin(alice)
