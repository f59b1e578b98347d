"""Who sees the operator's pages, and whose forms are accepted."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from starlette.routing import Route

from hub.services.operator_sessions import LINK_LASTS
from hub.services.token_authentication import CreateToken
from hub.web.page_rendering import POLICY
from storage.records import IDLE_SESSION, LONGEST_SESSION, TokenScope
from tests.support.admin import ADMIN, TOKEN
from tests.support.application_client import client_of
from tests.support.operator_browser import (
    FROM_A_PAGE,
    OPENED,
    OperatorBrowser,
    read,
    text_of,
)
from tests.support.services import Hub, open_hub

LOGIN = "/admin/login"
LOGINS = (LOGIN, "/account/login")
STREAMS = ("/admin/live/notifications",)


def routes_of_pages(hub: Hub, *, is_safe: bool) -> list[tuple[str, str]]:
    """Method and path of all routes of the pages, but for the logins."""
    return [
        (method, re.sub(r"{\w+}", "1", route.path))
        for route in hub.application.routes
        if isinstance(route, Route) and route.path.startswith(("/admin", "/account"))
        for method in (route.methods or set()) - {"HEAD"}
        if route.path not in LOGINS and (method == "GET") is is_safe
    ]


async def make_token(hub: Hub, *scopes: TokenScope) -> tuple[int, str]:
    made = await hub.services.tokens.create(
        CreateToken(account="alice", scopes=frozenset(scopes))
    )
    return made.token.id, made.secret


async def test_without_a_session_every_page_leads_to_the_login(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    pages = routes_of_pages(hub, is_safe=True)
    assert {("GET", "/admin/feeds"), ("GET", "/account/tracking")} <= set(pages)
    for _, path in pages:
        if path in STREAMS:  # which a person does not open
            continue
        answer = await visitor.open(path)
        login = f"/{path.split('/')[1]}/login"
        assert answer.status_code == 303, path
        assert answer.headers["location"] == f"{login}?next={path}"


async def test_after_the_login_one_is_where_one_wanted_to_be(
    visitor: OperatorBrowser,
) -> None:
    target = "/admin/feeds?state=failing&sort=since"
    asked = await visitor.open(target)
    form = read(await visitor.open(asked.headers["location"]))
    [wanted] = form.xpath("//input[@name='next']/@value")
    answer = await visitor.send(LOGIN, token=f" {TOKEN} ", next=wanted)
    assert (answer.status_code, answer.headers["location"]) == (303, target)
    assert (await visitor.open(target)).status_code == 200


@pytest.mark.parametrize(
    "target",
    ["https://evil.example/", "//evil.example", "/adminevil", "", "/admin\r\nX: y"],
)
async def test_a_login_leads_to_no_other_site(
    visitor: OperatorBrowser, target: str
) -> None:
    answer = await visitor.send(LOGIN, token=TOKEN, next=target)
    assert answer.headers["location"] == "/admin"


async def test_the_cookie_is_for_the_browser_alone(visitor: OperatorBrowser) -> None:
    cookie = (await visitor.log_in()).headers["set-cookie"]
    parts = cookie.split("; ")
    assert parts[0].startswith("fanfare=")
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(parts)
    assert "Secure" not in parts


async def test_over_https_the_cookie_goes_nowhere_else(tmp_path: Path) -> None:
    public_url = "https://hub.example"
    async with (
        open_hub(tmp_path, public_url=public_url) as hub,
        client_of(hub.application, base_url=public_url) as client,
    ):
        browser = OperatorBrowser(client)
        cookie = (await browser.log_in()).headers["set-cookie"]
        assert cookie.startswith("__Host-fanfare=")
        assert {"HttpOnly", "Path=/", "Secure"} <= set(cookie.split("; "))
        assert (await browser.open("/admin")).status_code == 200


async def test_a_wrong_token_is_refused_in_words(visitor: OperatorBrowser) -> None:
    answer = await visitor.log_in("wrong")
    assert answer.status_code == 403
    assert "There is no such token" in text_of(answer)
    assert "set-cookie" not in answer.headers


async def test_a_token_without_the_scope_admin_opens_no_page(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    _, secret = await make_token(hub, TokenScope.SUBSCRIBE, TokenScope.LIST)
    answer = await visitor.log_in(secret)
    assert answer.status_code == 403
    assert "scope admin" in text_of(answer)


async def test_a_session_ends_with_its_token(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    token_id, secret = await make_token(hub, TokenScope.ADMIN)
    await visitor.log_in(secret)
    assert (await visitor.open("/admin")).status_code == 200
    await visitor.client.delete(f"/api/tokens/{token_id}", headers=ADMIN)
    assert (await visitor.open("/admin")).status_code == 303


async def test_a_session_ends_when_nobody_uses_it(
    hub: Hub, browser: OperatorBrowser
) -> None:
    almost = IDLE_SESSION - timedelta(minutes=10)
    for _ in range(3):
        hub.clock.advance(almost.total_seconds())
        assert (await browser.open("/admin")).status_code == 200
    hub.clock.advance(IDLE_SESSION.total_seconds())
    assert (await browser.open("/admin")).status_code == 303


async def test_no_session_lasts_longer_than_a_week(
    hub: Hub, browser: OperatorBrowser
) -> None:
    step = timedelta(hours=8)
    for _ in range(LONGEST_SESSION // step - 1):
        hub.clock.advance(step.total_seconds())
        assert (await browser.open("/admin")).status_code == 200
    hub.clock.advance(step.total_seconds())
    assert (await browser.open("/admin")).status_code == 303


async def test_logging_out_ends_the_session(browser: OperatorBrowser) -> None:
    cookie = dict(browser.client.cookies)
    token = await browser.form_token()
    answer = await browser.send("/admin/logout", form_token=token)
    assert (answer.status_code, answer.headers["location"]) == (303, LOGIN)
    browser.client.cookies.update(cookie)
    assert (await browser.open("/admin")).status_code == 303


async def test_a_link_logs_in_once(hub: Hub, visitor: OperatorBrowser) -> None:
    made = await visitor.client.post("/api/login-links", headers=ADMIN)
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    link = made.json()["url"].removeprefix("http://hub.example")
    for _ in range(2):  # looking at it changes nothing
        page = read(await visitor.open(link))
    [code] = page.xpath("//input[@name='link']/@value")
    assert (await visitor.send(LOGIN, link=code)).status_code == 303
    assert (await visitor.open("/admin")).status_code == 200
    again = await visitor.send(LOGIN, link=code)
    assert again.status_code == 403
    assert "used before" in text_of(again)


async def test_a_link_soon_logs_nobody_in(hub: Hub, visitor: OperatorBrowser) -> None:
    made = await visitor.client.post("/api/login-links", headers=ADMIN)
    code = made.json()["url"].partition("link=")[2]
    hub.clock.advance(LINK_LASTS.total_seconds())
    assert (await visitor.send(LOGIN, link=code)).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://hub.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
    ids=str,
)
async def test_forms_of_other_sites_are_refused(
    hub: Hub, browser: OperatorBrowser, headers: dict[str, str]
) -> None:
    form = {"form_token": await browser.form_token(), "token": TOKEN}
    routes = routes_of_pages(hub, is_safe=False)
    assert {("POST", "/admin/logout"), ("POST", "/account/logout")} <= set(routes)
    for method, path in [*routes, *(("POST", each) for each in LOGINS)]:
        answer = await browser.client.request(method, path, data=form, headers=headers)
        assert answer.status_code == 403, path
        assert answer.headers["content-type"] == "application/problem+json"
    assert (await browser.open("/admin")).status_code == 200


async def test_a_browser_without_sec_fetch_site_says_the_origin(
    visitor: OperatorBrowser,
) -> None:
    answer = await visitor.client.post(
        LOGIN, data={"token": TOKEN}, headers={"Origin": "http://hub.example"}
    )
    assert answer.status_code == 303


@pytest.mark.parametrize("token", ["", "wrong", "\x00é"])
async def test_forms_without_the_token_of_the_session_are_refused(
    hub: Hub, browser: OperatorBrowser, token: str
) -> None:
    for _, path in routes_of_pages(hub, is_safe=False):
        answer = await browser.send(path, form_token=token)
        assert answer.status_code == 403, path
        assert "reload the page" in text_of(answer)


async def test_a_session_opens_no_api(browser: OperatorBrowser) -> None:
    answer = await browser.client.get("/api/feeds", headers=FROM_A_PAGE)
    assert answer.status_code == 401


async def test_guessing_tokens_is_slow(tmp_path: Path) -> None:
    async with (
        open_hub(tmp_path, rate_limit_address=5) as hub,
        client_of(hub.application) as client,
    ):
        browser = OperatorBrowser(client)
        answers = [await browser.log_in("wrong") for _ in range(10)]
        statuses = [each.status_code for each in answers]
        assert (statuses[0], set(statuses), statuses[-1]) == (403, {403, 429}, 429)
        assert "too many requests" in text_of(answers[-1])
        assert answers[-1].headers["content-security-policy"] == POLICY
        assert int(answers[-1].headers["retry-after"]) > 0


async def test_programs_get_problems_and_browsers_pages(
    anybody: httpx2.AsyncClient,
) -> None:
    page = await anybody.get("/nothing<b>", headers=OPENED)
    assert page.status_code == 404
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"] == POLICY
    assert "no such path: /nothing<b>" in text_of(page)
    assert "<b>" not in page.text
    for method, path, headers in (
        ("GET", "/nothing", {}),
        ("POST", "/nothing", OPENED),
        ("GET", "/api/nothing", {**ADMIN, **OPENED}),
    ):
        answer = await anybody.request(method, path, headers=headers)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"
