"""Tokens as a use case: made, known again, revoked."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from hub.services.token_authentication import (
    REMEMBERED_SECONDS,
    CreatedToken,
    CreateToken,
    Principal,
    TokenPage,
    TokenService,
)
from protocols.protocol_errors import InvalidValue
from storage.errors import NotFound
from storage.records import (
    OPERATOR,
    Account,
    AccountId,
    TokenFilter,
    TokenId,
    TokenScope,
)
from tests.support.services import Hub, open_hub


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with open_hub(tmp_path) as hub:
        yield hub


@pytest.fixture
def tokens(hub: Hub) -> TokenService:
    return hub.services.tokens


async def create(
    tokens: TokenService, *scopes: TokenScope, account: str = "alice"
) -> CreatedToken:
    return await tokens.create(CreateToken(account=account, scopes=frozenset(scopes)))


async def test_a_token_stands_for_its_account_and_rights(tokens: TokenService) -> None:
    made = await create(tokens, TokenScope.LIST, TokenScope.SUBSCRIBE)
    assert re.fullmatch("[0-9a-f]{32}", made.secret)
    principal = await tokens.authenticate(made.secret)
    assert principal == Principal(
        account=made.token.account,
        scopes=frozenset({TokenScope.LIST, TokenScope.SUBSCRIBE}),
        token=made.token.id,
    )


async def test_a_token_of_another_hub_keeps_its_value(tokens: TokenService) -> None:
    request = CreateToken(
        account="alice", scopes=frozenset({TokenScope.LIST}), value="AB" * 16
    )
    assert (await tokens.create(request)).secret == "ab" * 16
    for written in ("ab" * 16, "AB" * 16):
        assert await tokens.authenticate(written, "alice") is not None
    with pytest.raises(InvalidValue, match="a token that has never been used"):
        await tokens.create(request)


async def test_the_case_of_an_account_does_not_matter(tokens: TokenService) -> None:
    made = await create(tokens, TokenScope.LIST, account="Alice")
    again = await create(tokens, TokenScope.LIST, account="ALICE")
    assert made.token.account == again.token.account
    assert made.token.account.name == "alice"
    assert await tokens.account("account", "aLice") == made.token.account
    with pytest.raises(InvalidValue, match="an account that has a token"):
        await tokens.account("account", "bob")


async def test_accounts_are_made_when_they_are_first_named(
    tokens: TokenService,
) -> None:
    alice = (await create(tokens, TokenScope.LIST)).token.account
    again = (await create(tokens, TokenScope.LIST)).token.account
    bob = (await create(tokens, TokenScope.LIST, account="bob")).token.account
    operator = (await create(tokens, TokenScope.LIST, account="operator")).token.account
    assert alice == again == Account(id=AccountId(3), name="alice")
    assert bob.id not in (alice.id, OPERATOR)
    assert operator.id == OPERATOR


async def test_the_database_does_not_hold_the_token(
    hub: Hub, tokens: TokenService
) -> None:
    made = await create(tokens, TokenScope.LIST)
    await hub.storage.close()
    files = [path for path in hub.directory.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert made.secret.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    "secret", ["", "x", "0" * 32, "0" * 31 + "G", "0" * 33, "é" * 32, "\n" * 32]
)
async def test_what_was_never_made_stands_for_nobody(
    tokens: TokenService, secret: str
) -> None:
    assert await tokens.authenticate(secret) is None


async def test_a_token_goes_with_no_other_account(tokens: TokenService) -> None:
    made = await create(tokens, TokenScope.LIST)
    assert await tokens.authenticate(made.secret, "alice") is not None
    assert await tokens.authenticate(made.secret, "bob") is None


async def test_a_revoked_token_opens_nothing_at_once(tokens: TokenService) -> None:
    made = await create(tokens, TokenScope.LIST)
    other = await create(tokens, TokenScope.LIST)
    assert await tokens.authenticate(made.secret) is not None
    revoked = await tokens.revoke(made.token.id)
    assert revoked.revoked_at is not None
    assert await tokens.authenticate(made.secret) is None
    assert await tokens.authenticate(other.secret) is not None


async def test_one_that_another_process_revoked_opens_nothing_after_seconds(
    hub: Hub, tokens: TokenService
) -> None:
    untold = TokenService(hub.storage.tokens, hub.clock)
    made = await create(tokens, TokenScope.LIST)
    assert await untold.authenticate(made.secret) is not None
    assert await tokens.authenticate(made.secret) is not None
    await hub.storage.tokens.revoke(made.token.id, hub.clock.now())
    assert await tokens.authenticate(made.secret) is None, "by the control log"
    assert await untold.authenticate(made.secret) is not None
    hub.clock.advance(REMEMBERED_SECONDS)
    assert await untold.authenticate(made.secret) is None


async def test_revoking_twice_keeps_the_first_time(
    hub: Hub, tokens: TokenService
) -> None:
    made = await create(tokens, TokenScope.LIST)
    first = await tokens.revoke(made.token.id)
    hub.clock.advance(60)
    assert await tokens.revoke(made.token.id) == first


async def test_a_token_that_is_not_there_cannot_be_revoked(
    tokens: TokenService,
) -> None:
    with pytest.raises(NotFound):
        await tokens.revoke(TokenId(99))


async def test_use_is_noted_to_the_hour(hub: Hub, tokens: TokenService) -> None:
    made = await create(tokens, TokenScope.LIST)
    first_use = hub.clock.now()
    await tokens.authenticate(made.secret)
    hub.clock.advance(600)
    await tokens.authenticate(made.secret)
    [token] = await hub.storage.tokens.page(after=TokenId(0), limit=10)
    assert token.used_at == first_use
    hub.clock.advance(3_600)
    await tokens.authenticate(made.secret)
    [token] = await hub.storage.tokens.page(after=TokenId(0), limit=10)
    assert token.used_at == first_use + timedelta(seconds=4_200)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (CreateToken(account="", scopes=frozenset({TokenScope.LIST})), "account"),
        (CreateToken(account="a b", scopes=frozenset({TokenScope.LIST})), "account"),
        (CreateToken(account="a" * 65, scopes=frozenset({TokenScope.LIST})), "account"),
        (
            CreateToken(account="anonymous", scopes=frozenset({TokenScope.LIST})),
            "account",
        ),
        (CreateToken(account="admin", scopes=frozenset({TokenScope.LIST})), "account"),
        (CreateToken(account="alice", scopes=frozenset()), "scopes"),
        (
            CreateToken(
                account="a", scopes=frozenset({TokenScope.LIST}), label="x" * 201
            ),
            "label",
        ),
        (
            CreateToken(account="a", scopes=frozenset({TokenScope.LIST}), label="\n"),
            "label",
        ),
        (
            CreateToken(
                account="a", scopes=frozenset({TokenScope.LIST}), value="ab" * 15
            ),
            "value",
        ),
        (
            CreateToken(
                account="a", scopes=frozenset({TokenScope.LIST}), value="x" * 32
            ),
            "value",
        ),
    ],
)
async def test_a_bad_request_names_what_is_wrong(
    tokens: TokenService, request_: CreateToken, field: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        await tokens.create(request_)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("after", "limit", "labels", "is_last"),
    [(0, 2, ["a", "b"], False), (2, 2, ["c"], True), (0, 3, ["a", "b", "c"], False)],
)
async def test_a_page_of_tokens_says_where_the_next_one_begins(
    tokens: TokenService, after: int, limit: int, labels: list[str], is_last: bool
) -> None:
    for label in "abc":
        await tokens.create(
            CreateToken(
                account="alice", scopes=frozenset({TokenScope.LIST}), label=label
            )
        )
    page = await tokens.page(TokenFilter(), after=TokenId(after), limit=limit)

    assert [each.label for each in page.tokens] == labels
    assert page.next == (None if is_last else page.tokens[-1].id)


async def test_a_page_of_tokens_has_those_of_the_account_that_is_asked_for(
    tokens: TokenService,
) -> None:
    made = [await create(tokens, TokenScope.LIST, account=each) for each in "ab"]
    wanted = TokenFilter(account=made[1].token.account.id)

    page = await tokens.page(wanted, after=TokenId(0), limit=10)
    assert page == TokenPage(tokens=(made[1].token,), next=None)
