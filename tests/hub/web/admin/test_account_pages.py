"""Accounts and what they have, as operators read them, and programs."""

from __future__ import annotations

import httpx2
import pytest

from storage.records import ANONYMOUS, NewFeed, NewSubscription
from tests.support.admin import ADMIN
from tests.support.operator_browser import OperatorBrowser, read, rows, text_of
from tests.support.services import START, Hub

PAGE = "/admin/accounts"


async def make(client: httpx2.AsyncClient, account: str, *scopes: str) -> None:
    body = {"account": account, "scopes": scopes, "label": "a label"}
    answer = await client.post("/api/tokens", json=body, headers=ADMIN)
    assert answer.status_code == 201


async def subscribe(hub: Hub, account: int, count: int = 1) -> None:
    feed, _ = await hub.storage.feeds.add(NewFeed(url="https://a.example/"), START)
    for number in range(count):
        new = NewSubscription(
            account=account,
            topic=feed.url,
            feed_id=feed.id,
            callback=f"https://you.example/{number}",
        )
        await hub.storage.subscriptions.add(new, START)


async def test_each_account_is_told_with_what_it_has(
    hub: Hub, browser: OperatorBrowser, client: httpx2.AsyncClient
) -> None:
    await make(client, "alice", "subscribe")
    await make(client, "alice", "list")
    alice = await hub.storage.tokens.account("alice")
    assert alice is not None
    await subscribe(hub, alice.id, 3)
    await subscribe(hub, ANONYMOUS)
    first, anonymous, operator = rows(await browser.open(PAGE))
    assert first[:4] == ["alice", "2: list, subscribe", "never", "ok 3"]
    assert anonymous[0] == "anonymous the open hub: who has no token"
    assert anonymous[3] == "ok 1"
    assert operator[1] == "none"
    found = (await client.get("/api/accounts", headers=ADMIN)).json()["accounts"]
    assert [each["account"] for each in found] == ["alice", "anonymous", "operator"]
    assert found[0]["subscriptions"]["ok"] == 3
    assert (found[0]["tokens"], found[0]["scopes"]) == (2, ["list", "subscribe"])


async def test_an_account_leads_to_its_subscriptions_and_has_its_tokens(
    hub: Hub, browser: OperatorBrowser, client: httpx2.AsyncClient
) -> None:
    await make(client, "alice", "subscribe")
    await make(client, "bob", "admin")
    alice = await hub.storage.tokens.account("alice")
    assert alice is not None
    await subscribe(hub, alice.id)
    page = await browser.open(f"{PAGE}/Alice")
    links = read(page).xpath("//section[@aria-labelledby='subscriptions']//a/@href")
    assert links == [
        "/admin/subscriptions?account=alice&state=ok",
        "/admin/subscriptions?account=alice",
    ]
    for each in links:
        assert len(rows(await browser.open(each))) == 1
    [token] = rows(page)
    assert token[0] == "alice token 1 a label"


async def test_a_token_of_an_account_is_made_on_its_page(
    hub: Hub, browser: OperatorBrowser, client: httpx2.AsyncClient
) -> None:
    await make(client, "alice", "subscribe")
    form = read(await browser.open(f"{PAGE}/alice")).forms[-1]
    fields = {name: value for name, value in form.form_values() if name != "list"}
    answer = await browser.send(form.action, **fields, list="yes")
    assert answer.status_code == 201
    assert "The token of alice" in text_of(answer)


async def test_nobody_is_no_account(browser: OperatorBrowser) -> None:
    assert (await browser.open(f"{PAGE}/nobody")).status_code == 404
    assert "the open hub" in text_of(await browser.open(f"{PAGE}/anonymous"))


async def test_accounts_are_found_by_the_beginning_of_their_name_and_paged(
    browser: OperatorBrowser, client: httpx2.AsyncClient
) -> None:
    for number in range(51):
        await make(client, f"reader-{number:02}", "list")
    await make(client, "writer", "list")
    first = await browser.open(f"{PAGE}?search=Reader")
    [link] = read(first).xpath("//a[@rel='next']/@href")
    names = [row[0] for row in rows(first) + rows(await browser.open(link))]
    assert names == [f"reader-{number:02}" for number in range(51)]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("search=zz", "No account's name begins so."),
        ("after=zz", "There are no more accounts."),
        ("search=a&after=zz", "There are no more accounts whose name begins so."),
    ],
)
async def test_an_empty_page_of_accounts_says_why(
    browser: OperatorBrowser, query: str, said: str
) -> None:
    assert said in text_of(await browser.open(f"{PAGE}?{query}"))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("scope=subscribe", ["alice", "carol"]),
        ("scope=subscribe&account=carol", ["carol"]),
        ("account=bob", ["bob"]),
        ("scope=&account=", ["alice", "bob", "carol"]),
    ],
)
async def test_which_tokens_may_subscribe_is_seen_at_once(
    browser: OperatorBrowser, client: httpx2.AsyncClient, query: str, found: list[str]
) -> None:
    for account, scope in (("alice", "subscribe"), ("bob", "list"), ("carol", "admin")):
        await make(client, account, scope)
    listed = rows(await browser.open(f"/admin/tokens?{query}"))
    assert [row[0].partition(" ")[0] for row in listed] == found


async def test_an_account_that_is_not_there_is_named(
    client: httpx2.AsyncClient,
) -> None:
    answer = await client.get("/api/tokens?account=nobody", headers=ADMIN)
    assert (answer.status_code, answer.json()["field"]) == (422, "account")


async def test_the_link_to_a_new_token_leads_to_its_form(
    browser: OperatorBrowser,
) -> None:
    accounts = read(await browser.open("/admin/accounts"))
    [link] = accounts.xpath("//a[text()='New token']/@href")
    path, _, place = link.partition("#")
    assert read(await browser.open(path)).xpath(f"//form[../*[@id='{place}']]")
