"""Tokens as every engine keeps them, and as the model does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from storage.contract import Storage, TokenStore
from storage.errors import NotFound
from storage.records import (
    OPERATOR,
    AccountId,
    NewToken,
    TokenFilter,
    TokenId,
    TokenScope,
)

NOW = datetime(2026, 6, 2, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


@pytest.fixture
def store(storage: Storage) -> TokenStore:
    return storage.tokens


def new(digest: bytes, account: str = "alice", *rights: TokenScope) -> NewToken:
    return NewToken(
        account=account,
        digest=digest,
        scopes=frozenset(rights or TokenScope),
        label="a label",
    )


async def test_there_is_one_token_of_a_digest_revoked_or_not(
    store: TokenStore,
) -> None:
    added = await store.add(new(b"1"), NOW)
    assert added is not None
    assert await store.add(new(b"1", "bob"), NOW) is None
    await store.revoke(added.id, NOW)
    assert await store.add(new(b"1"), NOW) is None
    assert await store.account("alice") == added.account
    assert await store.account("bob") is None


async def test_a_token_is_found_by_its_digest(store: TokenStore) -> None:
    added = await store.add(new(b"1", "alice", TokenScope.LIST), NOW)
    await store.add(new(b"2"), NOW)
    assert await store.find(b"1") == added
    assert added.account.name == "alice"
    assert added.scopes == {TokenScope.LIST}
    assert (added.label, added.created_at) == ("a label", NOW)
    assert (added.used_at, added.revoked_at) == (None, None)
    assert await store.find(b"3") is None


async def test_tokens_of_one_name_are_of_one_account(store: TokenStore) -> None:
    alice = await store.add(new(b"1"), NOW)
    bob = await store.add(new(b"2", "bob"), NOW)
    again = await store.add(new(b"3"), NOW)
    assert alice.account == again.account != bob.account
    assert (await store.add(new(b"4", "operator"), NOW)).account.id == OPERATOR


async def test_accounts_are_named(store: TokenStore) -> None:
    made = await store.add(new(b"1"), NOW)
    assert made is not None
    alice, nobody = made.account.id, AccountId(99)
    names = await store.names([alice, OPERATOR, nobody, alice])
    assert names == {alice: "alice", OPERATOR: "operator"}


async def test_a_revoked_token_is_listed_but_not_found(store: TokenStore) -> None:
    added = await store.add(new(b"1"), NOW)
    revoked = await store.revoke(added.id, LATER)
    assert revoked.revoked_at == LATER
    assert await store.find(b"1") is None
    assert await store.page(after=TokenId(0), limit=10) == [revoked]
    assert await store.revoke(added.id, LATER + timedelta(hours=1)) == revoked


async def test_use_is_kept(store: TokenStore) -> None:
    added = await store.add(new(b"1"), NOW)
    await store.touch(added.id, LATER)
    await store.touch(TokenId(99), LATER)
    found = await store.find(b"1")
    assert found is not None
    assert found.used_at == LATER


async def test_pages_go_by_id(store: TokenStore) -> None:
    ids = [(await store.add(new(bytes([n])), NOW)).id for n in range(5)]
    first = await store.page(after=TokenId(0), limit=2)
    rest = await store.page(after=first[-1].id, limit=10)
    assert [each.id for each in first + rest] == ids


async def test_what_is_not_there_cannot_be_revoked(store: TokenStore) -> None:
    with pytest.raises(NotFound):
        await store.revoke(TokenId(1), NOW)


async def test_a_token_has_ended_when_it_was_revoked_or_is_unknown(
    store: TokenStore,
) -> None:
    kept, revoked = [await store.add(new(each), NOW) for each in (b"1", b"2")]
    await store.revoke(revoked.id, LATER)
    unknown = TokenId(99)
    asked = [kept.id, revoked.id, unknown]
    assert await store.ended(asked) == {revoked.id, unknown}
    assert await store.ended([]) == frozenset()


async def test_tokens_are_found_by_account_and_by_what_they_may_do(
    store: TokenStore,
) -> None:
    given = (
        (b"1", "alice", TokenScope.SUBSCRIBE),
        (b"2", "bob", TokenScope.UNSUBSCRIBE, TokenScope.LIST),
        (b"3", "bob", TokenScope.ADMIN),
        (b"4", "bob", TokenScope.SUBSCRIBE),
    )
    tokens = [await store.add(new(*each), NOW) for each in given]
    assert tokens[3] is not None
    await store.revoke(tokens[3].id, NOW)

    async def found(wanted: TokenFilter) -> list[int]:
        page = await store.page(after=TokenId(0), limit=9, wanted=wanted)
        return [each.id for each in page]

    bob = await store.account("bob")
    assert bob is not None
    assert await found(TokenFilter(scope=TokenScope.SUBSCRIBE)) == [1, 3]
    assert await found(TokenFilter(scope=TokenScope.LIST, account=bob.id)) == [2, 3]
    assert await found(TokenFilter(account=bob.id)) == [2, 3, 4]


async def test_accounts_are_listed_by_name_with_what_their_tokens_come_to(
    store: TokenStore,
) -> None:
    await store.add(new(b"1", "bob", TokenScope.LIST), NOW)
    used = await store.add(new(b"2", "bob", TokenScope.SUBSCRIBE), NOW)
    ended = await store.add(new(b"3", "bob", TokenScope.ADMIN), NOW)
    await store.add(new(b"4", "bo", TokenScope.LIST), NOW)
    assert used is not None
    assert ended is not None
    await store.touch(used.id, LATER)
    await store.revoke(ended.id, LATER)

    listed = await store.accounts(limit=2, after="anonymous")
    found = await store.accounts(prefix="bob", limit=9)

    assert [each.account.name for each in listed] == ["bo", "bob"]
    assert found == listed[1:]
    [bob] = found
    assert (bob.tokens, bob.used_at) == (2, LATER)
    assert bob.scopes == {TokenScope.LIST, TokenScope.SUBSCRIBE}
    assert bob.subscriptions == {}
