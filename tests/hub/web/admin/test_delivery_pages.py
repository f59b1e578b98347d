"""The list of deliveries: those given up, retried, failed, and taken at once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from storage.records import (
    Attempt,
    AttemptReason,
    NewDeadLetter,
    Position,
    RecordKind,
    RetryingSubscription,
    RetryMoved,
    RetryOpened,
    StoredFeed,
)
from tests.support.admin import ADMIN
from tests.support.failures import details, failed
from tests.support.operator_browser import OperatorBrowser, read, rows, text_of
from tests.support.services import Hub
from tests.support.storage_scene import LEASE, START, Scene, at, outcome_of

PAGE = "/admin/deliveries"
SECTIONS = ("dead-letters", "retrying", "failed", "sent")


async def send(hub: Hub, feed: StoredFeed, times: int = 1) -> list[Position]:
    """Records of a feed that its two subscribers take, a second after the other."""
    scene = Scene(hub.storage)
    for name in "ab":
        await scene.subscribe(feed, name)
    done = []
    for second in range(times):
        await scene.publish(feed, when=at(second))
        done += await scene.deliver(at(second))
    return done


@pytest.fixture
async def feed(hub: Hub) -> StoredFeed:
    hub.clock.advance((START - hub.clock.now()).total_seconds())
    return await Scene(hub.storage).add_feed()


def sections(page: Any) -> set[str]:
    return {each for each in SECTIONS if read(page).xpath(f"//h2[@id='{each}']")}


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        ("", set(SECTIONS)),
        ("given-up", {"dead-letters"}),
        ("retried", {"retrying"}),
        ("failed", {"failed"}),
        ("delivered", {"sent"}),
    ],
)
async def test_deliveries_are_shown_by_outcome(
    browser: OperatorBrowser, outcome: str, shown: set[str]
) -> None:
    assert sections(await browser.open(f"{PAGE}?outcome={outcome}")) == shown


async def test_what_was_taken_at_once_is_listed_with_how_many_took_it(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    [position] = await send(hub, feed)
    [row] = rows(await browser.open(f"{PAGE}?outcome=delivered"))
    assert (row[0], row[2], row[5]) == (feed.url, "2 of 2", str(position))
    assert row[3].endswith(" ms")
    answer = await browser.client.get("/api/deliveries/sent", headers=ADMIN)
    [sent] = answer.json()["sent"]
    assert (sent["topic"], sent["delivered"], sent["callbacks"]) == (feed.url, 2, 2)


@pytest.mark.parametrize(
    ("query", "link"),
    [
        (
            "subscription=1&since=2026-01-01T00:00",
            "/admin/subscriptions/1?outcome=delivered&since=2026-01-01T00%3A00#attempts",
        ),
        (
            "host=subscriber.example",
            "/admin/subscriptions?search=subscriber.example",
        ),
        ("status=5xx", "/admin/deliveries?outcome=delivered"),
    ],
)
async def test_where_deliveries_of_one_callback_are_listed_is_a_link(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed, query: str, link: str
) -> None:
    await send(hub, feed)
    page = read(await browser.open(f"{PAGE}?{query}"))
    assert link in page.xpath("//section[@aria-labelledby='sent']//a/@href")


async def test_a_callback_that_is_slow_each_time_is_listed_with_its_typical_time(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    slow, quick = [await Scene(hub.storage).subscribe(feed, name) for name in "ab"]
    for each, taken in ((slow, 4_000), (quick, 120)):
        hub.metrics.callback_durations.note(
            each.id, taken, at=hub.clock.unix(), is_delivered=True
        )
    page = await browser.open(f"{PAGE}/slowest")
    assert [row[:2] for row in rows(page)] == [
        [slow.callback, "4 s"],
        [quick.callback, "120 ms"],
    ]
    since = hub.clock.now() - timedelta(days=7)
    assert f"the last 16 requests to each since {since:%Y-%m-%d} " in text_of(page)
    [current] = read(page).xpath("//nav//a[@aria-current='page']/@href")
    assert current == f"{PAGE}/slowest"
    for start in ("/admin", "/admin/subscriptions", PAGE):
        links = read(await browser.open(start)).xpath("//main//a/@href")
        assert f"{PAGE}/slowest" in links
    await hub.storage.subscriptions.end(quick.id, "", START, tell=False)
    answer = await browser.client.get("/api/deliveries/slowest", headers=ADMIN)
    [found] = answer.json()["callbacks"]
    assert (found["subscription"], found["median_milliseconds"]) == (slow.id, 4_000)
    assert datetime.fromisoformat(answer.json()["since"]) == since


async def test_every_dead_letter_that_is_shown_is_told_by_what_it_is_of(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    scene = Scene(hub.storage)
    late = [await scene.subscribe(feed, f"s{number}") for number in range(25)]
    first = await scene.publish(feed, "The news")
    lost = [
        NewDeadLetter(
            subscription_id=each.id,
            lease_id=0,
            first=first,
            last=first,
            reason="answered 500",
            at=START,
        )
        for each in late
    ]
    await scene.flush(given_up=tuple(lost))
    found = rows(await browser.open(f"{PAGE}?outcome=given-up"))
    assert len(found) == 25
    assert all("1 entry: The news" in row[3] for row in found)


REFUSED = "answered 500"


@pytest.mark.parametrize(
    ("answers", "end", "said"),
    [
        ([], "", "The dead letter is being sent to {callback};"),
        ([(1, "")], "", "{callback} has accepted a part of the dead letter: it"),
        ([(1, ""), (3, "")], "finished", "{callback} has accepted the dead letter: it"),
        (
            [(3, ""), (5, REFUSED)],
            "finished",
            "{callback} has accepted the dead letter: it answered 204",
        ),
        ([(5, "")], "finished", "{callback} has accepted the dead letter: it"),
        ([], "finished", "Nothing of the dead letter is left to be sent to"),
        (
            [(1, ""), (2, REFUSED)],
            "",
            "has not accepted the dead letter: answered 500. It is tried again by",
        ),
        (
            [(1, ""), (2, REFUSED)],
            "given up",
            "has not accepted the dead letter: answered 500. What it did not get",
        ),
        ([(1, "")], "given up", "What {callback} did not get of it is listed below."),
        (
            [(3, ""), (5, REFUSED)],
            "later given up",
            "{callback} has accepted the dead letter: it answered 204",
        ),
    ],
)
async def test_it_is_said_what_came_of_a_dead_letter_that_was_sent_again(
    hub: Hub,
    browser: OperatorBrowser,
    feed: StoredFeed,
    answers: list[tuple[int, str]],
    end: str,
    said: str,
) -> None:
    scene = Scene(hub.storage)
    late = await scene.subscribe_retrying(feed)
    for key in "bc":
        await scene.publish(feed, key)
    (claimed,) = await scene.claim_retrying(at(5))
    await scene.flush(given_up=(given_up(claimed, 1),))
    hub.clock.advance(60)
    token = await browser.form_token()
    action = "/admin/dead-letters/1/retry"
    sent = await browser.send(action, form_token=token)
    (claimed,) = await scene.claim_retrying(hub.clock.now())
    for position, error in answers:
        hub.clock.advance(1)
        again = Attempt(
            subscription_id=late.id,
            position=Position(position),
            at=hub.clock.now(),
            status=500 if error else 204,
            milliseconds=9,
            error=error,
            reason=AttemptReason.CATCH_UP,
        )
        await scene.flush(attempts=(again,))
    if end.endswith("given up"):
        taken = [position for position, error in answers if not error]
        last = 3 if end == "given up" else 5
        await scene.flush(given_up=(given_up(claimed, taken[-1] + 1, last),))
    else:
        reached = 3 if end else answers[0][0] if answers else 0
        moved = RetryMoved(
            subscription_id=late.id,
            lease_id=claimed.lease_id,
            position=Position(reached),
            attempts=0,
            next_try=at(99),
            last_status=204,
            finished=bool(end),
        )
        await scene.flush(moved=(moved,))
    page = await browser.open(sent.headers["location"])
    assert said.format(callback=late.callback) in text_of(page)
    [fields] = read(page).xpath("//input[@name='filter']/@value") or [""]
    assert fields == ""


def given_up(
    retrying: RetryingSubscription, first: int, last: int = 3
) -> NewDeadLetter:
    """A dead letter of the records from the first to the last."""
    return NewDeadLetter(
        subscription_id=retrying.subscription.id,
        lease_id=retrying.lease_id,
        first=Position(first),
        last=Position(last),
        reason="answered 500 (after 11 tries)",
        at=at(9),
    )


async def test_pages_of_what_was_taken_follow_each_other(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    sent = await send(hub, feed, times=60)
    first = await browser.open(PAGE)
    [path] = read(first).xpath("//a[text()='More of them']/@href")
    met, pages = list[str](), 0
    while path:
        page = await browser.open(path)
        met += [row[5] for row in rows(page)]
        path = next(iter(read(page).xpath("//a[@rel='next']/@href")), "")
        pages += 1
    assert met == [f"{each}" for each in reversed(sent)]
    assert pages == 2


@pytest.mark.parametrize(
    ("topic", "count"), [("https://a.example/feed", 1), ("https://b.example/feed", 0)]
)
async def test_deliveries_are_found_by_topic(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed, topic: str, count: int
) -> None:
    await send(hub, feed)
    page = await browser.open(f"{PAGE}?outcome=delivered&topic={quote(topic)}")
    assert len(rows(page)) == count


@pytest.mark.parametrize(
    "query", ["status=5xx", "host=a.example", "subscription=0,001"]
)
async def test_by_what_only_failures_are_known_nothing_is_said_of_the_others(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed, query: str
) -> None:
    await send(hub, feed)
    page = await browser.open(f"{PAGE}?outcome=delivered&{query}")
    assert "found here by topic and time alone" in text_of(page)
    assert rows(page) == []


async def test_an_outcome_that_there_is_not_is_refused(
    browser: OperatorBrowser,
) -> None:
    answer = await browser.open(f"{PAGE}?outcome=odd")
    assert answer.status_code == 422
    assert "Outcome: expected one of given-up" in text_of(answer)


async def test_a_failed_request_names_what_it_told_of_and_what_is_kept_of_it(
    hub: Hub, browser: OperatorBrowser
) -> None:
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed)
    await scene.publish(feed, "News", "Other")
    await scene.flush(attempts=(failed(subscription, kept=details()),))
    answer = await browser.open("/admin/deliveries/1")
    of = "//dt[. = 'Told of']/following-sibling::dd[1]"
    links = read(answer).xpath(f"{of}/a")
    assert [each.text_content() for each in links] == ["News", "Other"]
    assert "News" in text_of(await browser.open(links[0].get("href")))
    text = text_of(answer)
    assert "of its body only the size, 4.71 kB, and a checksum are kept" in text
    assert "No body of a request is kept" in text
    await scene.publish(feed, "News", kind=RecordKind.DELETED)
    [told] = read(await browser.open("/admin/deliveries/1")).xpath(of)
    assert [each.text_content() for each in told.xpath("./a | ./span")] == [
        "Other",
        "1 more not shown, deleted or hidden since",
    ]


async def test_a_failed_request_that_the_log_no_longer_has_names_no_entry(
    hub: Hub, browser: OperatorBrowser
) -> None:
    scene = Scene(hub.storage)
    subscription = await scene.subscribe(await scene.add_feed())
    await scene.flush(attempts=(failed(subscription),))
    page = text_of(await browser.open("/admin/deliveries/1"))
    assert "not known: the log no longer has it" in page


async def test_why_an_answer_is_not_kept_is_said_and_what_to_do(
    hub: Hub, browser: OperatorBrowser
) -> None:
    scene = Scene(hub.storage)
    subscription = await scene.subscribe(await scene.add_feed())
    attempt = failed(subscription, kept=details(is_withheld=True))
    await scene.flush(attempts=(attempt,))
    page = text_of(await browser.open("/admin/deliveries/1"))
    assert "its answer may hold what a service inside it says" in page
    assert "look in the log of that service" in page


async def test_a_try_that_is_due_or_under_way_is_not_told_as_the_next_one(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    scene = Scene(hub.storage)
    await scene.subscribe_retrying(feed)

    async def next_try() -> str:
        page = await browser.open(PAGE)
        assert "Tries by the schedule count: after 11 failures" in text_of(page)
        assert "if the last try failed at least 10 s ago, or as" in text_of(page)
        [row] = read(page).xpath("//*[@data-label='Next try']")
        return " ".join(row.text_content().split())

    assert await next_try() == "in 5 s, maybe sooner with a new record"
    hub.clock.advance(60)
    assert await next_try() == "due"
    await scene.claim_retrying(hub.clock.now())
    assert await next_try() == "under way"


async def test_since_when_a_callback_is_slow_is_said_alike_on_each_list(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    scene = Scene(hub.storage)
    slow = await scene.subscribe(feed)
    first, last = await scene.publish(feed), await scene.publish(feed, "b")
    [chunk] = await scene.claim()
    opened = RetryOpened(
        subscription_id=slow.id,
        position=Position(first - 1),
        attempts=0,
        next_try=START,
        failing_since=START,
        lease_id=LEASE,
    )
    await scene.flush(outcomes=(outcome_of(chunk, 0, 0),), opened=(opened,))
    moved = RetryMoved(
        subscription_id=slow.id,
        lease_id=LEASE,
        position=Position(last - 1),
        attempts=0,
        next_try=at(50),
        last_status=200,
    )
    await scene.flush(when=at(40), moved=(moved,))
    hub.clock.advance(45)

    async def health(path: str, cell: str) -> str:
        [found] = read(await browser.open(path)).xpath(cell)
        return " ".join(found.text_content().split())

    deliveries = await health(f"{PAGE}?outcome=retried", "//*[@data-label='Health']")
    listed = await health("/admin/subscriptions?state=slow", "//td[@class='health']")
    assert deliveries == "slow for 45 s"
    why = "it is behind, and is sent what it lacks in order"
    assert listed == f"{deliveries}{why}"

    caught_up = replace(failed(slow, at(44), status=200), error="", milliseconds=12_300)
    await scene.flush(attempts=(caught_up,))
    took = "its last request took 12.3 s"
    listed = await health("/admin/subscriptions?state=slow", "//td[@class='health']")
    deliveries = await health(f"{PAGE}?outcome=retried", "//*[@data-label='Health']")
    assert listed == f"slow for 45 s{why}; {took}"
    assert deliveries == f"slow for 45 s{took}"


async def test_a_plan_is_for_the_outcome_that_the_filter_shows(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    await Scene(hub.storage).subscribe_retrying(feed, "late")
    hub.clock.advance(60)
    listed = await browser.open(f"{PAGE}?outcome=retried&host=")
    assert "Send again or discard all that is being retried" in text_of(listed)
    [filter] = read(listed).xpath("//form[@id='plan']/input[@name='filter']/@value")
    assert filter == "outcome=retried"
    fields = {"kind": "deliveries", "action": "discard", "which": "all"}
    token = await browser.form_token()
    for given, words in (
        (filter, "Discard 1 dead letter or retrying subscription"),
        ("outcome=given-up", "there is nothing to do"),
    ):
        made = await browser.send(
            "/admin/plans", form_token=token, filter=given, **fields
        )
        shown = text_of(await browser.open(made.headers["location"]))
        assert words in shown
        assert given.removeprefix("outcome=") in shown
    made = await browser.send(
        "/admin/plans", form_token=token, filter="outcome=failed", **fields
    )
    assert made.status_code == 422


async def test_a_host_with_a_port_is_refused_with_what_is_expected(
    hub: Hub, browser: OperatorBrowser
) -> None:
    words = "a host without a port, such as you.example (all its ports)"
    page = await browser.open(f"{PAGE}?host=127.0.0.1:9556")
    assert page.status_code == 422
    assert words in text_of(page)
    for host in ("127.0.0.1:9556", "[::1]:80"):
        answer = await browser.client.get(
            "/api/deliveries/failed", params={"host": host}, headers=ADMIN
        )
        assert (answer.status_code, answer.json()["field"]) == (422, "host")
        assert words in answer.text
    for host in ("127.0.0.1", "[::1]", "::1"):
        page = await browser.open(f"{PAGE}?host={quote(host)}")
        assert "No subscription like that is being retried." in text_of(page)


async def test_what_was_done_to_a_dead_letter_is_no_filter_of_a_plan(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    await Scene(hub.storage).subscribe_retrying(feed, "late")
    notice = "done=due&of=1&at=1767225600.000"
    page = read(await browser.open(f"{PAGE}?{notice}&outcome=retried"))
    [wanted] = page.xpath("//form[@id='plan']/input[@name='filter']/@value")
    assert wanted == "outcome=retried"


async def test_after_a_discard_nothing_is_called_delivered(
    hub: Hub, browser: OperatorBrowser, feed: StoredFeed
) -> None:
    scene = Scene(hub.storage)
    late = await scene.subscribe_retrying(feed, "late")
    await scene.flush(attempts=(failed(late),))
    token = {"headers": ADMIN, "json": {"subscription": late.id}}
    await browser.client.post("/api/deliveries/discard", **token)
    text = text_of(await browser.open(f"/admin/subscriptions/{late.id}"))
    assert (
        "nothing waits to be delivered; what its last request was to deliver was not"
        " accepted, and was discarded" in text
    )
