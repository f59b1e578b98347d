"""Tokens over HTTP: what each scope opens, and whose subscriptions are seen."""

from __future__ import annotations

import base64
from typing import Any

import httpx2
import pytest

from hub.web.api.openapi import API_OPERATIONS
from hub.web.operation import Operation
from storage.records import TokenScope
from tests.support.admin import ADMIN
from tests.support.services import Hub

SUBSCRIPTION = {
    "callback": "https://you.example/hook",
    "topic": "https://example.org/feed.xml",
}


async def make_token(
    anybody: httpx2.AsyncClient, *scopes: str, account: str = "alice"
) -> dict[str, Any]:
    body = {"account": account, "scopes": list(scopes), "label": "for a test"}
    answer = await anybody.post("/api/tokens", json=body, headers=ADMIN)
    assert answer.status_code == 201
    made: dict[str, Any] = answer.json()
    return made


async def bearer(
    anybody: httpx2.AsyncClient, *scopes: str, account: str = "alice"
) -> dict[str, str]:
    made = await make_token(anybody, *scopes, account=account)
    return {"Authorization": f"Bearer {made['token']}"}


async def test_a_token_is_shown_once_and_kept_by_nobody(
    anybody: httpx2.AsyncClient,
) -> None:
    body = {"account": "alice", "scopes": ["list", "list"], "label": "mine"}
    answer = await anybody.post("/api/tokens", json=body, headers=ADMIN)
    assert answer.headers["cache-control"] == "no-store"
    made = answer.json()
    assert len(made["token"]) == 32
    [listed] = (await anybody.get("/api/tokens", headers=ADMIN)).json()["tokens"]
    del made["token"]
    assert listed == made
    assert (listed["account"], listed["scopes"], listed["label"]) == (
        "alice",
        ["list"],
        "mine",
    )


@pytest.mark.parametrize("user", ["alice"])
async def test_a_token_goes_as_the_password_of_its_account(
    anybody: httpx2.AsyncClient, user: str
) -> None:
    made = await make_token(anybody, "list")
    for name, status in ((user, 200), ("bob", 401), ("admin", 401), ("", 401)):
        text = base64.b64encode(f"{name}:{made['token']}".encode()).decode()
        answer = await anybody.get(
            "/api/subscriptions", headers={"Authorization": f"Basic {text}"}
        )
        assert answer.status_code == status, name


def url_of(operation: Operation) -> str:
    """Of a job that nobody does here nobody waits for the end."""
    return f"/api{operation.path}?wait=0".replace("{id}", "999")


@pytest.mark.parametrize(
    "scope", [each for each in TokenScope if each != TokenScope.ADMIN]
)
async def test_a_scope_opens_what_takes_it_and_nothing_else(
    anybody: httpx2.AsyncClient, scope: TokenScope
) -> None:
    headers = await bearer(anybody, scope)
    for operation in API_OPERATIONS:
        answer = await anybody.request(
            operation.method, url_of(operation), headers=headers
        )
        if operation.scope in (None, scope):
            assert answer.status_code not in (401, 403), operation.path
        else:
            assert answer.status_code == 403, operation.path
            assert answer.json()["detail"] == f"requires the `{operation.scope}` scope"
            assert f'scope="{operation.scope}"' in answer.headers["www-authenticate"]


async def test_the_scope_admin_opens_everything(
    anybody: httpx2.AsyncClient,
) -> None:
    headers = await bearer(anybody, "admin")
    for operation in API_OPERATIONS:
        answer = await anybody.request(
            operation.method, url_of(operation), headers=headers
        )
        assert answer.status_code not in (401, 403), operation.path


async def test_without_a_token_only_the_description_is_open(
    anybody: httpx2.AsyncClient,
) -> None:
    for operation in API_OPERATIONS:
        answer = await anybody.request(operation.method, url_of(operation))
        assert (answer.status_code == 401) == (operation.scope is not None)


async def test_head_takes_the_scope_of_get(anybody: httpx2.AsyncClient) -> None:
    headers = await bearer(anybody, "list")
    found = await anybody.head("/api/subscriptions", headers=headers)
    refused = await anybody.head("/api/feeds", headers=headers)
    assert (found.status_code, refused.status_code) == (200, 403)


async def test_a_revoked_token_opens_nothing(anybody: httpx2.AsyncClient) -> None:
    made = await make_token(anybody, "list")
    headers = {"Authorization": f"Bearer {made['token']}"}
    assert (await anybody.get("/api/subscriptions", headers=headers)).status_code == 200
    answer = await anybody.delete(f"/api/tokens/{made['id']}", headers=ADMIN)
    assert answer.json()["revoked_at"] is not None
    refused = await anybody.get("/api/subscriptions", headers=headers)
    assert refused.status_code == 401
    assert refused.json()["detail"] == "invalid or revoked token"


async def test_an_account_sees_and_ends_its_own_subscriptions_only(
    anybody: httpx2.AsyncClient,
) -> None:
    scopes = ("subscribe", "unsubscribe", "list")
    alice = await bearer(anybody, *scopes)
    bob = await bearer(anybody, *scopes, account="bob")
    made = await anybody.post("/api/subscriptions", json=SUBSCRIPTION, headers=alice)
    assert made.status_code == 201
    path = f"/api/subscriptions/{made.json()['id']}"

    assert (await anybody.get(path, headers=bob)).status_code == 404
    assert (await anybody.delete(path, headers=bob)).status_code == 404
    listed = await anybody.get("/api/subscriptions", headers=bob)
    assert listed.json()["subscriptions"] == []

    own = await anybody.post("/api/subscriptions", json=SUBSCRIPTION, headers=bob)
    assert own.status_code == 201
    assert own.json()["id"] != made.json()["id"]
    everything = await anybody.get("/api/subscriptions", headers=ADMIN)
    assert len(everything.json()["subscriptions"]) == 2

    ended = await anybody.delete(path, headers=alice)
    assert ended.json()["ended_reason"] == "ended by the subscriber"


async def test_a_feed_with_credentials_is_the_operators_alone(
    anybody: httpx2.AsyncClient,
) -> None:
    feed = {"url": SUBSCRIPTION["topic"], "basic": "user:password"}
    closed = await anybody.post("/api/feeds", json=feed, headers=ADMIN)
    headers = await bearer(anybody, "subscribe")
    answer = await anybody.post(
        "/api/subscriptions", json=SUBSCRIPTION, headers=headers
    )
    shown = answer.json()["feed_status"]
    assert shown["id"] != closed.json()["id"]
    assert not shown["has_credentials"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"scopes": ["list"]}, "account"),
        ({"account": "alice", "scopes": []}, "scopes"),
        ({"account": "alice", "scopes": ["fly"]}, "scopes[0]"),
        ({"account": "a/b", "scopes": ["list"]}, "account"),
        ({"account": "alice", "scopes": ["list"], "secret": "x"}, "secret"),
    ],
)
async def test_a_bad_request_names_the_field(
    anybody: httpx2.AsyncClient, body: dict[str, object], field: str
) -> None:
    answer = await anybody.post("/api/tokens", json=body, headers=ADMIN)
    assert answer.status_code == 422
    assert answer.json()["field"] == field


async def test_a_database_that_cannot_be_asked_is_503(
    anybody: httpx2.AsyncClient, hub: Hub
) -> None:
    headers = await bearer(anybody, "list")
    await hub.storage.close()
    answer = await anybody.get("/api/subscriptions", headers=headers)
    assert answer.status_code == 503
