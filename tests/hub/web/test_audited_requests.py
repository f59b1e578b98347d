"""What leaves a record in the audit trail, and what that holds."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import msgspec
import pytest

import scripts.linked_pages  # noqa: F401 - it imports all routes
from hub.web.api.openapi import API_OPERATIONS
from hub.web.audited_requests import KIND_OF_PATH, operation_name
from hub.web.operation import Operation, every_operation
from storage.records import (
    ANONYMOUS,
    AuditFilter,
    AuditRecord,
    AuditSource,
    AuditTarget,
    NewFeed,
)
from tests.support.admin import ADMIN, TOKEN
from tests.support.application_client import client_of
from tests.support.operator_browser import OPENED, OperatorBrowser
from tests.support.services import Hub

OF_THE_API = frozenset(each.id for each in API_OPERATIONS)
UNSAFE = [each for each in every_operation() if each.method not in ("GET", "OPTIONS")]
OF_PAGES = [each for each in UNSAFE if each.path.startswith(("/admin/", "/account/"))]
LOGINS = ("log_in", "log_in_to_account")
READING = {"read_lists", "discover_feeds"}
"""They change nothing: they are asked by POST for what they are sent."""
OPEN = {"ask_hub", "notify_playground", "ping_by_xml_rpc", "push", "hint_openfeeder"}
"""No token is asked for: who asks is nobody."""
FEED = "https://example.org/feed"
HOOK = "https://you.example/hook"


@pytest.fixture
async def admin(hub: Hub) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with the admin token, beside one without."""
    async with client_of(hub.application) as client:
        client.headers.update(ADMIN)
        yield client


@pytest.fixture
def visitor(anybody: httpx2.AsyncClient) -> OperatorBrowser:
    return OperatorBrowser(anybody)


async def trail(hub: Hub, **wanted: Any) -> list[AuditRecord]:
    """The latest first."""
    page = await hub.services.audit.page(AuditFilter(**wanted), before=None, limit=99)
    return list(page.records)


def path_of(operation: Operation) -> str:
    prefix = "/api" if operation.id in OF_THE_API else ""
    return prefix + re.sub(r"{\w+}", "7", operation.path)


def test_every_operation_that_may_change_something_is_audited_or_explained() -> None:
    in_the_api = {each.id for each in UNSAFE if each.id in OF_THE_API}
    elsewhere = {each.id for each in UNSAFE} - in_the_api
    assert {each.id for each in UNSAFE if each.only_reads} == READING
    assert elsewhere - {each.id for each in OF_PAGES} == OPEN


def test_what_an_id_is_of_is_known_by_its_path() -> None:
    found = {it for op in UNSAFE for it in re.findall(r"([\w-]+)/{id}", op.path)}
    assert found <= set(KIND_OF_PATH)


async def test_each_operation_of_the_api_leaves_a_record(
    hub: Hub, admin: httpx2.AsyncClient
) -> None:
    for each in UNSAFE:
        if each.id not in OF_THE_API or each.id in READING:
            continue
        body = msgspec.to_builtins(each.body) if each.body else None
        answer = await admin.request(
            each.method, path_of(each), params={"wait": 0}, json=body
        )
        record, *_ = await trail(hub)
        assert record.operation == each.id
        assert record.status == answer.status_code, each.id
        assert (record.account.name, record.token) == ("operator", None)
        assert (record.source, record.is_admin) == (AuditSource.API, True)
        if "{id}" in each.path:
            assert record.target_id == 7, each.id


