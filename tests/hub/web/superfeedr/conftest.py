from __future__ import annotations

from collections.abc import Awaitable, Callable

import httpx2
import pytest

from hub.services.token_authentication import CreateToken
from storage.records import TokenScope
from tests.support.services import Hub

RIGHTS = (
    TokenScope.SUBSCRIBE,
    TokenScope.UNSUBSCRIBE,
    TokenScope.LIST,
    TokenScope.RETRIEVE,
)

Ask = Callable[..., Awaitable[httpx2.Response]]
"""A request with these parameters, by the account ``me``."""


async def make_token(hub: Hub, *rights: TokenScope, account: str = "me") -> str:
    made = await hub.services.tokens.create(
        CreateToken(account=account, scopes=frozenset(rights or RIGHTS))
    )
    return made.secret


@pytest.fixture
async def token(hub: Hub) -> str:
    return await make_token(hub)


@pytest.fixture
def ask(anybody: httpx2.AsyncClient, token: str) -> Ask:
    async def request(accept: str = "*/*", **parameters: str) -> httpx2.Response:
        form = {
            name.replace("hub_", "hub.", 1): value for name, value in parameters.items()
        }
        return await anybody.post(
            "/", data=form, auth=("me", token), headers={"Accept": accept}
        )

    return request
