"""A command asks who answers, before it sends a token there."""

from __future__ import annotations

import httpx2
import pytest

from hub.hub_address import (
    Endpoint,
    claim_token,
    name_connection,
    prove_identity,
    prove_token,
)
from hub.limits.token_bucket import per_minute
from hub.web.application import create_application
from hub.web.rate_limits import RateLimits, RequestLimits
from tests.support.admin import TOKEN
from tests.support.application_client import client_of
from tests.support.services import Hub

CHALLENGE = "0123456789abcdef"
SERVER = "127.0.0.1", 8916
CLIENT = "127.0.0.1", 123
WHERE = "http://127.0.0.1:8916/identity"
CONNECTION = name_connection(CLIENT, SERVER)


async def test_a_hub_proves_that_it_has_the_key(hub: Hub) -> None:
    application = create_application(hub.services, "token", identity_key="the key")
    async with client_of(application) as anybody:
        answer = await anybody.get("/identity", params={"challenge": CHALLENGE})
    proof = prove_identity("the key", CHALLENGE)
    assert (answer.status_code, answer.json()) == (200, {"proof": proof})


@pytest.mark.parametrize("challenge", ["", "0" * 15, "0" * 129])
async def test_a_challenge_has_a_length(hub: Hub, challenge: str) -> None:
    application = create_application(hub.services, "token", identity_key="the key")
    async with client_of(application) as anybody:
        answer = await anybody.get("/identity", params={"challenge": challenge})
    assert (answer.status_code, answer.json()["field"]) == (422, "challenge")


async def test_without_a_key_there_is_nothing_to_prove(
    anybody: httpx2.AsyncClient,
) -> None:
    answer = await anybody.get("/identity", params={"challenge": CHALLENGE})
    assert answer.status_code == 404


async def ask(
    hub: Hub, claim: str, client: Endpoint = CLIENT, **headers: str
) -> httpx2.Response:
    query = {"challenge": CHALLENGE, "claim": claim}
    async with client_of(create_application(hub.services, TOKEN), *client) as anybody:
        return await anybody.get(WHERE, params=query, headers=headers)


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "::1"])
async def test_a_hub_proves_that_it_has_the_token_to_who_has_it(
    hub: Hub, address: str
) -> None:
    connection = name_connection((address, 123), SERVER)
    claim = claim_token(TOKEN, connection, CHALLENGE)
    answer = await ask(hub, claim, (address, 123))
    proof = prove_token(TOKEN, connection, CHALLENGE)
    assert (answer.status_code, answer.json()) == (200, {"proof": proof})


@pytest.mark.parametrize(
    "claim",
    [
        *("", "é", prove_token(TOKEN, CONNECTION, CHALLENGE)),
        claim_token("guessed", CONNECTION, CHALLENGE),
        claim_token(TOKEN, name_connection(CLIENT, ("127.0.0.1", 8917)), CHALLENGE),
        claim_token(TOKEN, name_connection(CLIENT, ("127.0.0.2", 8916)), CHALLENGE),
        claim_token(TOKEN, name_connection(("127.0.0.1", 124), SERVER), CHALLENGE),
        claim_token(TOKEN, CONNECTION, CHALLENGE[::-1]),
    ],
)
async def test_whoever_else_claims_to_have_it_learns_nothing(
    hub: Hub, claim: str
) -> None:
    answer = await ask(hub, claim)
    assert (answer.status_code, answer.json()["field"]) == (403, "claim")


@pytest.mark.parametrize(
    ("client", "headers"),
    [
        (("192.0.2.7", 123), {}),
        (("2001:db8::7", 123), {}),
        (CLIENT, {"X-Forwarded-For": "127.0.0.1"}),
        (CLIENT, {"X-Forwarded-Proto": "https"}),
        (CLIENT, {"X-Real-IP": "127.0.0.1"}),
        (CLIENT, {"Forwarded": "for=127.0.0.1"}),
        (CLIENT, {"Via": "1.1 proxy"}),
    ],
)
async def test_a_claim_from_elsewhere_learns_nothing_though_the_token_is_right(
    hub: Hub, client: Endpoint, headers: dict[str, str]
) -> None:
    claim = claim_token(TOKEN, name_connection(client, SERVER), CHALLENGE)
    answer = await ask(hub, claim, client, **headers)
    assert (answer.status_code, answer.json()["field"]) == (403, "claim")


async def test_who_reaches_the_hub_by_the_address_of_its_own_machine_is_there(
    hub: Hub,
) -> None:
    client, server = ("192.0.2.7", 123), ("192.0.2.7", 8916)
    claim = claim_token(TOKEN, name_connection(client, server), CHALLENGE)
    query = {"challenge": CHALLENGE, "claim": claim}
    async with client_of(create_application(hub.services, TOKEN), *client) as anybody:
        answer = await anybody.get("http://192.0.2.7:8916/identity", params=query)
    assert answer.status_code == 200


async def test_the_token_cannot_be_guessed_by_the_thousand(hub: Hub) -> None:
    limits = RateLimits(RequestLimits(of_address=per_minute(6)))
    application = create_application(hub.services, TOKEN, limits)
    query = {"challenge": CHALLENGE, "claim": "guessed"}
    async with client_of(application) as anybody:
        answers = [await anybody.get(WHERE, params=query) for _ in range(2)]
    assert [each.status_code for each in answers] == [403, 429]
