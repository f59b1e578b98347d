"""The list of feeds and the overview, as an operator reads them."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote, urljoin

import httpx2
import pytest
from msgspec.structs import replace

from hub.core.schedule.posting_profile import with_posts
from hub.web.page_rendering import POLICY
from storage.records import (
    FeedHealth,
    FeedId,
    NewPushCallback,
    Poll,
    Polling,
    PollOutcome,
    PollReason,
    Posting,
    Push,
    PushOffer,
    PushWay,
    PushWrite,
)
from tests.support.admin import ADMIN
from tests.support.documents import an_entry
from tests.support.operator_browser import (
    HOSTILE,
    OperatorBrowser,
    read,
    rows,
    text_of,
)
from tests.support.services import PAGE, Hub
from tests.support.storage_scene import Scene, fetch, record, stored_at
from tests.support.work_claims import ask_hub

SITE = "https://example.org"


async def add(
    hub: Hub, client: httpx2.AsyncClient, path: str = "/feed", **more: object
) -> int:
    body = {"url": f"{SITE}{path}", **more}
    answer = await client.post("/api/feeds", json=body, headers=ADMIN)
    assert answer.status_code == 201, answer.text
    return int(answer.json()["id"])


def fail(hub: Hub, error: str = "the server answered 503") -> None:
    """From now on all fetches fail."""

    def outcome(polling: Polling) -> Polling:
        since = polling.failing_since or hub.clock.now()
        return replace(polling, code=503, error=error, failures=1, failing_since=since)

    hub.poller.outcome = outcome
    hub.poller.condition = FeedHealth.FAILING


async def test_without_feeds_the_list_says_how_to_add_one(
    browser: OperatorBrowser,
) -> None:
    assert "fanfare feeds add URL" in text_of(await browser.open("/admin/feeds"))


async def test_each_feed_says_how_it_is_and_when_it_is_polled(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await add(hub, browser.client, category="news", private=True)
    hub.clock.advance(7200)
    [row] = rows(await browser.open("/admin/feeds"))
    assert row[0] == f"A feed private {SITE}/feed"
    assert row[1:3] == ["ok for 2 h", "2 h ago"]
    assert row[4:] == ["0", "", "", "0", "news"]


async def test_polls_are_listed_by_time_those_asked_for_in_one_row_with_who_asked(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed = await Scene(hub.storage).add_feed()
    failed = Poll(
        at=hub.clock.now() - timedelta(hours=2),
        reason=PollReason.PLANNED,
        outcome=PollOutcome.FAILED,
        code=503,
        milliseconds=20,
    )
    await hub.storage.log.commit(fetch(feed, poll=failed))
    for number in range(3):
        await browser.send(f"/admin/feeds/{feed.id}/fetch")
        asked = replace(
            failed,
            at=hub.clock.now(),
            reason=PollReason.ASKED_FOR,
            outcome=PollOutcome.UNCHANGED,
            code=200,
            milliseconds=number,
        )
        await hub.storage.log.commit(fetch(feed, poll=asked))
        hub.clock.advance(90)
    path = f"/admin/feeds/{feed.id}/polls"
    assert [row[1:] for row in rows(await browser.open(f"{path}?since=1h"))] == [
        ["unchanged", "asked for by operator, by pages", "200", "≤ 2 ms"]
    ]
    asked_for, planned = rows(await browser.open(path))
    assert "3 polls" in asked_for[0]
    assert planned[1:4] == ["failed", "planned", "503"]
    [row] = rows(await browser.open("/admin/feeds"))
    assert row[1].endswith("it was answered 503")


async def test_a_gap_of_the_past_is_explained_by_who_paused_the_feed(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed = await Scene(hub.storage).add_feed()

    async def poll() -> str:
        at = hub.clock.now()
        planned = Poll(
            at=at,
            reason=PollReason.PLANNED,
            outcome=PollOutcome.UNCHANGED,
            code=304,
            milliseconds=20,
        )
        current = await hub.storage.feeds.get(feed.id)
        assert current is not None
        await hub.storage.log.commit(fetch(current, poll=planned))
        hub.clock.advance(600)
        return at.strftime("%H:%M:%S")

    before = await poll()
    token = await browser.form_token()
    await browser.send(f"/admin/feeds/{feed.id}/pause", form_token=token)
    paused = hub.clock.now()
    hub.clock.advance(7200)
    await browser.send(f"/admin/feeds/{feed.id}/resume", form_token=token)
    after = await poll()

    said = "by operator, by pages, until"
    shown = await browser.open(f"/admin/feeds/{feed.id}")
    listed = await browser.open(f"/admin/feeds/{feed.id}/polls")
    for table in ("Last polls", "Polls"):
        page = shown if table == "Last polls" else listed
        why = read(page).xpath(
            f"//*[@aria-label='{table}']//td[@data-label='Why then']"
        )
        after_it, before_it = (" ".join(it.text_content().split()) for it in why)
        since, until = (paused + timedelta(hours=each) for each in (0, 2))
        assert before_it == "planned"
        assert after_it == (
            f"planned the first after it was paused from {since:%Y-%m-%d %H:%M:%S} UTC"
            f" until {until:%Y-%m-%d %H:%M:%S} UTC"
        ).replace("planned the", "plannedthe")
    assert said in text_of(shown)
    cells = read(shown).xpath("//*[@aria-label='Pauses']//tbody/tr/*")
    paused_at, paused_by, _, resumed_by, lasted = (it.text_content() for it in cells)
    assert paused_by == resumed_by == "operator by pages"
    assert (paused_at, lasted) == (f"{paused:%Y-%m-%d %H:%M:%S} UTC", "2 h")
    [band] = read(shown).xpath("//*[@class='pause']")
    assert band.get("fill") == "url(#paused)"
    since, until = (
        (paused + timedelta(minutes=each)).strftime("%Y-%m-%dT%H:%M")
        for each in (10, 60)
    )
    path = f"/admin/feeds/{feed.id}/polls?since={since}&until={until}"
    page = text_of(await browser.open(path))
    assert "No poll was made in this time." in page
    assert said in page
    assert " UTC, resumed by operator, by pages: who changed it" in page
    for words in (f"{before} UTC: unchanged, planned", f"{after} UTC: unchanged"):
        assert words in page
    await browser.send(f"/admin/feeds/{feed.id}/pause", form_token=token)
    page = text_of(await browser.open(f"/admin/feeds/{feed.id}/polls?since=1min"))
    assert "It has been paused since" in page
    assert "none, because it is paused" in page
    since = f"{hub.clock.now():%Y-%m-%d %H:%M:%S} UTC"
    hub.clock.advance(60)
    page = text_of(await browser.open(f"/admin/feeds/{feed.id}"))
    assert f"It has been paused since {since}, by operator, by pages: who" in page


async def test_of_a_new_feed_the_mean_is_told_as_the_least(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed, now = await Scene(hub.storage).add_feed(), hub.clock.now()
    posting = Posting(since=now - timedelta(minutes=18), weight=2_000.0, at=now)
    polling = Polling(period=60.0, posting=posting)
    await hub.storage.log.commit(fetch(feed, polling=polling))
    page = await browser.open("/admin/feeds")
    assert rows(page)[0][4:6] == ["≥ 800", "≤ 1.8"]
    assert "≥: a mean learnt slowly, over two and a half days" in text_of(page)
    text = text_of(await browser.open(f"/admin/feeds/{feed.id}"))
    assert "Posts a day, mean of 2.5 days: it is known for less ≥ 800" in text
    assert "Polls for each post ≤ 1.8" in text


async def test_a_row_says_how_much_a_feed_posts_costs_and_who_pushes_it(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed = await Scene(hub.storage).add_feed()
    now = hub.clock.now()
    day = timedelta(days=1)
    posting = Posting(since=now - 10 * day, weight=42.0, at=now)
    polling = Polling(period=3600.0, posting=posting)
    hub_url = "https://hub.example:8443/"
    offer = PushOffer(way=PushWay.WEBSUB, hub=hub_url, topic=feed.url)
    commit = replace(
        fetch(feed, polling=polling), push=PushWrite(push=Push(offer=offer))
    )
    await hub.storage.log.commit(commit)
    [row] = rows(await browser.open("/admin/feeds"))
    assert row[4:7] == ["4", "6", ""]
    assert "learnt slowly" not in text_of(await browser.open("/admin/feeds"))
    await ask_hub(
        hub.storage,
        NewPushCallback(
            feed_id=feed.id,
            way=PushWay.WEBSUB,
            hub=hub_url,
            topic=feed.url,
            token="token",
            secret="secret",
            asked_at=now,
            until=now + day,
        ),
    )
    callback = await hub.storage.pushes.find("token")
    assert callback is not None
    await hub.storage.pushes.confirm(callback, now + day)
    [row] = rows(await browser.open("/admin/feeds"))
    assert row[6] == "hub.example:8443"


async def test_feeds_are_listed_by_their_subscribers_on_pages(
    hub: Hub, browser: OperatorBrowser
) -> None:
    scene = Scene(hub.storage)
    for number, name in enumerate("bac"):
        feed = await scene.add_feed(name)
        for each in range(number):
            await scene.subscribe(feed, f"{each}")
    path, found = "/admin/feeds?sort=-subscribers&limit=2", []
    while path:
        answer = await browser.open(path)
        found += [row[7] for row in rows(answer)]
        [*links] = read(answer).xpath("//a[@rel='next']/@href")
        path = urljoin(path, links[0]) if links else ""
    assert found == ["2", "1", "0"]


async def test_feeds_of_a_host_are_found(hub: Hub, browser: OperatorBrowser) -> None:
    scene = Scene(hub.storage)
    await scene.add_feed("a")
    await scene.add_feed("b")
    [row] = rows(await browser.open("/admin/feeds?host=B.example&format="))
    assert row[0].endswith("https://b.example/feed")


async def test_times_are_exact_for_programs_and_for_who_hovers(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await add(hub, browser.client)
    times = read(await browser.open("/admin/feeds")).xpath("//tbody//time")
    assert len(times) == 3
    assert times[1].get("datetime") == hub.clock.now().isoformat()
    assert times[1].get("title") == hub.clock.now().strftime("%Y-%m-%d %H:%M:%S UTC")


async def test_failing_feeds_are_found_with_the_reason_and_since_when(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await add(hub, browser.client, "/good")
    fail(hub)
    await add(hub, browser.client, "/bad")
    hub.clock.advance(3600)
    overview = await browser.open("/admin")
    [link] = read(overview).xpath("//ul[@class='attention']//a[contains(., 'failing')]")
    assert link.text_content() == "1 feed is failing"
    [row] = rows(await browser.open(link.get("href")))
    assert row[0].endswith(f"{SITE}/bad")
    since = "since 2026-01-01 00:00:00 UTC"
    assert row[1] == f"failing for 1 h , {since} the server answered 503"
    one = await browser.open("/admin/feeds/2")
    assert f"failing for 1 h, {since}: the server answered 503" in text_of(one)


async def test_a_hub_without_trouble_says_so(browser: OperatorBrowser) -> None:
    text = text_of(await browser.open("/admin"))
    assert "The hub is ready, and up for" in text
    assert "Nothing: no feed and no subscription is failing" in text


async def test_a_hub_in_trouble_says_what_is_wrong_and_what_to_do(
    hub: Hub, browser: OperatorBrowser
) -> None:
    hub.services.conditions.stop()
    text = text_of(await browser.open("/admin"))
    assert "The hub is not ready." in text
    assert "shutting down, for 0 s." in text
    assert "Times are UTC" in text


async def test_the_list_is_paged_by_links_that_keep_the_filter(
    hub: Hub, browser: OperatorBrowser
) -> None:
    for number in range(5):
        await add(hub, browser.client, f"/{number}", category="news")
    await add(hub, browser.client, "/other")
    path, found = "/admin/feeds?category=news&sort=-url&limit=2&search=", []
    while path:
        answer = await browser.open(path)
        assert "5 feeds" in text_of(answer)
        found += [row[0].rpartition("/")[2] for row in rows(answer)]
        [*links] = read(answer).xpath("//a[@rel='next']/@href")
        path = urljoin(path, links[0]) if links else ""
    assert found == ["4", "3", "2", "1", "0"]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("search=ab", "Search: expected 3 to 500 characters"),
        ("state=odd", "State: expected one of"),
        ("since=soon", "For at least: expected an age"),
        ("sort=odd", "Order: expected one of"),
        ("format=odd", "Format: expected one of"),
        ("cursor=odd", "Cursor: expected the cursor"),
    ],
)
async def test_a_bad_filter_is_told_in_words(
    browser: OperatorBrowser, query: str, reason: str
) -> None:
    answer = await browser.open(f"/admin/feeds?{query}")
    assert answer.status_code == 422
    assert reason in text_of(answer)


@pytest.mark.parametrize("text", HOSTILE)
async def test_no_text_of_others_becomes_part_of_a_page(
    hub: Hub, browser: OperatorBrowser, text: str
) -> None:
    hub.poller.title = text
    await add(hub, browser.client, f"/?{quote(text)}")
    fail(hub, error=text)
    await add(hub, browser.client, "/failing")
    hub.clock.advance(timedelta(hours=1).total_seconds())
    query = {"search": text, "category": text, "since": "1d"}
    answers = [
        await browser.open("/admin"),
        await browser.open("/admin/feeds"),
        await browser.open("/admin/feeds/1"),
        await browser.open("/admin/feeds/2"),
        await browser.open("/admin/feeds/1/polls"),
        await browser.open("/admin/feeds/2/polls"),
        await browser.open(f"/admin/feeds/1?done={quote(text)}"),
        await browser.client.get("/admin/feeds", params=query),
        await browser.client.get("/admin/login", params={"next": text, "link": text}),
        await browser.send("/admin/login", token="wrong", next=text),
        await browser.open(f"/admin/{text}"),
    ]
    for answer in answers:
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["cache-control"] == "no-store"
        page = read(answer)
        assert len(page.xpath("//script")) == 1
        assert page.xpath("//script[not(@src)] | //style | //@style") == []
        assert page.xpath("//img | //@*[starts-with(name(), 'on')]") == []
        links = page.xpath("//@href | //@src | //@action")
        assert [each for each in links if not each.startswith(("/", "#"))] == []
        assert "13349" not in text_of(answer)


async def test_assets_are_kept_for_good_and_change_their_name(
    browser: OperatorBrowser,
) -> None:
    page = read(await browser.open("/admin"))
    names = page.xpath("//link[@rel='stylesheet']/@href | //script/@src")
    assert len(names) == 2
    for name in names:
        answer = await browser.open(name)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert (await browser.open("/assets/admin.css")).status_code == 404


async def test_a_feed_says_why_it_is_polled_when_it_is_and_how_its_polls_went(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed_id = await add(hub, browser.client)
    listed = read(await browser.open("/admin/feeds"))
    [path] = listed.xpath("//tbody//a/@href")
    assert path == f"/admin/feeds/{feed_id}"
    answer = await browser.open(path)
    plan = await browser.client.get(f"/api/feeds/{feed_id}/plan", headers=ADMIN)
    text = text_of(answer)
    sentence = plan.json()["sentence"].replace(":00Z", ":00 UTC")
    assert sentence in text
    [time] = read(answer).xpath("//p[contains(@class, 'notice')]/time[@data-exact]")
    assert time.get("datetime") == "2026-01-01T00:00:00+00:00"
    assert "A feed" in text
    assert "Posts a day, mean 0 " in text
    assert "Rates are forecasts of the next hours, scaled to a day" in text
    assert "Nobody is subscribed." in text


async def test_subscribers_of_a_feed_are_on_its_page(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed_id = await add(hub, browser.client)
    body = {"callback": "https://you.example/hook", "topic": f"{SITE}/feed"}
    await browser.client.post("/api/subscriptions", json=body, headers=ADMIN)
    text = text_of(await browser.open(f"/admin/feeds/{feed_id}"))
    assert "https://you.example/hook" in text
    everybody = read(await browser.open(f"/admin/subscriptions?feed={feed_id}"))
    [callback] = everybody.xpath("//tbody//th/a")
    assert callback.text == "https://you.example/hook"
    nobody = await browser.open(f"/admin/subscriptions?feed={feed_id + 1}")
    assert "No subscription is like that." in text_of(nobody)


async def test_a_feed_is_fetched_paused_and_polled_again_by_forms(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed_id = await add(hub, browser.client)
    path = f"/admin/feeds/{feed_id}"
    hub.clock.advance(60)
    for action, done in (
        ("fetch", "The feed was fetched."),
        ("pause", "The feed is paused: it is not polled until it is resumed."),
        ("resume", "The feed is resumed: it is polled again."),
    ):
        page = read(await browser.open(path))
        [form] = page.xpath(f"//form[@action='{path}/{action}']")
        answer = await browser.send(form.get("action"), **dict(form.fields))
        assert answer.status_code == 303, action
        assert done in text_of(await browser.open(answer.headers["location"]))
    assert hub.poller.fetched == [feed_id, feed_id]


@pytest.mark.parametrize("path", ["/admin/feeds/999", "/admin/feeds/x"])
async def test_a_feed_that_is_not_there_is_not_found(
    browser: OperatorBrowser, path: str
) -> None:
    answer = await browser.open(path)
    assert answer.status_code == 404
    assert "no feed" in text_of(answer)


async def test_a_feed_is_added_edited_and_removed_by_forms(
    hub: Hub, browser: OperatorBrowser
) -> None:
    token = await browser.form_token()
    answer = await browser.send(
        "/admin/feeds", form_token=token, url=f"{SITE}/feed", category=" news "
    )
    page = answer.headers["location"].partition("?")[0]
    assert "The feed was added." in text_of(
        await browser.open(answer.headers["location"])
    )
    answer = await browser.send("/admin/feeds", form_token=token, url=f"{SITE}/feed")
    assert answer.headers["location"].endswith("?done=known")
    change = {"category": "sport", "private": "yes", "own_period": "120"}
    answer = await browser.send(f"{page}/edit", form_token=token, **change)
    assert "The feed was changed." in text_of(
        await browser.open(answer.headers["location"])
    )
    [feed] = await hub.storage.feeds.page(after=FeedId(0), limit=9)
    assert (feed.category, feed.private, feed.own_period) == ("sport", True, 120)
    answer = await browser.send(f"{page}/remove", form_token=token)
    assert "The feed was removed" in text_of(
        await browser.open(answer.headers["location"])
    )


@pytest.mark.parametrize(
    ("path", "fields", "reason"),
    [
        ("", {"url": "odd"}, "URL: expected"),
        (
            "/1/edit",
            {"own_period": "soon"},
            "Own period in seconds: expected a number of seconds",
        ),
    ],
)
async def test_what_a_form_says_wrong_is_named(
    hub: Hub,
    browser: OperatorBrowser,
    path: str,
    fields: dict[str, str],
    reason: str,
) -> None:
    await add(hub, browser.client)
    token = await browser.form_token()
    answer = await browser.send(f"/admin/feeds{path}", form_token=token, **fields)
    assert answer.status_code == 422
    assert reason in text_of(answer)


async def test_of_a_page_with_several_feeds_one_is_chosen(
    hub: Hub, browser: OperatorBrowser
) -> None:
    token = await browser.form_token()
    answer = await browser.send("/admin/feeds", form_token=token, url=PAGE)
    assert answer.status_code == 300
    assert read(answer).xpath("//input[@name='url']/@value") == [
        "https://a.example/",
        "https://b.example/",
    ]


@pytest.mark.parametrize("title", ["News of the day", *HOSTILE])
async def test_a_feed_shows_its_posts_beside_its_polls(
    hub: Hub, browser: OperatorBrowser, title: str
) -> None:
    """Also the first words of the picture, and each post in its table."""
    feed_id = FeedId(await add(hub, browser.client))
    stored = await hub.storage.feeds.get(feed_id)
    assert stored is not None
    now = hub.clock.now()
    entry = replace(an_entry("one", title=title), published=now - timedelta(minutes=7))
    news = fetch(
        stored,
        when=now,
        entries=(entry,),
        records=(record(entry.key),),
        poll=Poll(
            at=now,
            reason=PollReason.PINGED,
            outcome=PollOutcome.NEW,
            code=200,
            milliseconds=20,
            entries=1,
        ),
    )
    await stored_at(hub.storage.log.commit(news))

    answer = await browser.open(f"/admin/feeds/{feed_id}")

    page = read(answer)
    assert "and 1 new entry in the last" in text_of(answer)
    assert "seen within 7 min of their publication" in text_of(answer)
    assert "Half of those in the picture seen within 7 min" in text_of(answer)
    [lanes] = page.xpath("//svg")
    assert len(lanes.xpath(".//g")) == 1 + len(await hub.storage.feeds.polls(feed_id))
    assert lanes.xpath(".//title/text()")[0] == (
        f"{title}: seen 7 min after its publication"
    )
    assert [" ".join(title.split()), "7 min"] in [
        [row[0], row[-1]] for row in rows(answer)
    ]
    assert len(page.xpath("//script")) == 1


@pytest.mark.parametrize(("posts", "cells"), [(0, 0), (1, 0), (12, 7 * 24)])
async def test_a_week_is_drawn_once_the_feed_has_posted_enough(
    hub: Hub, browser: OperatorBrowser, posts: int, cells: int
) -> None:
    feed, now = await Scene(hub.storage).add_feed(), hub.clock.now()
    days = [now - timedelta(days=each) for each in range(posts, 0, -1)]
    posting = Posting(since=now - timedelta(days=20))
    posting = with_posts(posting, [each.timestamp() for each in days], now)
    await hub.storage.log.commit(fetch(feed, polling=Polling(posting=posting)))
    answer = await browser.open(f"/admin/feeds/{feed.id}")
    assert len(read(answer).xpath("//svg[@class='week']/rect")) == cells
    is_said = "has not posted enough to be expected at any hour" in text_of(answer)
    assert is_said is (cells == 0)


async def test_a_feed_that_is_well_still_tells_its_last_failure(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed_id = FeedId(await add(hub, browser.client))
    stored = await hub.storage.feeds.get(feed_id)
    assert stored is not None
    for outcome, code in ((PollOutcome.FAILED, 503), (PollOutcome.UNCHANGED, 304)):
        hub.clock.advance(60)
        now = hub.clock.now()
        poll = Poll(
            at=now, reason=PollReason.PINGED, outcome=outcome, code=code, milliseconds=2
        )
        await hub.storage.log.commit(fetch(stored, when=now, poll=poll))

    text = text_of(await browser.open(f"/admin/feeds/{feed_id}"))

    assert "the last that failed was 1 min ago: it was answered 503." in text
