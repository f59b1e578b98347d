"""Subscriptions and what they were not sent, as an operator reads and mends them."""

from __future__ import annotations

import shlex
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2
import pytest

from hub.core.delivery.delivery_outcome import GONE
from hub.web.admin.subscription_pages import SHOWN_ATTEMPTS
from protocols.operational_events import event_topic
from protocols.websub.signatures import verify
from storage.records import (
    ANONYMOUS,
    OPERATOR,
    Attempt,
    Format,
    NewDeadLetter,
    Position,
    RecordKind,
    StoredFeed,
    SubscriptionId,
    SubscriptionState,
    Updates,
)
from tests.support.admin import ADMIN
from tests.support.application_client import client_of
from tests.support.failures import ANSWER, details, failed
from tests.support.fake_network import answered
from tests.support.operator_browser import (
    HOSTILE,
    OperatorBrowser,
    read,
    rows,
    text_of,
)
from tests.support.services import Hub, open_hub
from tests.support.storage_scene import Scene, at

HOOK = "https://you.example/hook"
PAGE = "/admin/subscriptions/1"


@pytest.fixture
async def feed(hub: Hub) -> StoredFeed:
    """A feed with one entry, and a subscription to it."""
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    await scene.publish(feed, "The news")
    await scene.subscribe(feed, callback=HOOK, secret="geheim", format=Format.JSON)
    return feed


async def give_up(hub: Hub, reason: str = "tried too often") -> None:
    """A subscription has a dead letter, the first of all, and another is retried."""
    scene = Scene(hub.storage)
    given_up = await scene.subscribe_retrying(await scene.add_feed("a"))
    (claimed,) = await scene.claim_retrying(at(5))
    first = Position(claimed.position + 1)
    dead_letter = NewDeadLetter(
        subscription_id=given_up.id,
        lease_id=claimed.lease_id,
        first=first,
        last=first,
        reason=reason,
        at=hub.clock.now(),
    )
    attempt = failed(given_up, kept=details(answer=ANSWER))
    await scene.flush(given_up=(dead_letter,), attempts=(attempt,))
    await scene.subscribe_retrying(await scene.add_feed("b"))


async def take_gone(
    hub: Hub, feed: StoredFeed, hours: int = 0, number: int = 1
) -> None:
    """The callback took what it was sent, and answered 410 to one entry more, so long
    ago."""
    scene, now = Scene(hub.storage), hub.clock.now() - timedelta(hours=hours)
    await scene.deliver(now)
    position = await scene.publish(feed, "The last", when=now)
    refused = Attempt(
        subscription_id=SubscriptionId(number),
        position=position,
        at=now,
        status=410,
        milliseconds=4,
        error=GONE,
    )
    ended = ((SubscriptionId(number), GONE),)
    await scene.flush(when=now, attempts=(refused,), ended=ended)


def counted_over(overview: httpx2.Response) -> list[str]:
    """How many subscriptions are not over, are gone, and have ended."""
    table = "//section[@aria-labelledby='subscriptions']//tfoot"
    cells = read(overview).xpath(f"{table}//td")
    return [each.text_content() for each in cells]


async def press(
    browser: OperatorBrowser, path: str, action: str, **fields: str
) -> tuple[httpx2.Response, httpx2.Response]:
    """Send the form of a page that leads there; its answer, and the page after it."""
    page = read(await browser.open(path))
    [form] = page.xpath(f"//form[@action='{action}']")
    token = form.xpath(".//input[@name='form_token']/@value")[0]
    answer = await browser.send(action, form_token=token, **fields)
    following = answer.headers.get("location", path)
    return answer, await browser.open(following)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/admin/subscriptions", "There are no subscriptions."),
        ("/admin/subscriptions?state=failing", "No subscription is like that."),
        ("/admin/deliveries", "Nothing was given up."),
        ("/admin/deliveries?status=5xx", "No failed request is like that."),
    ],
)
async def test_an_empty_list_says_so(
    browser: OperatorBrowser, path: str, words: str
) -> None:
    assert words in text_of(await browser.open(path))


async def test_each_subscription_says_how_it_is(
    browser: OperatorBrowser, feed: StoredFeed
) -> None:
    answer = await browser.open("/admin/subscriptions")
    [row] = rows(answer)
    assert row[0] == HOOK
    assert row[1].startswith("ok for ")
    assert row[2:5] == ["", feed.url, "none"]
    [link, _topic] = read(answer).xpath("//tbody//a/@href")
    text = text_of(await browser.open(link))
    assert "nothing waits to be delivered" in text
    assert "with a secret (sha256)" in text
    assert "geheim" not in text