async def test_each_operation_of_the_pages_leaves_a_record(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    for each in OF_PAGES:
        if each.id in LOGINS:
            continue
        area = "/" + each.path.split("/")[1]
        await visitor.log_in(pages=area)
        form_token = await visitor.form_token(area)
        answer = await visitor.send(path_of(each), form_token=form_token)
        record, login, *_ = await trail(hub)
        assert record.operation == operation_name(each.id)
        assert record.status == answer.status_code, each.id
        assert record.source == login.source
        assert record.session == login.session
        assert len(record.session) == 8


@pytest.mark.parametrize("operation", sorted(READING))
async def test_an_operation_that_only_reads_leaves_none(
    hub: Hub, admin: httpx2.AsyncClient, operation: str
) -> None:
    [asked] = [each for each in UNSAFE if each.id == operation]
    await admin.post(path_of(asked), json=msgspec.to_builtins(asked.body))
    await admin.get("/api/feeds")
    assert await trail(hub) == []


@pytest.mark.parametrize("mode", ["subscribe", "unsubscribe", "replay"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_the_superfeedr_api_leaves_a_record_by_any_method(
    hub: Hub, anybody: httpx2.AsyncClient, mode: str, method: str
) -> None:
    form = {"hub.mode": mode, "hub.topic": FEED, "hub.callback": HOOK}
    sent = {"params": form} if method == "GET" else {"data": form}
    answer = await anybody.request(method, "/", headers=ADMIN, **sent)
    [record] = await trail(hub)
    assert record.operation in (mode, f"{mode}_subscription")
    assert record.source is AuditSource.SUPERFEEDR
    assert record.status == answer.status_code
    assert record.target_name == f"{HOOK} to {FEED}"


@pytest.mark.parametrize(
    "form",
    [
        {"hub.mode": "publish", "hub.url": FEED},
        {"hub.mode": "subscribe", "hub.topic": FEED, "hub.callback": HOOK},
    ],
)
async def test_the_open_hub_is_nobodys(
    hub: Hub, anybody: httpx2.AsyncClient, form: dict[str, str]
) -> None:
    await anybody.post("/hub", data=form, headers=ADMIN)
    assert await trail(hub) == []


async def test_who_has_no_token_leaves_nothing(
    hub: Hub, anybody: httpx2.AsyncClient
) -> None:
    wrong = {"Authorization": "Bearer 00000000000000000000000000000000"}
    for headers in ({}, wrong):
        answer = await anybody.delete("/api/feeds/1", headers=headers)
        assert answer.status_code == 401
    assert await trail(hub) == []


async def test_a_refusal_for_want_of_a_scope_is_noted_with_the_token(
    hub: Hub, admin: httpx2.AsyncClient, anybody: httpx2.AsyncClient
) -> None:
    body = {"account": "alice", "scopes": ["list"]}
    made = (await admin.post("/api/tokens", json=body)).json()
    headers = {"Authorization": f"Bearer {made['token']}"}
    assert (await anybody.delete("/api/feeds/1", headers=headers)).status_code == 403
    refused, created = await trail(hub)
    assert refused.operation == "remove_feed"
    assert (refused.target, refused.target_id) == (AuditTarget.FEED, 1)
    assert (refused.account.name, refused.token) == ("alice", made["id"])
    assert not refused.is_admin
    assert (created.target, created.target_id) == (AuditTarget.TOKEN, made["id"])
    assert (created.target_name, created.detail) == ("of alice", "may list")


async def test_a_target_is_named_though_it_was_removed(
    hub: Hub, admin: httpx2.AsyncClient
) -> None:
    new = NewFeed(url="https://reader:pass@example.org/feed")
    feed, _ = await hub.storage.feeds.add(new, hub.clock.now())
    await admin.delete(f"/api/feeds/{feed.id}")
    [record] = await trail(hub)
    assert record.target_name == "https://example.org/feed"


async def test_what_was_edited_is_told_but_no_secret(
    hub: Hub, admin: httpx2.AsyncClient
) -> None:
    await hub.storage.feeds.add(NewFeed(url=FEED), hub.clock.now())
    body = {"category": "news", "own_period": 60, "basic": "me:hush-hush"}
    answer = await admin.patch("/api/feeds/1", json=body)
    assert answer.status_code == 200
    [record] = await trail(hub)
    assert record.detail == 'own period: 60.0, category: "news", new credentials: yes'


async def test_the_command_line_is_known_by_its_name(
    hub: Hub, admin: httpx2.AsyncClient
) -> None:
    await admin.post("/api/scp/build", json={}, headers={"User-Agent": "fanfare-cli/1"})
    [record] = await trail(hub)
    assert record.source is AuditSource.CLI


async def test_a_login_by_a_link_is_noted(
    hub: Hub, admin: httpx2.AsyncClient, visitor: OperatorBrowser
) -> None:
    made = (await admin.post("/api/login-links")).json()
    await visitor.send("/admin/login", link=made["url"].partition("link=")[2])
    login, link = await trail(hub)
    assert (link.operation, login.operation) == ("create_login_link", "log_in")
    assert (login.account.name, login.status) == ("operator", 303)
    assert login.session


async def test_few_of_many_failed_logins_are_noted(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    for _ in range(30):
        assert (await visitor.log_in("guess")).status_code == 403
    noted = await trail(hub)
    assert len(noted) == 20
    assert {(it.account.id, it.operation, it.status) for it in noted} == {
        (ANONYMOUS, "log_in", 403)
    }
    hub.clock.advance(180)
    await visitor.log_in("guess")
    latest, *_ = await trail(hub)
    assert latest.detail == "10 more before were not noted"


async def test_a_form_of_another_session_is_noted_as_refused(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    await visitor.log_in()
    await visitor.send("/admin/tokens", account="eve", admin="yes", form_token="0")
    refused, _ = await trail(hub)
    assert (refused.operation, refused.status) == ("create_token", 403)


def texts(record: AuditRecord) -> Iterator[str]:
    yield from (str(each) for each in msgspec.structs.astuple(record))


async def test_no_secret_is_in_the_trail(
    hub: Hub, admin: httpx2.AsyncClient, visitor: OperatorBrowser
) -> None:
    secret = "s3cret-of-somebody"
    await hub.storage.feeds.add(NewFeed(url=FEED), hub.clock.now())
    body = {"topic": FEED, "callback": HOOK, "secret": secret}
    made = (await admin.post("/api/subscriptions", json=body)).json()
    page = f"/admin/subscriptions/{made['id']}"
    await admin.patch(f"/api/subscriptions/{made['id']}", json={"secret": secret})
    await admin.post(f"/api/subscriptions/{made['id']}/secret", json={"secret": secret})
    await visitor.log_in()
    form_token = await visitor.form_token()
    await visitor.send(f"{page}/secret", secret=secret, form_token=form_token)
    token = {"account": "a", "scopes": ["list"], "value": "0" * 32}
    await admin.post("/api/tokens", json=token)
    records = await trail(hub)
    assert len(records) == 6
    for text in (it for record in records for it in texts(record)):
        assert not any(it in text for it in (secret, "0" * 32, TOKEN, form_token))


async def test_pages_are_looked_at_without_a_trace(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    await visitor.log_in()
    await visitor.client.get("/admin/feeds", headers=OPENED)
    [login] = await trail(hub)
    assert login.operation == "log_in"


async def test_a_refusal_says_why_without_what_was_entered(
    hub: Hub, admin: httpx2.AsyncClient
) -> None:
    await admin.post("/api/feeds", json={"url": "gopher://me:geheim@a.example/?k=key"})
    [refused] = await trail(hub, operation="add_feed")
    assert refused.status == 422
    assert refused.detail.startswith("url: expected ")
    assert "geheim" not in refused.detail
    assert "key" not in refused.detail
