"""Who did what, as operators read it, and programs."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from storage.records import (
    ANONYMOUS,
    OPERATOR,
    Account,
    AuditRecord,
    AuditSource,
    AuditTarget,
    NewFeed,
    TokenId,
)
from tests.support.admin import ADMIN
from tests.support.operator_browser import (
    HOSTILE,
    OperatorBrowser,
    read,
    rows,
    text_of,
)
from tests.support.services import START, Hub

PAGE = "/admin/audit"
PAUSED = "Pause a feed: it is not polled until it is resumed"
RECORD = AuditRecord(
    at=START,
    account=Account(id=OPERATOR, name="operator"),
    token=TokenId(3),
    session="1a2b3c4d",
    address="192.0.2.1",
    source=AuditSource.OPERATOR_PAGES,
    operation="pause_feed",
    target=AuditTarget.FEED,
    target_id=12,
    target_name="https://a.example/feed",
    status=303,
)


async def note(hub: Hub, *changes: dict[str, Any]) -> None:
    await hub.storage.audit.add([replace(RECORD, **each) for each in changes])


async def test_a_row_tells_what_who_to_what_and_the_outcome(
    hub: Hub, browser: OperatorBrowser
) -> None:
    await note(hub, {"at": hub.clock.now(), "detail": "for good"})
    await browser.open(PAGE)
    row = rows(await browser.open(f"{PAGE}?target=feed"))[0]
    assert row == [
        f"{PAUSED} for good",
        "2026-01-01 00:00:00 UTC now",
        "operator , token 3 by pages, session 1a2b3c4d , from 192.0.2.1",
        "feed 12 https://a.example/feed",
        "done",
    ]


async def test_what_is_done_on_a_page_is_there_at_once_with_a_link(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed, _ = await hub.storage.feeds.add(NewFeed(url="https://a.example/"), START)
    action = f"/admin/feeds/{feed.id}/pause"
    await browser.send(action, form_token=await browser.form_token())
    found = read(await browser.open(f"{PAGE}?target=feed&id={feed.id}"))
    assert found.xpath("//td/a[starts-with(@href, '/admin/feeds/')]/@href") == [
        f"/admin/feeds/{feed.id}"
    ]
    page = read(await browser.open(f"/admin/feeds/{feed.id}"))
    assert page.xpath("//a[text()='Who changed it']/@href") == [
        f"/admin/audit?target=feed&id={feed.id}&without=fetch_feed"
    ]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("account=anonymous", ["log_in"]),
        ("token=3", ["b", "a"]),
        ("operation=a", ["a"]),
        ("without=a", ["log_in", "b"]),
        ("outcome=refused", ["log_in", "b"]),
        ("target=feed&id=12&outcome=done", ["a"]),
        ("since=2026-11-21T00:00:02Z", ["log_in", "b"]),
        ("operation=nothing", []),
    ],
)
async def test_the_address_says_what_is_shown(
    hub: Hub, client: httpx2.AsyncClient, query: str, shown: list[str]
) -> None:
    await note(
        hub,
        {"operation": "a", "at": START.replace(second=1)},
        {"operation": "b", "at": START.replace(second=2), "status": 404},
        {
            "operation": "log_in",
            "at": START.replace(second=3),
            "account": Account(id=ANONYMOUS, name="anonymous"),
            "token": None,
            "target": None,
            "target_id": None,
            "status": 403,
        },
    )
    answer = await client.get(f"/api/audit?{query}", headers=ADMIN)
    assert [each["operation"] for each in answer.json()["records"]] == shown


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("id=3", "target"),
        ("target=cat", "target"),
        ("account=nobody-known", "account"),
        ("outcome=odd", "outcome"),
        ("since=yesterday", "since"),
        ("before=x", "before"),
        ("token=x", "token"),
    ],
)
async def test_what_cannot_be_asked_is_named(
    client: httpx2.AsyncClient, query: str, field: str
) -> None:
    answer = await client.get(f"/api/audit?{query}", headers=ADMIN)
    assert answer.status_code == 422
    assert answer.json()["field"] == field


async def test_fetches_of_a_feed_are_left_out_of_what_its_page_leads_to(
    hub: Hub, browser: OperatorBrowser
) -> None:
    feed, _ = await hub.storage.feeds.add(NewFeed(url="https://a.example/"), START)
    of_feed = {"at": hub.clock.now(), "target_id": feed.id}
    await note(hub, of_feed, {**of_feed, "operation": "fetch_feed"})
    page = read(await browser.open(f"/admin/feeds/{feed.id}"))
    [link] = page.xpath("//a[text()='Who changed it']/@href")
    shown = await browser.open(link)
    assert [row[0] for row in rows(shown)] == [PAUSED]
    [chosen] = read(shown).xpath("//select[@name='without']/option[@selected]/@value")
    assert chosen == "fetch_feed"


async def test_pages_follow_one_another(hub: Hub, browser: OperatorBrowser) -> None:
    await note(hub, *({"operation": f"op-{each}"} for each in range(60)))
    first = await browser.open(f"{PAGE}?token=3")
    [link] = read(first).xpath("//a[@rel='next']/@href")
    second = await browser.open(link)
    names = [row[0] for row in rows(first) + rows(second)]
    assert names == [f"op-{each}" for each in reversed(range(60))]


@pytest.mark.parametrize("text", HOSTILE)
async def test_nothing_in_the_trail_becomes_part_of_the_page(
    hub: Hub, browser: OperatorBrowser, text: str
) -> None:
    await note(
        hub, {"operation": text, "detail": text, "target_name": text, "address": text}
    )
    answer = await browser.open(f"{PAGE}?token=3")
    page = read(answer)
    assert len(page.xpath("//script")) == 1
    assert page.xpath("//script[not(@src)] | //style | //@style | //img") == []
    assert page.xpath("//@*[starts-with(name(), 'on')]") == []
    assert text_of(answer).count(" ".join(text.split())) == 4


async def test_without_anything_the_page_says_so(browser: OperatorBrowser) -> None:
    answer = await browser.open(f"{PAGE}?operation=remove_feed")
    assert "Nothing like that was done" in text_of(answer)


async def test_a_refused_search_keeps_what_was_entered(
    browser: OperatorBrowser,
) -> None:
    answer = await browser.open(f"{PAGE}?account=operator&since=half&token=")
    assert answer.status_code == 422
    page = read(answer)
    assert page.xpath("//nav[@aria-label='Pages']//a/@href")
    [form] = page.xpath("//main//form")
    assert form.form_values() == [("account", "operator"), ("since", "half")]
    [wrong] = form.xpath(".//*[@aria-invalid]")
    [reason] = page.xpath(f"//*[@id='{wrong.get('aria-describedby')}']")
    assert "From: expected an age" in reason.text
    assert page.xpath("//a[text()='Go back']/@href") == [f"{PAGE}?account=operator"]


async def test_what_was_to_be_subscribed_is_told_of_a_refusal(
    browser: OperatorBrowser,
) -> None:
    wanted = {"topic": "https://a.example/feed", "callback": "ftp://b.example/"}
    token = await browser.form_token()
    refused = await browser.send("/admin/subscriptions", form_token=token, **wanted)
    assert refused.status_code == 422
    [row] = rows(await browser.open("/admin/audit?outcome=refused"))
    assert row[3].endswith("ftp://b.example/ to https://a.example/feed")
    assert row[4] == "refused 422"
    assert rows(await browser.open("/admin/audit?outcome=failed")) == []