async def test_the_account_is_named_and_leads_to_all_of_its_subscriptions(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    body = {"account": "alice", "scopes": ["subscribe"]}
    await browser.client.post("/api/tokens", json=body, headers=ADMIN)
    account = await hub.storage.tokens.account("alice")
    assert account is not None
    await Scene(hub.storage).subscribe(feed, "hers", account=account.id)
    listed = await browser.open("/admin/subscriptions?sort=-id")
    [[*row], _of_nobody] = rows(listed)
    assert row[4] == "alice"
    [link] = read(listed).xpath("//tbody//a[. = 'alice']/@href")
    [[*row]] = rows(await browser.open(link))
    assert row[0].endswith("/hers")


async def test_one_that_fails_says_how_much_waits_and_since_when(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await Scene(hub.storage).subscribe_retrying(await Scene(hub.storage).add_feed())
    hub.clock.advance(60)
    [row] = rows(await browser.open("/admin/subscriptions?state=failing"))
    assert row[2].startswith("1 record for ")


async def test_the_list_is_filtered_and_paged_by_links(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    scene = Scene(hub.storage)
    for number in range(4):
        await scene.subscribe(feed, callback=f"https://{number}.example/hook")
    path, found = "/admin/subscriptions?search=.example/hook&limit=2&topic=", []
    while path:
        answer = await browser.open(path)
        found += [row[0] for row in rows(answer)]
        [*links] = read(answer).xpath("//a[@rel='next']/@href")
        path = urljoin(path, links[0]) if links else ""
    assert len(found) == len(set(found)) == 5
    none = await browser.open("/admin/subscriptions?account=operator")
    assert "No subscription is like that." in text_of(none)


async def test_those_that_are_over_are_found_beside_the_others(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    await take_gone(hub, feed)
    overview = await browser.open("/admin")
    assert counted_over(overview) == ["0", "1", "0"]
    [link] = read(overview).xpath("//ul[@class='attention']//a")
    assert link.text_content() == (
        "1 subscription ended in the last day: its callback is gone (410)"
    )
    [row] = rows(await browser.open(link.get("href")))
    assert (row[0], row[1]) == (HOOK, f"gone for 0 s {GONE}")
    none = await browser.open("/admin/subscriptions?search=you.example&sort=-id")
    assert "Those that are over are left out: look among these" in text_of(none)
    [link] = read(none).xpath("//a[. = 'look among these']/@href")
    every = await browser.open("/admin/subscriptions")
    assert "There are no subscriptions. Those that are over are" in text_of(every)
    over = await browser.open(link)
    assert [row[0] for row in rows(over)] == [HOOK]
    [chosen] = read(over).xpath("//select[@name='state']/option[@selected]/@value")
    assert chosen == "over"
    ended = await browser.open(f"{link}&state=ended".replace("state=over&", ""))
    assert "left out" not in text_of(ended)


async def test_one_that_is_over_says_when_and_why_and_begins_anew_by_a_form(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    scene = Scene(hub.storage)
    made = await scene.subscribe(feed, account=OPERATOR, secret="hers")
    path = f"/admin/subscriptions/{made.id}"
    await scene.publish(feed, "Taken")
    await take_gone(hub, feed, number=made.id)
    answer = await browser.open(path)
    text = text_of(answer)
    [ended] = read(answer).xpath("//dt[. = 'Ended']/following-sibling::dd[1]")
    [time, _] = ended.xpath(".//time/@datetime")
    assert time == hub.clock.now().isoformat()
    assert ended.text_content().endswith(GONE)
    assert "did not get 1 record from" in text
    assert f"fanfare subs resubscribe {made.id}" in text
    assert "only while the last request that its callback accepted is kept" in text
    hub.clock.advance(60)
    answer, after = await press(browser, path, f"{path}/resubscribe")
    assert answer.status_code == 303
    assert "The callback is subscribed: it is sent what comes from now on." in text_of(
        after
    )
    found = await hub.storage.subscriptions.get(made.id)
    assert found is not None
    assert (found.state, found.secret) == (SubscriptionState.ACTIVE, "hers")
    assert "; it did not get 1 record from" in text_of(after)
    offer = "//a[. = 'Send everything from the first of them on']/@href"
    assert read(after).xpath(offer) == ["#again"]
    assert "What came since, and it got, is sent once more with them." in text_of(after)
    [first] = read(after).xpath("//details[@open]//input[@name='record']/@value")
    _, sent = await press(browser, path, f"{path}/replay", record=first)
    assert "is sent once more, in order" in text_of(sent)
    assert read(sent).xpath(offer) == []


@pytest.mark.parametrize(
    ("of_subscription", "said"),
    [
        ({"account": ANONYMOUS}, "it was made without an account"),
        (
            {"account": OPERATOR, "topic": event_topic(("hub.*",))},
            "it is of events, to which callbacks are subscribed elsewhere:"
            " fanfare events subscribe",
        ),
    ],
)
async def test_one_that_others_have_to_begin_anew_says_who_and_how(
    hub: Hub,
    browser: OperatorBrowser,
    feed: StoredFeed,
    of_subscription: dict[str, Any],
    said: str,
) -> None:
    made = await Scene(hub.storage).subscribe(feed, **of_subscription)
    await hub.storage.subscriptions.end(made.id, "by hand", hub.clock.now(), tell=True)
    answer = await browser.open(f"/admin/subscriptions/{made.id}")
    assert said in text_of(answer)
    assert read(answer).xpath("//main//form[@method='post']") == []


async def test_a_request_that_was_accepted_has_a_page_as_failed_ones_have(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    scene = Scene(hub.storage)
    await scene.publish(feed, "Later")
    await scene.deliver(hub.clock.now())
    await scene.flush(attempts=(failed(await scene.subscribe(feed), kept=details()),))
    row = "//tr[contains(., '200')]//td[@data-label='Record']/a/@href"
    [link] = read(await browser.open(PAGE)).xpath(row)
    answer = await browser.open(link)
    assert [row[1] for row in rows(answer)] == ["200"]
    [heading] = read(answer).xpath("//h1/text()")
    assert heading.endswith(": its entries and requests")
    [entry] = read(answer).xpath("//dl//a")
    assert entry.text_content() == "Later"
    told = await browser.open(entry.get("href"))
    assert link in read(told).xpath("//a[. = 'The request']/@href")
    text = text_of(answer)
    assert "Of a request that was accepted, nothing of the answer is kept but" in text
    [failure] = read(await browser.open("/admin/subscriptions/2/records/1")).xpath(
        "//a[. = 'how it failed']/@href"
    )
    assert failure == "/admin/deliveries/1"
    none = text_of(await browser.open("/admin/subscriptions/1/records/99"))
    assert "No request that is kept ended with this record" in none
    assert "not known: the log no longer has it" in none
    assert (await browser.open(f"{PAGE}/records/x")).status_code == 404


async def test_a_callback_that_is_gone_for_longer_than_a_day_asks_for_no_attention(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    await take_gone(hub, feed, hours=25)
    overview = await browser.open("/admin")
    assert "gone (410)" not in text_of(overview)
    assert counted_over(overview) == ["0", "1", "0"]


async def test_a_subscription_is_paused_resumed_and_ended_by_forms(
    browser: OperatorBrowser, feed: StoredFeed
) -> None:
    answer, after = await press(browser, PAGE, f"{PAGE}/pause")
    assert answer.status_code == 303
    assert "Nothing is sent until the subscription is resumed." in text_of(after)
    assert "paused for" in text_of(after)
    _, after = await press(browser, PAGE, f"{PAGE}/resume")
    assert "paused for" not in text_of(after)
    _, after = await press(browser, PAGE, f"{PAGE}/end")
    assert "ended by the operator" in text_of(after)
    assert read(after).xpath("//main//form[@method='post']") == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["Three", "Two", "The news"]),
        ("?since=2026-01-01T14:05Z&until=2026-01-01T14:06Z", ["Two"]),
        ("?until=2026-01-01T14:06", ["Two", "The news"]),
        ("?outcome=delivered&since=2026-01-01T16:00", ["Three"]),
        ("?since=2026-01-01T14:30Z&until=2026-01-01T14:31Z", []),
        ("?outcome=failed", []),
    ],
)
async def test_what_a_callback_got_at_a_time_is_found(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed, query: str, found: list[str]
) -> None:
    scene = Scene(hub.storage)
    await scene.publish(feed, "The news")
    await scene.deliver(at(0))
    for title, hour in (("Two", 14), ("Three", 16)):
        when = at(hour * 3_600 + 5 * 60)
        await scene.publish(feed, title, when=when)
        await scene.deliver(when)
    answer = await browser.open(f"{PAGE}{query}")
    assert [row[2] for row in rows(answer)] == found
    assert ("No request that is kept is like that." in text_of(answer)) is not bool(
        found
    )
    around = read(answer).xpath("//a[starts-with(., 'From half an hour')]/@href")
    assert len(around) == ("14:31Z" in query)
    for link in around:
        assert [row[2] for row in rows(await browser.open(link))] == ["Two"]
    assert "are kept for 7 days" in text_of(answer)
    values = read(answer).xpath("//input[@type='datetime-local']/@value")
    assert all(each[:16] in query for each in values if each)


async def test_a_request_that_told_of_no_entry_says_what_it_told_of(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    scene = Scene(hub.storage)
    for second, kind in enumerate((RecordKind.ERROR, RecordKind.RECOVERED)):
        await scene.publish(feed, kind=kind, when=at(second))
        await scene.deliver(at(second))
    told = [row[2] for row in rows(await browser.open(PAGE))]
    assert told[:2] == ["that the feed works again", "that the feed fails"]


async def test_requests_from_before_it_was_subscribed_anew_say_so(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    scene, now = Scene(hub.storage), hub.clock.now()
    for title, when in (("Old", now - timedelta(hours=1)), ("New", now)):
        await scene.publish(feed, title, when=when)
        await scene.deliver(when + timedelta(seconds=1))
    marked = [
        "before it was subscribed anew" in row[0]
        for row in rows(await browser.open(PAGE))
    ]
    assert marked == [False, True]


async def test_requests_are_shown_by_pages(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    scene = Scene(hub.storage)
    for number in range(SHOWN_ATTEMPTS + 1):
        await scene.publish(feed, f"Entry {number}")
        await scene.deliver(at(number))
    first = await browser.open(f"{PAGE}?outcome=delivered")
    [link] = read(first).xpath("//a[@rel='next']/@href")
    second = await browser.open(link.partition("#")[0])
    titles = [row[2] for answer in (first, second) for row in rows(answer)]
    assert titles == [f"Entry {each}" for each in range(SHOWN_ATTEMPTS, -1, -1)]


@pytest.mark.parametrize(
    ("status", "words"),
    [(204, "The callback took it: 204"), (500, "The callback did not take it")],
)
async def test_a_test_delivery_shows_what_was_sent_and_answered(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed, status: int, words: str
) -> None:
    hub.network.answer_with(answered(status, headers={"X-Powered-By": "You"}))
    answer, _ = await press(browser, PAGE, f"{PAGE}/test")
    text = text_of(answer)
    assert words in text
    assert "x-powered-by: You" in text
    assert "Fanfare-Test: true" in text
    assert "The news" in text
    assert "geheim" not in text


async def test_the_request_is_shown_as_curl_with_code_that_checks_it(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    page = read(await browser.open(PAGE))
    [link] = page.xpath("//a[contains(., 'curl')]/@href")
    answer = await browser.open(link)
    [curl] = read(answer).xpath("//pre[@id='curl']/text()")
    words = shlex.split(curl.replace("\\\n", ""))
    assert words[:4] == ["curl", "-X", "POST", HOOK]
    headers = dict(
        words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H"
    )
    body = words[words.index("--data-raw") + 1].encode()
    assert verify(headers["X-Hub-Signature"], "geheim", body)
    assert "geheim" not in answer.text
    assert "Check the signature in Node" in text_of(answer)
    assert len(read(answer).xpath("//button[@data-copy and @hidden]")) == 6
    assert hub.network.requests == []


async def test_a_long_body_is_to_be_kept_in_a_file(
    hub: Hub, browser: OperatorBrowser
) -> None:
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    await scene.publish(feed, "k" * 40_000)
    await scene.subscribe(feed, callback=HOOK)
    answer = await browser.open(f"{PAGE}/request")
    assert "--data-binary @body.txt" in answer.text
    assert "keep it in a file body.txt first" in text_of(answer)
    assert "This is how the body begins." in text_of(answer)
    assert "It is not signed" in text_of(answer)
    assert len(answer.content) < 100_000


async def test_nothing_is_sent_to_one_that_has_ended(
    browser: OperatorBrowser, feed: StoredFeed
) -> None:
    await press(browser, PAGE, f"{PAGE}/end")
    assert (await browser.open(f"{PAGE}/request")).status_code == 409


async def test_the_last_requests_are_bars_and_a_sentence(
    hub: Hub, browser: OperatorBrowser
) -> None:
    scene = Scene(hub.storage)
    subscription = await scene.subscribe(await scene.add_feed())
    assert read(await browser.open(PAGE)).xpath("//svg") == []
    taken = Attempt(
        subscription_id=subscription.id,
        position=Position(1),
        at=at(2),
        status=204,
        milliseconds=1_200,
    )
    await scene.flush(attempts=(failed(subscription, at(1)), taken))
    page = read(await browser.open(PAGE))
    [picture] = page.xpath("//svg")
    assert picture.get("aria-label") == (
        "2xx answers: 1 of the last 2 requests, after 1,200 ms (median),"
        " at most 1,200 ms."
    )
    down, up = picture.xpath("rect")
    assert (down.get("class"), up.get("class")) == ("bad", "good")
    assert int(up.get("y")) + int(up.get("height")) == int(down.get("y"))


@pytest.mark.parametrize(
    ("fields", "waiting"),
    [
        ({"since": "2026-01-01T14:05Z"}, "2 records"),
        ({"since": "", "record": "3"}, "1 record"),
        ({"record": "1"}, "3 records"),
        ({"record": "0,001"}, "3 records"),
    ],
)
async def test_what_a_callback_got_is_sent_again_from_a_time_or_a_record(
    hub: Hub,
    browser: OperatorBrowser,
    feed: StoredFeed,
    fields: dict[str, str],
    waiting: str,
) -> None:
    scene = Scene(hub.storage)
    [subscription] = await hub.storage.subscriptions.page(after=0, limit=1)
    for hour in (14, 15):
        await scene.publish(feed, f"At {hour}", when=at(hour * 3_600 + 5 * 60))
    await scene.deliver()
    assert (await hub.storage.deliveries.lag(subscription.id, 9)).records == 0
    _, after = await press(browser, PAGE, f"{PAGE}/replay", **fields)
    assert "is sent once more, in order" in text_of(after)
    assert f"Waits to be sent {waiting} Oldest of them" in text_of(after)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "From: expected an age such as 7d"),
        ({"since": "2h", "record": "1"}, "or a record"),
        ({"since": "soon"}, "From: expected an age such as 7d"),
        ({"record": "0"}, "Record: expected a number from 1"),
        ({"record": "one"}, "Record: expected a number from 1"),
    ],
)
async def test_a_replay_needs_one_place_to_begin_at(
    browser: OperatorBrowser, feed: StoredFeed, fields: dict[str, str], reason: str
) -> None:
    answer, _ = await press(browser, PAGE, f"{PAGE}/replay", **fields)
    assert answer.status_code == 422
    assert reason in text_of(answer)


async def test_a_replay_that_is_too_early_is_asked_for_again_by_a_button(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    scene = Scene(hub.storage)
    await scene.publish(feed, "Later")
    await scene.deliver()
    await press(browser, PAGE, f"{PAGE}/replay", record="1")
    await scene.claim_retrying(hub.clock.now())
    answer, _ = await press(browser, PAGE, f"{PAGE}/replay", record="1")
    assert (answer.status_code, answer.headers["retry-after"]) == (409, "1")
    assert "try again in a second" in text_of(answer)
    [form] = read(answer).xpath("//main//form")
    assert form.get("action") == f"{PAGE}/replay"
    assert form.xpath(".//input[@name='record']/@value") == ["1"]
    assert form.xpath(".//button/text()") == ["Try again"]


async def test_the_secret_is_changed_and_the_former_one_counted_down(
    tmp_path: Path,
) -> None:
    async with (
        open_hub(tmp_path, secret_overlap=3_600) as hub,
        client_of(hub.application) as client,
    ):
        browser = OperatorBrowser(client)
        await browser.log_in()
        scene = Scene(hub.storage)
        feed = await scene.add_feed()
        await scene.subscribe(feed, callback=HOOK, secret="geheim")
        answer, _ = await press(browser, PAGE, f"{PAGE}/secret")
        [made] = read(answer).xpath("//pre[@id='secret']/text()")
        assert made.startswith("whsec_")
        assert "ends in 1 h" in text_of(answer)
        assert "signs as well; that ends in 1 h" in text_of(await browser.open(PAGE))
        _, after = await press(browser, PAGE, f"{PAGE}/secret", secret="of my own")
        assert "signed with the new secret from now on" in text_of(after)
        assert "of my own" not in after.text
        found = await hub.storage.subscriptions.get(SubscriptionId(1))
        assert found is not None
        assert (found.secret, found.former_secret) == ("of my own", made)
        hub.clock.advance(3_600)
        assert (
            "signs as well"
            not in text_of(await browser.open(PAGE)).partition("Change the secret")[0]
        )


async def test_what_was_given_up_is_found_from_the_overview_and_sent_again(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await give_up(hub)
    page = await browser.open(PAGE)
    assert read(page).xpath("//a[@href='#dead-letters']")
    assert "what was given up is kept as a dead letter" in text_of(page)
    overview = read(await browser.open("/admin"))
    [link] = overview.xpath("//a[contains(., 'dead letter')]/@href")
    [failing] = overview.xpath("//ul//a[contains(., 'are failing')]/@href")
    assert len(rows(await browser.open(failing))) == 2
    answer = await browser.open(link.partition("#")[0])
    assert "tried too often" in text_of(answer)
    assert "1 entry: for late" in text_of(answer)
    hub.clock.advance(1)
    _, after = await press(browser, "/admin/deliveries", "/admin/dead-letters/1/retry")
    assert "The dead letter is being sent to https://subscriber" in text_of(after)


async def test_a_dead_letter_is_not_sent_while_something_else_is_and_that_is_said(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await give_up(hub)
    scene = Scene(hub.storage)
    feed = await hub.storage.feeds.find("https://a.example/feed")
    assert feed is not None
    await scene.publish(feed, "next")
    await scene.claim(hub.clock.now())
    _, after = await press(browser, "/admin/deliveries", "/admin/dead-letters/1/retry")
    assert "is being sent something else at this moment" in text_of(after)
    assert "1 entry: for late" in text_of(after)


async def test_a_time_before_it_was_subscribed_is_said_to_be_one(
    hub: Hub, browser: OperatorBrowser
) -> None:
    scene = Scene(hub.storage)
    await scene.subscribe(await scene.add_feed())
    shown = await browser.open(f"{PAGE}?until=2025-12-31T23:00Z")
    assert "It was not subscribed then, only at" in text_of(shown)


async def test_what_was_given_up_can_be_discarded(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await give_up(hub)
    _, after = await press(browser, PAGE, "/admin/dead-letters/1/discard")
    assert "it is not sent any more" in text_of(after)
    assert "Nothing was given up." in text_of(after)


async def test_a_retry_is_made_due_from_the_page_of_its_subscription(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await give_up(hub)
    path = "/admin/subscriptions/2"
    _, after = await press(browser, path, f"{path}/retry")
    assert "The retry is due now" in text_of(after)


async def test_a_failed_request_is_shown_with_its_answer(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await give_up(hub)
    listed = read(await browser.open("/admin/deliveries?status=5xx&host=you.example"))
    [link] = listed.xpath("//section[@aria-labelledby='failed']//td/a/@href")
    answer = await browser.open(link)
    [curl] = read(answer).xpath("//pre[@id='curl']/text()")
    assert curl.startswith("curl -X POST https://subscriber.example/late")
    text = text_of(answer)
    assert "answered 503" in text
    assert "HTTP/1.1 503 Busy" in text
    assert "retry-after: 60" in text
    assert "complete answer, but not a 2xx" in text
    assert "This is how it began." in text


@pytest.mark.parametrize(
    "path",
    ["/admin/subscriptions/9", "/admin/deliveries/9", "/admin/subscriptions?account=x"],
)
async def test_what_is_not_there_is_not_found(
    browser: OperatorBrowser, path: str
) -> None:
    assert (await browser.open(path)).status_code in (404, 422)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/admin/deliveries?status=9xx", "Answer: expected a status such as 404"),
        ("/admin/deliveries?before=odd", "Before: expected next of the page before"),
        ("/admin/subscriptions?state=odd", "State: expected one of"),
        ("/admin/subscriptions/1?since=odd", "From: expected an age such as"),
        ("/admin/subscriptions/1?outcome=odd", "Outcome: expected one of"),
    ],
)
async def test_a_bad_filter_is_told_in_words(
    browser: OperatorBrowser, path: str, reason: str
) -> None:
    answer = await browser.open(path)
    assert answer.status_code == 422
    assert reason in text_of(answer)


@pytest.mark.parametrize("text", HOSTILE)
async def test_no_text_of_subscribers_becomes_part_of_a_page(
    hub: Hub, browser: OperatorBrowser, text: str
) -> None:
    await give_up(hub, reason=text)
    scene = Scene(hub.storage)
    feed = await scene.add_feed("c")
    await scene.subscribe(feed, callback=f"https://you.example/{text}")
    await scene.publish(feed, text)
    await scene.deliver()
    pages = [
        await browser.open("/admin/subscriptions"),
        await browser.open("/admin/subscriptions/1"),
        await browser.open("/admin/subscriptions/3"),
        await browser.open("/admin/subscriptions/3/request"),
        await browser.open("/admin/deliveries"),
        await browser.open("/admin/deliveries/1"),
        await browser.client.get("/admin/deliveries", params={"host": text}),
        await browser.client.get("/admin/subscriptions", params={"topic": text}),
    ]
    for answer in pages:
        page = read(answer)
        assert len(page.xpath("//script")) == 1
        assert page.xpath("//script[not(@src)] | //style | //@style | //img") == []
        assert page.xpath("//@*[starts-with(name(), 'on')]") == []
        links = page.xpath("//@href | //@src | //@action")
        assert [each for each in links if not each.startswith(("/", "#"))] == []


async def subscribe(
    browser: OperatorBrowser, callback: str = HOOK, **fields: str
) -> httpx2.Response:
    """By the form of the list."""
    page = read(await browser.open("/admin/subscriptions"))
    token = page.xpath("//details[@id='subscribe']//input[@name='form_token']/@value")
    topic = "https://a.example/feed"
    sent = {"callback": callback, "topic": topic, "form_token": token[0], **fields}
    return await browser.send("/admin/subscriptions", **sent)


async def test_a_callback_is_subscribed_by_a_form(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await Scene(hub.storage).add_feed()
    answer = await subscribe(browser, secret="geheim", format="atom", updates="all")
    assert answer.headers["location"] == f"{PAGE}?done=subscribed"
    made = await hub.storage.subscriptions.get(SubscriptionId(1))
    assert made is not None
    assert (made.callback, made.secret, made.format) == (HOOK, "geheim", Format.ATOM)
    assert made.updates is Updates.ALL


async def test_subscribing_again_changes_what_is_given_and_keeps_the_secret(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await Scene(hub.storage).add_feed()
    await subscribe(browser, secret="geheim", format="json")
    answer = await subscribe(browser, format="atom")
    assert answer.headers["location"] == f"{PAGE}?done=changed"
    made = await hub.storage.subscriptions.get(SubscriptionId(1))
    assert made is not None
    assert (made.secret, made.format) == ("geheim", Format.ATOM)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"callback": "nowhere"}, "Callback: "),
        ({"format": "telex"}, "Format: expected one of json, atom"),
    ],
)
async def test_a_form_that_cannot_be_understood_subscribes_nobody(
    hub: Hub, browser: OperatorBrowser, fields: dict[str, str], words: str
) -> None:
    await Scene(hub.storage).add_feed()
    answer = await subscribe(browser, **fields)
    assert answer.status_code == 422
    assert words in text_of(answer)
    assert await hub.storage.subscriptions.get(SubscriptionId(1)) is None


async def test_an_empty_search_says_from_when_on_failures_are_kept(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    subscription = await hub.storage.subscriptions.get(SubscriptionId(1))
    assert subscription is not None
    failures = tuple(failed(subscription, at(60 + each)) for each in range(3))
    await Scene(hub.storage).flush(attempts=failures)
    await hub.storage.deliveries.trim_attempts(at(0), 9, kept=2)
    text = text_of(await browser.open(f"{PAGE}?until=2026-01-01T00:01"))
    assert "nothing before 2026-01-01 00:01:01 UTC is kept" in text


async def test_urls_in_a_table_may_be_broken_after_a_slash_only(
    browser: OperatorBrowser, feed: StoredFeed
) -> None:
    page = await browser.open("/admin/subscriptions")
    assert ">https://<wbr>you.example/<wbr>hook</a>" in page.text
