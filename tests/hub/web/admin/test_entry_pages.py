"""An entry's page: its way through the hub, and what it says."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from msgspec.structs import replace

from hub.core.delivery.delivery_outcome import GONE
from hub.services.entry_reports import SHOWN_SUBSCRIBERS
from protocols.model import Link, Text
from storage.records import (
    Attempt,
    AttemptReason,
    EntryId,
    FeedId,
    NewDeadLetter,
    Poll,
    PollOutcome,
    PollReason,
    RecordKind,
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
from tests.support.services import Hub
from tests.support.storage_scene import Scene, fetch, outcome_of, record

TOPIC = "https://example.org/feed"
CALLBACK = "https://you.example/hook"


async def add_feed(browser: OperatorBrowser) -> FeedId:
    answer = await browser.client.post("/api/feeds", json={"url": TOPIC}, headers=ADMIN)
    return FeedId(answer.json()["id"])


async def commit(
    hub: Hub,
    feed_id: FeedId,
    *,
    poll: PollReason | None = PollReason.PINGED,
    kind: RecordKind = RecordKind.ENTRIES,
    **more: object,
) -> str:
    """An entry that was published seven minutes ago, and the path of its page."""
    stored = await hub.storage.feeds.get(feed_id)
    assert stored is not None
    now = hub.clock.now()
    published = now - timedelta(minutes=7)
    entry = replace(an_entry("one"), **{"published": published, **more})  # type: ignore[arg-type]
    outcome = PollOutcome.NEW
    seen = poll and Poll(at=now, reason=poll, outcome=outcome, code=200, milliseconds=9)
    await hub.storage.log.commit(
        fetch(
            stored,
            when=now,
            entries=(entry,),
            records=(record("one", kind=kind),),
            poll=seen,
        )
    )
    [latest] = await hub.storage.log.latest_entries(feed_id, 1)
    return f"/admin/entries/{latest.id}"


async def test_its_stations_are_told_with_their_times(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed_id = await add_feed(browser)
    body = {"callback": CALLBACK, "topic": TOPIC}
    await browser.client.post("/api/subscriptions", json=body, headers=ADMIN)
    path = await commit(hub, feed_id)
    hub.clock.advance(2)
    await Scene(hub.storage).deliver(hub.clock.now())

    answer = await browser.open(path)

    assert [row[:1] + row[2:] for row in rows(answer)] == [
        ["Published", "", "by the date in the feed"],
        ["Seen", "7 min", "by a poll (pinged), which was answered 200 within 9 ms"],
        ["Committed", "7 min", "as a new entry, in record 1 of the log"],
        [
            "Delivered",
            "7 min 2 s",
            f"to {CALLBACK} : answered 200; that took 12 ms. The request",
        ],
    ]


@pytest.mark.parametrize(
    ("seen_by", "before", "count"),
    [
        (PollReason.PLANNED, {}, 2),
        (PollReason.PLANNED, {"outcome": PollOutcome.FAILED}, 1),
        (PollReason.PLANNED, {"reason": PollReason.PUSHED}, 1),
        (PollReason.PLANNED, {"reason": PollReason.PUBLISHED}, 1),
        (PollReason.PLANNED, {"milliseconds": 61_000}, 1),
        (PollReason.CONTINUED, {}, 0),
    ],
)
async def test_polls_that_did_not_have_it_yet_say_that_its_publisher_showed_it_late(
    hub: Hub,
    browser: OperatorBrowser,
    seen_by: PollReason,
    before: dict[str, object],
    count: int,
) -> None:
    """Only those that were answered and began after its publication."""
    feed_id, now = await add_feed(browser), hub.clock.now()
    stored = await hub.storage.feeds.get(feed_id)
    assert stored is not None
    for minutes, changed in ((9, {}), (6, before), (2, {})):
        poll = Poll(
            at=now - timedelta(minutes=minutes),
            reason=PollReason.PLANNED,
            outcome=PollOutcome.UNCHANGED,
            code=200,
            milliseconds=100,
        )
        poll = replace(poll, **changed)  # type: ignore[arg-type]
        await hub.storage.log.commit(fetch(stored, when=poll.at, poll=poll))
    path = await commit(hub, feed_id, poll=seen_by)

    way = await browser.client.get(f"/api{path.removeprefix('/admin')}", headers=ADMIN)
    [seen] = [row for row in rows(await browser.open(path)) if row[0] == "Seen"]

    last = now - timedelta(minutes=2)
    told = way.json()
    assert told["polls_without"] == count
    assert told["last_poll_without"] == (f"{last:%FT%TZ}" if count else None)
    polls = f"{count} {'poll' if count == 1 else 'polls'} in between, the last at"
    said = f"{polls} {last:%F %T} UTC , did not have it: its publisher showed it later"
    assert seen[3].endswith(said) is (count > 0)


async def test_what_was_given_up_and_sent_again_is_told_in_the_order_of_time(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed_id = await add_feed(browser)
    scene = Scene(hub.storage)
    feed = await hub.storage.feeds.get(feed_id)
    assert feed is not None
    late, other = [await scene.subscribe(feed, name) for name in ("late", "other")]
    path = await commit(hub, feed_id)
    (chunk,) = await scene.claim(hub.clock.now())
    hub.clock.advance(2)
    await scene.fail(chunk, other, when=hub.clock.now())
    again = Attempt(
        subscription_id=late.id,
        position=chunk.record.position,
        at=hub.clock.now() + timedelta(seconds=60),
        status=204,
        milliseconds=9,
        reason=AttemptReason.SENT_AGAIN,
    )
    hub.clock.advance(2)
    lost = NewDeadLetter(
        subscription_id=late.id,
        lease_id=0,
        first=chunk.record.position,
        last=chunk.record.position,
        reason="tried too often",
        at=hub.clock.now(),
    )
    await scene.flush(given_up=(lost,), attempts=(again,), when=hub.clock.now())

    told = rows(await browser.open(path))[3:]

    assert [row[0] for row in told] == [
        *("Delivered", "Not delivered", "Given up", "Delivered", "Waits")
    ]
    assert "tried too often" in told[2][3]
    assert "(sent again, as asked)" in told[3][3]


async def test_requests_to_callbacks_that_are_gone_since_are_told_as_well(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed_id, scene = await add_feed(browser), Scene(hub.storage)
    feed = await hub.storage.feeds.get(feed_id)
    assert feed is not None
    took, refused = [await scene.subscribe(feed, name) for name in ("took", "refused")]
    path, now = await commit(hub, feed_id), hub.clock.now()
    (chunk,) = await scene.claim(now)
    failed = Attempt(
        subscription_id=refused.id,
        position=chunk.record.position,
        at=now + timedelta(seconds=1),
        status=410,
        milliseconds=4,
        error=GONE,
    )
    outcomes = tuple(
        outcome_of(chunk, index, 410 if member.id == refused.id else 200)
        for index, member in chunk.pending
    )
    gone = tuple((each.id, GONE) for each in (took, refused))
    await scene.flush(when=now, outcomes=outcomes, attempts=(failed,), ended=gone)

    answer = await browser.open(path)

    told = rows(answer)[3:]
    assert [row[0] for row in told] == ["Delivered", "Not delivered"]
    over = f"over since {now:%Y-%m-%d %H:%M:%S} UTC"
    assert told[0][3].startswith(f"to {took.callback} {over} : answered 200")
    assert told[1][3].startswith(f"to {refused.callback} {over} : {GONE}")
    assert "all that are over" not in text_of(answer)


async def test_a_page_that_leaves_out_ended_subscribers_says_so(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed_id, scene = await add_feed(browser), Scene(hub.storage)
    feed = await hub.storage.feeds.get(feed_id)
    assert feed is not None
    path = await commit(hub, feed_id)
    for number in range(SHOWN_SUBSCRIBERS):
        made = await scene.subscribe(feed, f"s{number}")
        await scene.flush(ended=((made.id, GONE),))
    [link] = read(await browser.open(path)).xpath("//a[. = 'all that are over']/@href")
    assert len(rows(await browser.open(link))) == SHOWN_SUBSCRIBERS


async def test_its_deliveries_are_found_by_its_record_and_who_waits_is_named(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed_id = await add_feed(browser)
    body = {"callback": CALLBACK, "topic": TOPIC}
    await browser.client.post("/api/subscriptions", json=body, headers=ADMIN)
    path, scene = await commit(hub, feed_id), Scene(hub.storage)
    feed = await hub.storage.feeds.get(feed_id)
    assert feed is not None
    hub.clock.advance(2 * 3_600)
    await scene.deliver(hub.clock.now())
    await scene.subscribe_retrying(feed)
    await scene.publish(feed, "last", when=hub.clock.now())
    [latest] = await hub.storage.log.latest_entries(feed_id, 1)

    first = [row[0] for row in rows(await browser.open(path))]
    told = rows(await browser.open(f"/admin/entries/{latest.id}"))
    last = [row[0] for row in told]

    assert first == ["Published", "Seen", "Committed", "Delivered"]
    assert last == ["Published", "Committed", "Waits"]
    assert told[-1][1:] == [
        "not delivered yet failing since 2026-01-01 00:00:00 UTC",
        "",
        "for https://subscriber.example/late : answered 500; next try due",
    ]


async def test_a_page_of_a_feed_leads_to_its_entries(
    hub: Hub, browser: OperatorBrowser
) -> None:
    path = await commit(hub, await add_feed(browser))
    page = read(await browser.open("/admin/feeds/1"))
    assert path in page.xpath("//a/@href")


async def test_nothing_is_reckoned_from_a_date_that_is_not_believed(
    hub: Hub, browser: OperatorBrowser
) -> None:
    old = hub.clock.now() - timedelta(days=271)
    path = await commit(hub, await add_feed(browser), published=old)
    published, seen, committed = [row[2:] for row in rows(await browser.open(path))]
    assert "it is not believed" in published[1]
    assert (seen[0], committed[0]) == ("0 s", "0 s")
    assert "After the commit" in text_of(await browser.open(path))


async def test_its_record_is_found_whatever_date_its_publisher_gives_it_later(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed_id = await add_feed(browser)
    await commit(hub, feed_id)
    hub.clock.advance(3600)
    path = await commit(hub, feed_id, published=hub.clock.now() + timedelta(minutes=7))
    assert "any more" not in text_of(await browser.open(path))


async def test_it_says_what_is_not_known_any_more(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed_id = await add_feed(browser)
    path = await commit(hub, feed_id, poll=None, published=None)
    text = text_of(await browser.open(path))
    assert "no date" in text
    assert "The history of the feed's polls does not reach back to it." in text


@pytest.mark.parametrize("text", HOSTILE)
async def test_what_an_entry_says_is_text_and_nothing_else(
    hub: Hub, browser: OperatorBrowser, text: str
) -> None:
    path = await commit(
        hub,
        await add_feed(browser),
        title=text,
        id=text,
        content=Text(value=f"<p onclick=alert(1)>{text}</p>"),
        links=(
            Link(href="javascript:alert(1)"),
            Link(href=f"https://e.example/{text}"),
        ),
    )
    page = read(await browser.open(path))
    assert len(page.xpath("//script")) == 1
    assert not page.xpath("//main//img | //main//style | //*[@onclick or @autofocus]")
    assert not page.xpath("//a[starts-with(@href, 'javascript')]")
    assert text in page.text_content()


@pytest.mark.parametrize("id", [EntryId(99), "x"])
async def test_an_unknown_entry_is_404(browser: OperatorBrowser, id: object) -> None:
    assert (await browser.open(f"/admin/entries/{id}")).status_code == 404


async def test_entries_are_listed_by_how_late_they_were(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed = await hub.storage.feeds.get(await add_feed(browser))
    assert feed is not None
    for title, ago in (("late", 50), ("soon", 5)):
        hub.clock.advance(1)
        now = hub.clock.now()
        published = now - timedelta(seconds=ago)
        entry = an_entry(title, title=title, published=published)
        commit = fetch(feed, when=now, entries=(entry,), records=(record(title),))
        await hub.storage.log.commit(commit)
    hub.clock.advance(1)
    scene = Scene(hub.storage)
    await scene.publish(feed, "undated", when=hub.clock.now())
    hub.clock.advance(1)
    by_delay = await browser.open("/admin/entries?since=10min&order=delay")
    assert (
        "Of all 3 entries of this time. 1 without a believable date is left out: how"
        " late they are cannot be told."
    ) in text_of(by_delay)
    latest = await browser.open("/admin/entries?since=10min")
    titles = [[row[0] for row in rows(each)][-3:] for each in (by_delay, latest)]
    assert titles[0][-2:] == ["late", "soon"]
    assert "undated" not in titles[0]
    assert titles[1] == ["undated", "soon", "late"]
    path = f"/admin/entries?since=10min&feed={feed.id}&search=LATE"
    found = await browser.open(path)
    assert [row[0] for row in rows(found)][-1:] == ["late"]
    assert (
        f"feed={feed.id}&search=LATE" in read(found).xpath("//a[@rel='prev']/@href")[0]
    )
    for odd, said in (
        ("feed=x", "Feed, by its number: "),
        (f"search={'x' * 201}", "Words of the title: "),
    ):
        answer = await browser.open(f"/admin/entries?{odd}")
        assert answer.status_code == 422
        assert said in text_of(answer)


async def test_a_page_of_words_says_how_far_was_looked(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed = await hub.storage.feeds.get(await add_feed(browser))
    assert feed is not None
    hub.clock.advance(1)
    titles = [f"news {number}" for number in range(51)]
    entries = tuple(an_entry(each, title=each) for each in titles)
    now = hub.clock.now()
    commit = fetch(feed, when=now, entries=entries, records=(record(*titles),))
    await hub.storage.log.commit(commit)
    hub.clock.advance(1)
    said = f"Looked for these words back to {now:%Y-%m-%d %H:%M:%S} UTC;"
    first = await browser.open("/admin/entries?since=10min&search=news")
    assert said in text_of(first)
    (more,) = read(first).xpath("//p[@class='pages']/a[@rel='next']/@href")
    assert "Looked for these words" not in text_of(await browser.open(more))


@pytest.mark.parametrize("is_dated", [True, False])
async def test_a_pause_of_the_feed_before_the_entry_was_seen_is_named(
    hub: Hub, browser: OperatorBrowser, *, is_dated: bool
) -> None:
    feed_id = await add_feed(browser)
    token = await browser.form_token()
    for change in ("pause", "resume"):
        hub.clock.advance(240)
        await browser.send(f"/admin/feeds/{feed_id}/{change}", form_token=token)
    hub.clock.advance(60)
    more: dict[str, object] = {} if is_dated else {"published": None, "updated": None}
    page = await browser.open(await commit(hub, feed_id, **more))
    stations = [row[0] for row in rows(page)]
    assert ("Feed paused" in stations) is is_dated
    if is_dated:
        [_, paused, *_] = rows(page)
        assert paused[2] == "2 min"
        assert "by operator, by pages, until" in paused[3]
        assert "so the entry could not be seen before" in paused[3]


async def test_a_pause_before_an_entry_ends_by_the_polls_that_its_report_has(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed_id = await add_feed(browser)
    token = await browser.form_token()
    for change in ("pause", "resume"):
        hub.clock.advance(240)
        await browser.send(f"/admin/feeds/{feed_id}/{change}", form_token=token)
    polled = hub.clock.now() - timedelta(seconds=9)
    hub.clock.advance(60)
    path = await commit(hub, feed_id)
    report = await hub.services.entry_reports.get(EntryId(int(path.split("/")[-1])))
    poll = Poll(
        at=polled,
        reason=PollReason.PLANNED,
        outcome=PollOutcome.UNCHANGED,
        code=304,
        milliseconds=9,
    )
    found = await hub.services.feed_reports.pauses_before(
        dataclasses.replace(report, polls=(poll,))
    )
    assert [each.resumed_at for each in found] == [polled]
