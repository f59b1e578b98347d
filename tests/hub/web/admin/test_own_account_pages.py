"""The portal: an account sees and changes what is its own, and nothing else."""

from __future__ import annotations

import re

import httpx2
import lxml.html
import pytest
from starlette.routing import Route

from hub.services.token_authentication import CreateToken
from storage.records import (
    AccountId,
    NewDeadLetter,
    Position,
    Subscription,
    SubscriptionId,
    TokenId,
    TokenScope,
)
from tests.support.failures import ANSWER, details, failed
from tests.support.operator_browser import (
    HOSTILE,
    OperatorBrowser,
    read,
    rows,
    text_of,
)
from tests.support.services import Hub
from tests.support.storage_scene import Scene, at

EVERY_SCOPE = frozenset(TokenScope) - {TokenScope.ADMIN}
PAGE = "/account/subscriptions/1"


def account_routes(hub: Hub, *, is_safe: bool) -> list[str]:
    """The paths below ``/account`` that name something, with the id 1."""
    return [
        re.sub(r"{\w+}", "1", route.path)
        for route in hub.application.routes
        if isinstance(route, Route) and route.path.startswith("/account/")
        if "{" in route.path and ("GET" in (route.methods or ())) is is_safe
    ]


async def make_token(
    hub: Hub, account: str, scopes: frozenset[TokenScope] = EVERY_SCOPE
) -> tuple[AccountId, TokenId, str]:
    made = await hub.services.tokens.create(CreateToken(account=account, scopes=scopes))
    return made.token.account.id, made.token.id, made.secret


async def log_in(
    hub: Hub,
    browser: OperatorBrowser,
    account: str = "alice",
    scopes: frozenset[TokenScope] = EVERY_SCOPE,
) -> AccountId:
    whose, _, secret = await make_token(hub, account, scopes)
    assert (await browser.log_in(secret, "/account")).status_code == 303
    return whose


async def subscribe_failing(hub: Hub, account: AccountId, reason: str) -> Subscription:
    """A subscription of the account, the first of all, with a dead letter, a retry and
    a failed request, each the first, too."""
    scene = Scene(hub.storage)
    subscription = await scene.subscribe_retrying(
        await scene.add_feed("a"), account=account
    )
    (claimed,) = await scene.claim_retrying(at(5))
    first = Position(claimed.position + 1)
    dead_letter = NewDeadLetter(
        subscription_id=subscription.id,
        lease_id=claimed.lease_id,
        first=first,
        last=first,
        reason=reason,
        at=hub.clock.now(),
    )
    attempt = failed(subscription, kept=details(answer=ANSWER))
    await scene.flush(given_up=(dead_letter,), attempts=(attempt,))
    return subscription


def links_of(page: lxml.html.HtmlElement) -> list[str]:
    return list(page.xpath("//@href | //@src | //@action"))


async def press(
    browser: OperatorBrowser, path: str, action: str
) -> tuple[httpx2.Response, str]:
    """Send the form of a page that leads there; the answer, and the text after it."""
    page = read(await browser.open(path))
    [form] = page.xpath(f"//form[@action='{action}']")
    token = form.xpath(".//input[@name='form_token']/@value")[0]
    answer = await browser.send(action, form_token=token)
    following = answer.headers.get("location", path)
    return answer, text_of(await browser.open(following))


