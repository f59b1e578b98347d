"""Sessions as every engine keeps them, and as the model does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from storage.contract import SessionStore, Storage, TokenStore
from storage.records import NewToken, StoredToken, TokenScope

NOW = datetime(2026, 6, 2, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

Stores = tuple[SessionStore, TokenStore]


@pytest.fixture
def stores(storage: Storage) -> Stores:
    return storage.sessions, storage.tokens


async def make_token(tokens: TokenStore) -> StoredToken:
    new = NewToken(account="alice", digest=b"t", scopes=frozenset(TokenScope))
    made = await tokens.add(new, NOW)
    assert made is not None
    return made


async def test_a_session_is_found_with_its_token_until_that_is_revoked(
    stores: Stores,
) -> None:
    sessions, tokens = stores
    token = await make_token(tokens)
    await sessions.add(b"1", token.id, NOW, is_link=False)
    found = await sessions.find(b"1")
    assert found is not None
    assert (found.token, found.created_at, found.used_at) == (token, NOW, NOW)
    await tokens.revoke(token.id, NOW)
    assert await sessions.find(b"1") is None


async def test_a_session_of_the_admin_token_has_no_other_token(stores: Stores) -> None:
    sessions, _ = stores
    await sessions.add(b"1", None, NOW, is_link=False)
    await sessions.touch(b"1", NOW + MINUTE)
    found = await sessions.find(b"1")
    assert found is not None
    assert (found.token, found.created_at) == (None, NOW)
    assert found.used_at == NOW + MINUTE
    assert await sessions.find(b"2") is None
    await sessions.end(b"1")
    assert await sessions.find(b"1") is None


async def test_a_link_is_no_session_and_begins_one_once(stores: Stores) -> None:
    sessions, tokens = stores
    token = await make_token(tokens)
    await sessions.add(b"link", token.id, NOW, is_link=True)
    assert await sessions.find(b"link") is None
    later = NOW + MINUTE
    made_after = NOW - MINUTE
    assert await sessions.redeem(b"link", b"1", later, made_after=made_after)
    assert not await sessions.redeem(b"link", b"2", later, made_after=made_after)
    assert not await sessions.redeem(b"1", b"2", later, made_after=made_after)
    found = await sessions.find(b"1")
    assert found is not None
    assert (found.token, found.created_at) == (token, later)


async def test_a_link_that_is_too_old_begins_nothing(stores: Stores) -> None:
    sessions, _ = stores
    await sessions.add(b"link", None, NOW, is_link=True)
    assert not await sessions.redeem(b"link", b"1", NOW, made_after=NOW)
    assert await sessions.find(b"1") is None


async def test_what_is_over_is_forgotten_in_short_pages(stores: Stores) -> None:
    sessions, _ = stores
    await sessions.add(b"old", None, NOW - 3 * MINUTE, is_link=False)
    await sessions.touch(b"old", NOW)
    await sessions.add(b"link", None, NOW - 3 * MINUTE, is_link=True)
    await sessions.add(b"idle", None, NOW - 2 * MINUTE, is_link=False)
    await sessions.add(b"new", None, NOW, is_link=False)
    trimmed = [
        await sessions.trim(
            made_before=NOW - 2 * MINUTE, used_before=NOW - MINUTE, limit=2
        )
        for _ in range(3)
    ]
    assert trimmed == [2, 1, 0]
    assert await sessions.find(b"new") is not None
    for digest in (b"old", b"idle"):
        assert await sessions.find(digest) is None
