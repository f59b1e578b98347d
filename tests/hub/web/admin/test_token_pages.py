"""Accounts and tokens, as an operator reads, makes and revokes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.application_client import client_of
from tests.support.operator_browser import (
    HOSTILE,
    OperatorBrowser,
    read,
    rows,
    text_of,
)
from tests.support.services import Hub, open_hub

PAGE = "/admin/tokens"


async def make(browser: OperatorBrowser, **fields: str) -> str:
    """Make a token by the form; the token."""
    answer = await browser.send(PAGE, form_token=await browser.form_token(), **fields)
    assert answer.status_code == 201, text_of(answer)
    return str(read(answer).xpath("//*[@role='status']/code/text()")[0])


async def test_without_tokens_the_page_says_so(browser: OperatorBrowser) -> None:
    assert "There are no tokens yet." in text_of(await browser.open(PAGE))


async def test_who_may_subscribe_without_a_token_is_said_beside_those_who_need_one(
    browser: OperatorBrowser,
) -> None:
    told = "Anybody may subscribe without a token to public topics"
    heeded = "//p[@class='notice' and contains(., 'without a token')]"
    for query, is_heeded in (("", False), ("?scope=subscribe", True)):
        page = await browser.open(f"{PAGE}{query}")
        assert told in text_of(page)
        assert bool(read(page).xpath(heeded)) is is_heeded


async def test_that_nobody_may_subscribe_without_a_token_is_said_as_well(
    tmp_path: Path,
) -> None:
    async with (
        open_hub(tmp_path, open_hub="off") as hub,
        client_of(hub.application) as client,
    ):
        browser = OperatorBrowser(client)
        await browser.log_in()
        page = await browser.open(PAGE)
    assert "Without a token nobody may subscribe" in text_of(page)


async def test_the_admin_token_is_named_and_whether_one_is_in_with_it(
    browser: OperatorBrowser,
) -> None:
    told = "Not listed: the admin token of the settings (account operator)"
    assert told in text_of(await browser.open(PAGE))
    assert "; you are logged in with it." in text_of(await browser.open(PAGE))


@pytest.mark.parametrize("account", ["nobody", "no account!"])
async def test_an_account_that_does_not_exist_has_no_tokens(
    browser: OperatorBrowser, account: str
) -> None:
    await make(browser, account="alice", subscribe="yes")
    answer = await browser.open(f"{PAGE}?scope=subscribe&account={account}")
    assert answer.status_code == 200
    assert "No token matches." in text_of(answer)
    assert rows(answer) == []


async def test_a_token_is_shown_once_and_opens_what_was_chosen(
    hub: Hub, browser: OperatorBrowser
) -> None:
    token = await make(browser, account="alice", label="reader", subscribe="yes")
    await make(browser, account="bob", list="yes", retrieve="yes")
    alice, bob = rows(await browser.open(PAGE))
    assert alice[:6] == ["alice token 1 reader", "✓", "", "", "", ""]
    assert bob[:6] == ["bob token 2", "", "", "✓", "✓", ""]
    assert alice[7] == "never what it did"
    assert token not in (await browser.open(PAGE)).text
    principal = await hub.services.tokens.authenticate(token)
    assert principal is not None
    assert principal.account.name == "alice"


async def test_a_token_with_the_scope_admin_may_everything(
    browser: OperatorBrowser,
) -> None:
    await make(browser, account="root", admin="yes")
    [root] = rows(await browser.open(PAGE))
    assert root[1:6] == ["✓"] * 5


async def test_a_revoked_token_opens_nothing(
    hub: Hub, browser: OperatorBrowser
) -> None:
    token = await make(browser, account="alice", subscribe="yes")
    action = f"{PAGE}/1/revoke"
    answer = await browser.send(action, form_token=await browser.form_token())
    after = await browser.open(answer.headers["location"])
    assert "it opens nothing any more" in text_of(after)
    assert rows(after)[0][1:6] == [""] * 5
    assert rows(after)[0][8] == "revoked now"
    assert await hub.services.tokens.authenticate(token) is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"subscribe": "yes"}, "Name its account"),
        ({"account": "alice"}, "Tick at least"),
    ],
)
async def test_what_is_missing_is_named(
    browser: OperatorBrowser, fields: dict[str, str], reason: str
) -> None:
    answer = await browser.send(PAGE, form_token=await browser.form_token(), **fields)
    assert answer.status_code == 422
    assert text_of(answer).count(reason) == 1
    form = read(answer).xpath("//form[@action='/admin/tokens' and @method='post']")[0]
    assert {name for name, value in form.form_values() if value} == {
        "form_token",
        *fields,
    }


async def test_many_tokens_are_paged_by_links(browser: OperatorBrowser) -> None:
    for number in range(51):
        await make(browser, account=f"account{number}", list="yes")
    [link] = read(await browser.open(PAGE)).xpath("//a[@rel='next']/@href")
    following = await browser.open(f"/admin/tokens{link.removeprefix(PAGE)}")
    assert [row[0] for row in rows(following)] == ["account50 token 51"]
    assert read(following).xpath("//a[text()='First page']") != []


@pytest.mark.parametrize("text", HOSTILE)
async def test_no_label_becomes_part_of_the_page(
    browser: OperatorBrowser, text: str
) -> None:
    form_token = await browser.form_token()
    sent = {"account": "alice", "label": text, "list": "yes"}
    for answer in (
        await browser.send(PAGE, form_token=form_token, **sent),
        await browser.open(PAGE),
    ):
        page = read(answer)
        assert len(page.xpath("//script")) == 1
        assert page.xpath("//script[not(@src)] | //style | //@style | //img") == []
        assert page.xpath("//@*[starts-with(name(), 'on')]") == []