async def test_an_account_sees_its_own_subscriptions_only(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    alice = await log_in(hub, visitor)
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    await scene.subscribe(feed, account=alice, callback="https://alice.example/hook")
    await scene.subscribe(feed, callback="https://other.example/hook")
    for path in ("/account/subscriptions", "/account/subscriptions?account=operator"):
        answer = await visitor.open(path)
        assert [row[0] for row in rows(answer)] == ["https://alice.example/hook"]
    front = await visitor.open("/account")
    assert "Account alice" in text_of(front)
    assert "None of its subscriptions fails." in text_of(front)
    assert read(front).xpath("//dd")[0].text_content() == "1"


async def test_what_is_of_another_account_is_not_found(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    alice, _, _ = await make_token(hub, "alice")
    await subscribe_failing(hub, alice, "tried too often")
    await log_in(hub, visitor, "bob")
    token = await visitor.form_token("/account")
    shown, changed = (account_routes(hub, is_safe=each) for each in (True, False))
    assert PAGE in shown
    assert f"{PAGE}/end" in changed
    answers = [await visitor.open(path) for path in shown]
    answers += [
        await visitor.send(path, form_token=token, since="1h") for path in changed
    ]
    assert {str(each.url.path): each.status_code for each in answers} == dict.fromkeys(
        [*shown, *changed], 404
    )


async def test_a_token_opens_only_what_its_scopes_allow(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    alice = await log_in(hub, visitor, scopes=frozenset({TokenScope.LIST}))
    await subscribe_failing(hub, alice, "tried too often")
    token = await visitor.form_token("/account")
    for path in account_routes(hub, is_safe=True):
        page = await visitor.open(path)
        is_listing = not path.endswith("/request") and "/playground/" not in path
        assert page.status_code == (200 if is_listing else 403), path
        actions = read(page).xpath("//main//form[@method='post']/@action")
        assert actions == [], path
    for path in account_routes(hub, is_safe=False):
        answer = await visitor.send(path, form_token=token)
        assert answer.status_code == 403, path
        assert "scope" in text_of(answer)


async def test_a_token_that_lists_nothing_begins_no_session(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    _, _, secret = await make_token(hub, "alice", frozenset({TokenScope.SUBSCRIBE}))
    answer = await visitor.log_in(secret, "/account")
    assert answer.status_code == 403
    assert "requires the list scope" in text_of(answer)


async def test_an_account_has_no_business_at_the_operators_pages(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    await log_in(hub, visitor)
    answer = await visitor.open("/admin")
    assert answer.status_code == 403
    assert "/account" in text_of(answer)


async def test_the_session_ends_with_its_token(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    _, token, secret = await make_token(hub, "alice")
    await visitor.log_in(secret, "/account")
    assert (await visitor.open("/account")).status_code == 200
    await hub.services.tokens.revoke(token)
    assert (await visitor.open("/account")).status_code == 303


async def test_a_link_of_a_token_leads_to_its_account(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    _, _, secret = await make_token(hub, "alice")
    made = await visitor.client.post(
        "/api/login-links", headers={"Authorization": f"Bearer {secret}"}
    )
    link = made.json()["url"].removeprefix("http://hub.example")
    assert link.startswith("/account/login?link=")
    [code] = read(await visitor.open(link)).xpath("//input[@name='link']/@value")
    answer = await visitor.send("/account/login", link=code)
    assert answer.headers["location"] == "/account"
    token = await visitor.form_token("/account")
    out = await visitor.send("/account/logout", form_token=token)
    assert out.headers["location"] == "/account/login"
    assert (await visitor.open("/account")).status_code == 303


async def test_a_failing_subscription_is_found_read_and_mended(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    alice = await log_in(hub, visitor)
    await subscribe_failing(hub, alice, "tried too often")
    front = await visitor.open("/account")
    assert "1 of its subscriptions fails." in text_of(front)
    [path] = read(front).xpath("//ul//a[contains(@href, 'subscriptions/')]/@href")
    page = await visitor.open(path)
    assert "tried too often" in text_of(page)
    [failure] = read(page).xpath("//td/a[. = 'how it failed']/@href")
    shown = await visitor.open(failure)
    assert "HTTP/1.1 503 Busy" in text_of(shown)
    for each in (page, shown):
        assert not [link for link in links_of(read(each)) if link.startswith("/admin")]
    answer, after = await press(visitor, path, f"{path}/test")
    assert "The callback took it" in text_of(answer)
    _, after = await press(visitor, path, "/account/dead-letters/1/retry")
    assert "The dead letter is sent now" in after
    _, after = await press(visitor, path, f"{path}/retry")
    assert "The retry is due now" in after
    _, after = await press(visitor, path, f"{path}/pause")
    assert "Nothing is sent until" in after
    _, after = await press(visitor, path, f"{path}/resume")
    assert "sent what it lacks" in after
    _, after = await press(visitor, path, f"{path}/end")
    assert "ended by the subscriber" in after


async def test_what_was_given_up_is_discarded(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    alice = await log_in(hub, visitor)
    await subscribe_failing(hub, alice, "tried too often")
    _, after = await press(visitor, PAGE, "/account/dead-letters/1/discard")
    assert "it is not sent any more" in after
    assert "Given up" not in after


async def test_its_track_queries_are_listed_as_they_were_written(
    hub: Hub, visitor: OperatorBrowser
) -> None:
    alice = await log_in(hub, visitor)
    assert "tracks nothing" in text_of(await visitor.open("/account/tracking"))
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    topics = (
        "http://hub.example/track?query=laurel+hardy",
        "https://a.example/soundtrack",
        "http://hub.example/track?query=(",
    )
    for topic in topics:
        await scene.subscribe(feed, account=alice, topic=topic)
    await scene.subscribe(feed, topic=topics[0])
    found = rows(await visitor.open("/account/tracking"))
    assert [row[0] for row in found] == ["laurel hardy", topics[2]]


@pytest.mark.parametrize("text", HOSTILE)
async def test_no_text_becomes_part_of_a_page_of_the_portal(
    hub: Hub, visitor: OperatorBrowser, text: str
) -> None:
    alice = await log_in(hub, visitor)
    await subscribe_failing(hub, alice, text)
    scene = Scene(hub.storage)
    feed = await scene.add_feed("b")
    topic = f"http://hub.example/track?query={text}"
    callback = f"https://you.example/{text}"
    await scene.subscribe(feed, account=alice, callback=callback, topic=topic)
    paths = ["/account", "/account/subscriptions", "/account/tracking"]
    paths += account_routes(hub, is_safe=True)
    for path in [*paths, "/account/subscriptions/2"]:
        page = read(await visitor.open(path))
        assert len(page.xpath("//script")) == 1
        assert page.xpath("//script[not(@src)] | //style | //@style | //img") == []
        assert page.xpath("//@*[starts-with(name(), 'on')]") == []
        links = links_of(page)
        assert [each for each in links if not each.startswith(("/", "#"))] == []


@pytest.mark.parametrize("may_subscribe", [True, False])
async def test_an_account_subscribes_for_itself_if_its_token_may(
    hub: Hub, visitor: OperatorBrowser, may_subscribe: bool
) -> None:
    scopes = {TokenScope.LIST} | ({TokenScope.SUBSCRIBE} if may_subscribe else set())
    alice = await log_in(hub, visitor, scopes=frozenset(scopes))
    feed = await Scene(hub.storage).add_feed()
    page = read(await visitor.open("/account/subscriptions"))
    assert bool(page.xpath("//details[@id='subscribe']")) is may_subscribe
    answer = await visitor.send(
        "/account/subscriptions",
        callback="https://alice.example/hook",
        topic=feed.url,
        form_token=await visitor.form_token("/account"),
    )
    assert answer.status_code == (303 if may_subscribe else 403)
    made = await hub.storage.subscriptions.get(SubscriptionId(1))
    assert (made is not None and made.account == alice) is may_subscribe
