"""A command asks who answers, before it sends a token there."""

from __future__ import annotations

import httpx2
import pytest

from hub.hub_address import claim_token, prove_identity, prove_token
from hub.limits.token_bucket import per_minute
from hub.web.application import create_application
from hub.web.rate_limits import RateLimits, RequestLimits
from tests.support.admin import TOKEN
from tests.support.application_client import client_of
from tests.support.services import Hub

CHALLENGE = "0123456789abcdef"
PORT = 8916
WHERE = f"http://hub.example:{PORT}/identity"


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


async def test_a_hub_proves_that_it_has_the_token_to_who_has_it(
    anybody: httpx2.AsyncClient,
) -> None:
    claim = claim_token(TOKEN, PORT, CHALLENGE)
    answer = await anybody.get(WHERE, params={"challenge": CHALLENGE, "claim": claim})
    proof = prove_token(TOKEN, PORT, CHALLENGE)
    assert (answer.status_code, answer.json()) == (200, {"proof": proof})


@pytest.mark.parametrize(
    "claim",
    [
        *("", "é", prove_token(TOKEN, PORT, CHALLENGE)),
        claim_token("guessed", PORT, CHALLENGE),
        claim_token(TOKEN, PORT + 1, CHALLENGE),
        claim_token(TOKEN, PORT, CHALLENGE[::-1]),
    ],
)
async def test_whoever_else_claims_to_have_it_learns_nothing(
    anybody: httpx2.AsyncClient, claim: str
) -> None:
    answer = await anybody.get(WHERE, params={"challenge": CHALLENGE, "claim": claim})
    assert (answer.status_code, answer.json()["field"]) == (403, "claim")


async def test_the_token_cannot_be_guessed_by_the_thousand(hub: Hub) -> None:
    limits = RateLimits(RequestLimits(of_address=per_minute(6)))
    application = create_application(hub.services, TOKEN, limits)
    query = {"challenge": CHALLENGE, "claim": "guessed"}
    async with client_of(application) as anybody:
        answers = [await anybody.get(WHERE, params=query) for _ in range(2)]
    assert [each.status_code for each in answers] == [403, 429]
