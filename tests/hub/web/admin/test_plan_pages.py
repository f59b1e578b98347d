"""Many at once on the pages: planned from a list, confirmed, and watched to its end."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

import httpx2
import pytest
from msgspec.structs import replace

from hub.services.token_authentication import CreateToken
from storage.records import (
    FeedId,
    PlanState,
    Poll,
    PollOutcome,
    PollReason,
    SubscriptionId,
    TokenScope,
)
from tests.support.admin import ADMIN
from tests.support.operator_browser import (
    HOSTILE,
    OperatorBrowser,
    read,
    rows,
    text_of,
)
from tests.support.services import Hub
from tests.support.storage_scene import Scene, fetch
from tests.support.waiting import eventually, in_background

PLANS = "/admin/plans"


@pytest.fixture
async def scene(hub: Hub) -> Scene:
    scene = Scene(hub.storage)
    for name in "abc":
        await scene.add_feed(name, category="news" if name == "a" else "")
    hub.clock.advance(60)
    return scene


async def plan(
    browser: OperatorBrowser, listing: str, **fields: str | list[str]
) -> httpx2.Response:
    """Send the form of a list for many at once, as a browser would."""
    page = read(await browser.open(listing))
    hidden = {
        each.get("name"): each.get("value")
        for each in page.xpath("//form[@id='plan']/input[@type='hidden']")
    }
    return await browser.send(PLANS, **{**hidden, "which": "all", **fields})


async def press(browser: OperatorBrowser, path: str, verb: str) -> httpx2.Response:
    token = await browser.form_token()
    return await browser.send(f"{path}/{verb}", form_token=token)


async def work(hub: Hub, number: int = 1) -> None:
    async def is_over() -> bool:
        plans = await hub.storage.plans.latest(9)
        return all(each.state is not PlanState.RUNNING for each in plans)

    async with in_background(hub.built.background["plans"]):
        await eventually(is_over)


async def test_a_plan_for_all_that_match_is_shown_confirmed_and_done(
    hub: Hub, scene: Scene, browser: OperatorBrowser
) -> None:
    made = await plan(browser, "/admin/feeds?category=news&sort=url", action="pause")
    path = made.headers["location"]
    planned = await browser.open(path)
    assert read(planned).findtext(".//h1") == "Pause 1 feed"
    assert "Nothing is done yet." in text_of(planned)
    assert "Categorynews" in text_of(planned)
    assert rows(planned) == [["https://a.example/feed", "ok"]]

    await press(browser, path, "confirm")
    running = await browser.open(path)
    assert read(running).xpath("//noscript/meta/@content") == ["2"]
    assert "Under way" in text_of(running)

    await work(hub)
    done = await browser.open(path)
    assert not read(done).xpath("//noscript")
    assert "Done1 of 1" in text_of(done)
    [by_whom] = read(done).xpath("//a[text()='by whom']/@href")
    assert "confirm" in text_of(await browser.open(by_whom))
    paused = rows(await browser.open("/admin/feeds?state=paused"))
    assert len(paused) == 1
    [listed] = rows(await browser.open(PLANS))
    assert listed[:2] == ["Pause 1 feed", "done"]


async def test_it_may_be_for_ticked_rows_alone(
    hub: Hub, scene: Scene, browser: OperatorBrowser
) -> None:
    listed = read(await browser.open("/admin/feeds"))
    ticks = listed.xpath("//tbody//input[@type='checkbox' and @form='plan']")
    ids = [each.get("value") for each in ticks][1:]
    made = await plan(
        browser,
        "/admin/feeds?category=news",
        which="chosen",
        id=ids,
        action="set_category",
        new_category="old",
    )
    path = made.headers["location"]
    assert "Set the category of 2 feeds to old" in text_of(await browser.open(path))
    await press(browser, path, "confirm")
    await work(hub)
    assert len(rows(await browser.open("/admin/feeds?category=old"))) == 2


async def test_without_a_tick_none_is_meant(
    scene: Scene, browser: OperatorBrowser
) -> None:
    answer = await plan(browser, "/admin/feeds", which="chosen", action="remove")
    assert answer.status_code == 422
    assert "no row was chosen" in text_of(answer)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"action": "odd"}, "Action: expected one of"),
        ({"action": "pause", "kind": "odd"}, "Kind: expected one of"),
        ({"action": "retry"}, "Action: expected one of"),
        ({"action": "pause", "which": "chosen", "id": "x"}, "Id: expected numbers"),
        ({"action": "pause", "filter": "state=odd"}, "State: expected one of"),
        (
            {"action": "end", "kind": "subscriptions", "filter": "account=nobody"},
            "Action: expected one of",
        ),
        (
            {"action": "remove", "kind": "subscriptions", "filter": "account=nobody"},
            "Account: expected",
        ),
    ],
)
async def test_a_form_that_makes_no_sense_is_refused_in_words(
    scene: Scene, browser: OperatorBrowser, fields: dict[str, str], reason: str
) -> None:
    answer = await plan(browser, "/admin/feeds", **fields)
    assert answer.status_code == 422
    assert reason in text_of(answer)


async def test_a_plan_is_dropped_and_one_that_runs_is_stopped(
    scene: Scene, browser: OperatorBrowser
) -> None:
    for confirms, said in ((False, "Nothing was done."), (True, "What was done stays")):
        made = await plan(browser, "/admin/feeds", action="remove")
        path = made.headers["location"]
        assert "This cannot be undone." in text_of(await browser.open(path))
        if confirms:
            await press(browser, path, "confirm")
        await press(browser, path, "cancel")
        assert said in text_of(await browser.open(path))
        assert (await press(browser, path, "confirm")).status_code == 409


async def test_a_plan_that_nobody_confirms_expires(
    hub: Hub, scene: Scene, browser: OperatorBrowser
) -> None:
    made = await plan(browser, "/admin/feeds", action="pause")
    hub.clock.advance(3600)
    text = text_of(await browser.open(made.headers["location"]))
    assert "it was not confirmed in time" in text


async def test_subscriptions_are_retried_and_those_that_fail_say_why(
    hub: Hub, scene: Scene, browser: OperatorBrowser
) -> None:
    await scene.subscribe_retrying(await scene.add_feed("x"), "late/failing")
    await scene.subscribe(await scene.add_feed("y"), "late/well")
    await scene.subscribe_retrying(await scene.add_feed("z"), "other")
    hub.clock.advance(60)
    made = await plan(browser, "/admin/subscriptions?search=/late", action="retry")
    path = made.headers["location"]
    assert read(await browser.open(path)).findtext(".//h1") == "Retry 2 subscriptions"
    await press(browser, path, "confirm")
    await work(hub)
    done = await browser.open(path)
    assert "1 could not be made due, for the reasons below" in text_of(done)
    assert rows(done)[0][0].startswith("https://subscriber.example/late/well of ")
    assert "in any state, 1 is failing or slow" in text_of(done)
    [lacking] = read(done).xpath("//a[starts-with(text(), 'what fails')]/@href")
    assert lacking == "/admin/subscriptions?search=%2Flate&state=failing&state=slow"
    [listed] = rows(await browser.open(lacking))
    assert "late/failing" in " ".join(listed)
    await hub.storage.deliveries.discard_retry(SubscriptionId(1), hub.clock.now())
    shown = text_of(await browser.open(path))
    assert "in any state, none is failing or slow any more" in shown


async def test_what_fails_is_listed_by_the_same_account_and_not_for_ticked_rows(
    hub: Hub, scene: Scene, browser: OperatorBrowser
) -> None:
    scopes = frozenset({TokenScope.SUBSCRIBE})
    ann = await hub.services.tokens.create(CreateToken(account="ann", scopes=scopes))
    whose = ann.token.account.id
    await scene.subscribe_retrying(await scene.add_feed("x"), "hers", account=whose)
    await scene.subscribe_retrying(await scene.add_feed("y"), "other")
    hub.clock.advance(60)
    listing = "/admin/subscriptions"
    links = list[list[str]]()
    for path, which in (
        (f"{listing}?account=ann&within=7d&state=failing", {"which": "all"}),
        (listing, {"which": "chosen", "id": ["1"]}),
    ):
        made = await plan(browser, path, action="retry", **which)
        at = made.headers["location"]
        await press(browser, at, "confirm")
        await work(hub)
        done = await browser.open(at)
        assert "Failing or slow1" in text_of(done)
        links.append(read(done).xpath("//a[starts-with(text(), 'what fails')]/@href"))
    [[of_ann], of_chosen] = links
    assert of_ann == "/admin/subscriptions?account=ann&state=failing&state=slow"
    [listed] = rows(await browser.open(of_ann))
    assert "hers" in " ".join(listed)
    assert of_chosen == []


async def test_a_subscription_that_is_deleted_is_no_longer_kept(
    hub: Hub, scene: Scene, browser: OperatorBrowser
) -> None:
    made = await scene.subscribe_retrying(await scene.add_feed("x"))
    await scene.subscribe_retrying(await scene.add_feed("y"), "kept")
    hub.clock.advance(60)
    answer = await plan(browser, "/admin/subscriptions", action="retry")
    path = answer.headers["location"]
    await press(browser, path, "confirm")
    await work(hub)
    now = hub.clock.now()
    await hub.storage.subscriptions.end(made.id, "told", now, tell=False)
    await hub.storage.subscriptions.purge_ended(now + timedelta(seconds=1), 9)
    assert "no longer kept" in text_of(await browser.open(path))


async def test_done_means_made_due_where_something_is_sent_again(
    hub: Hub, scene: Scene, browser: OperatorBrowser
) -> None:
    await scene.subscribe_retrying(await scene.add_feed("late"), "failing")
    hub.clock.advance(60)
    filter = "subscription=1"
    fields = {"filter": filter, "kind": "deliveries", "action": "retry"}
    token = await browser.form_token()
    made = await browser.send(PLANS, form_token=token, which="all", **fields)
    path = made.headers["location"]
    await browser.send(f"{path}/confirm", form_token=token)
    await work(hub)
    shown = text_of(await browser.open(path))
    assert "All is made due" in shown
    assert "Made due1 of 1 Not accepted yet1" in shown
    number = path.rpartition("/")[2]
    answer = await browser.client.get(f"/api/plans/{number}", headers=ADMIN)
    assert (answer.json()["done"], answer.json()["undelivered"]) == (1, 1)
    assert answer.json()["more_undelivered"] is False
    assert [each["subscription"] for each in answer.json()["sample"]] == [1]
    page = await browser.open(path)
    [row] = read(page).xpath("//section[@aria-labelledby='sample']//tbody/tr")
    assert row.xpath(".//a/@href") == ["/admin/subscriptions/1"]
    assert "failing" in row.xpath("td[@data-label='How it is now']")[0].text_content()
    assert read(page).xpath("//a[starts-with(text(), 'what fails')]/@href") == [
        "/admin/deliveries?subscription=1"
    ]
    [listed] = rows(await browser.open(PLANS))
    assert listed[0] == "Send again 1 dead letter or retrying subscription"
    assert listed[4:] == ["1 of 1 made due", "0"]
    assert "1 is not accepted yet: what fails again is tried again later" in shown
    await hub.storage.deliveries.discard_retry(SubscriptionId(1), hub.clock.now())
    assert "Callbacks no longer lack anything that the filter finds" in text_of(
        await browser.open(path)
    )


async def test_a_plan_whose_failures_are_no_longer_kept_does_not_say_that_all_is_well(
    hub: Hub, scene: Scene, browser: OperatorBrowser
) -> None:
    await scene.subscribe_retrying(await scene.add_feed("late"), "failing")
    hub.clock.advance(60)
    fields = {"filter": "status=500", "kind": "deliveries", "action": "retry"}
    token = await browser.form_token()
    made = await browser.send(PLANS, form_token=token, which="all", **fields)
    path = made.headers["location"]
    await browser.send(f"{path}/confirm", form_token=token)
    await work(hub)
    assert "Not accepted yet1" in text_of(await browser.open(path))
    for _ in range(3):
        hub.clock.advance(8 * 3_600)  # the session goes on
        await browser.open(path)
    await hub.storage.deliveries.trim_attempts(hub.clock.now(), 9, kept=9)
    shown = text_of(await browser.open(path))
    assert "Whether callbacks lack anything of it is no longer known" in shown
    assert "Not accepted yetnot known any more" in shown
    number = path.rpartition("/")[2]
    found = (await browser.client.get(f"/api/plans/{number}", headers=ADMIN)).json()
    assert (found["undelivered"], found["more_undelivered"]) == (None, True)


async def test_what_is_undelivered_is_sent_again_or_discarded_by_filter(
    hub: Hub, scene: Scene, browser: OperatorBrowser
) -> None:
    await scene.subscribe_retrying(await scene.add_feed("late"), "failing")
    hub.clock.advance(60)
    for host, total in (("nobody.example", 0), ("", 1)):
        listing = f"/admin/deliveries?host={host}"
        fields = {"filter": f"host={host}", "kind": "deliveries", "action": "discard"}
        token = await browser.form_token()
        made = await browser.send(PLANS, form_token=token, which="all", **fields)
        text = text_of(await browser.open(made.headers["location"]))
        assert ("there is nothing to do" in text) is (total == 0)
        assert ("Discard 1 dead letter or retrying subscription" in text) is (
            total == 1
        )
        assert ("Plan for all" in text_of(await browser.open(listing))) is bool(total)


@pytest.mark.parametrize("text", HOSTILE)
async def test_nothing_that_others_wrote_is_more_than_text(
    hub: Hub, scene: Scene, browser: OperatorBrowser, text: str
) -> None:
    feed = await scene.add_feed(quote(text), title=text, category=text)
    await scene.subscribe(feed, quote(text))
    hub.clock.advance(60)
    listing = f"/admin/feeds?category={quote(text)}"
    made = await plan(browser, listing, action="pause")
    for path in (listing, made.headers["location"], PLANS):
        answer = await browser.open(path)
        assert answer.status_code == 200
        page = read(answer)
        assert len(page.xpath("//script")) == 1
        assert page.xpath("//style | //img | //@style | //@onfocus | //@onerror") == []


async def test_an_unknown_plan_is_not_found_and_a_stranger_logs_in(
    browser: OperatorBrowser, visitor: OperatorBrowser
) -> None:
    assert (await browser.open(f"{PLANS}/99")).status_code == 404
    visitor.client.cookies.clear()
    answer = await visitor.open(f"{PLANS}/1")
    assert answer.headers["location"] == "/admin/login?next=/admin/plans/1"


async def test_what_is_planned_on_a_page_is_seen_by_the_api(
    scene: Scene, browser: OperatorBrowser
) -> None:
    await plan(browser, "/admin/feeds", which="chosen", id=["2"], action="fetch")
    [made] = (await browser.client.get("/api/plans", headers=ADMIN)).json()["plans"]
    assert (made["action"], made["filter"]["ids"]) == ("fetch", [2])


async def test_the_polls_of_a_plan_name_who_confirmed_it(
    hub: Hub, scene: Scene, browser: OperatorBrowser
) -> None:
    made = await plan(browser, "/admin/feeds?category=news", action="fetch")
    await press(browser, made.headers["location"], "confirm")
    await work(hub)
    [feed] = await hub.storage.feeds.page(after=FeedId(0), limit=1)
    poll = Poll(
        at=hub.clock.now(),
        reason=PollReason.BY_PLAN,
        outcome=PollOutcome.UNCHANGED,
        code=200,
        milliseconds=3,
    )
    for later in (timedelta(), timedelta(hours=1)):
        commit = fetch(feed, poll=replace(poll, at=poll.at + later))
        await hub.storage.log.commit(commit)

    path = f"/admin/feeds/{feed.id}/polls"
    unknown, of_plan = rows(await browser.open(path))
    assert unknown[2] == "by plan"
    assert of_plan[2] == "by plan by operator, by pages, plan 1"
    history = await browser.client.get(f"/api/feeds/{feed.id}/history", headers=ADMIN)
    told = [each["asked_by"] for each in history.json()["polls"]]
    assert told == [None, "operator by pages, plan 1"]
    until = (poll.at + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M")
    gap = await browser.client.get(
        f"/api/feeds/{feed.id}/history?since={until}Z&until={until}Z", headers=ADMIN
    )
    assert gap.json()["before"]["asked_by"] == "operator by pages, plan 1"
    page = text_of(await browser.open(f"{path}?since={until}&until={until}"))
    assert "unchanged, by plan by operator, by pages, plan 1." in page


async def test_a_pause_by_a_plan_names_who_confirmed_it_not_who_made_it(
    hub: Hub, scene: Scene, browser: OperatorBrowser
) -> None:
    scopes = frozenset({TokenScope.ADMIN})
    ann = await hub.services.tokens.create(CreateToken(account="ann", scopes=scopes))
    as_ann = {"Authorization": f"Bearer {ann.secret}"}
    body = {"action": "pause", "feeds": {"category": "news"}}
    made = await browser.client.post("/api/plans", json=body, headers=as_ann)
    await press(browser, f"{PLANS}/{made.json()['id']}", "confirm")
    again = await browser.client.post("/api/plans/1/confirm", headers=as_ann)
    assert again.status_code == 409
    await work(hub)
    [feed] = await hub.storage.feeds.page(after=FeedId(0), limit=1)
    history = await browser.client.get(f"/api/feeds/{feed.id}/history", headers=ADMIN)
    [pause] = history.json()["pauses"]
    assert pause["paused_by"] == "operator by pages, plan 1"
