"""A command asks who answers, before it sends a token there."""

from __future__ import annotations

import httpx2
import pytest

from hub.hub_address import prove_identity
from hub.web.application import create_application
from tests.support.application_client import client_of
from tests.support.services import Hub

CHALLENGE = "0123456789abcdef"


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
