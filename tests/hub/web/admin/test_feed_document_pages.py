"""A feed's entries, how its document is read, and its credentials, on the pages."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from storage.records import Credentials, FeedId
from tests.support.admin import ADMIN
from tests.support.documents import an_entry
from tests.support.fake_network import answered
from tests.support.operator_browser import (
    HOSTILE,
    OperatorBrowser,
    read,
    rows,
    text_of,
)
from tests.support.services import Hub
from tests.support.storage_scene import fetch, record

TOPIC = "https://example.org/feed"


@pytest.fixture
async def feed_id(browser: OperatorBrowser) -> FeedId:
    answer = await browser.client.post("/api/feeds", json={"url": TOPIC}, headers=ADMIN)
    return FeedId(answer.json()["id"])


async def commit(hub: Hub, feed_id: FeedId, *titles: str) -> None:
    """An entry of each title, the first the oldest."""
    stored = await hub.storage.feeds.get(feed_id)
    assert stored is not None
    for title in titles:
        hub.clock.advance(60)
        now = hub.clock.now()
        entry = replace(an_entry(title), title=title, published=now)
        await hub.storage.log.commit(
            fetch(stored, when=now, entries=(entry,), records=(record(title),))
        )


# --- entries ---


async def test_the_newest_entries_of_a_feed_lead_to_their_pages(
    hub: Hub, browser: OperatorBrowser, feed_id: FeedId
) -> None:
    await commit(hub, feed_id, "one", "two", "one")
    page = await browser.open(f"/admin/feeds/{feed_id}")
    found = [row for row in rows(page) if row[0] in ("one", "two")]
    assert [(title, revision) for title, *_, revision in found] == [
        ("one", "2"),
        ("two", "1"),
    ]
    [path] = read(page).xpath("//a[text()='two']/@href")
    assert "Its way" in text_of(await browser.open(path))


async def test_all_entries_of_a_feed_are_listed_page_by_page(
    hub: Hub, browser: OperatorBrowser, feed_id: FeedId
) -> None:
    titles = [f"{number}" for number in range(60)]
    await commit(hub, feed_id, *titles)
    path, met = f"/admin/feeds/{feed_id}/entries", list[str]()
    while path:
        page = await browser.open(path)
        met += [title for title, *_ in rows(page)]
        path = next(iter(read(page).xpath("//a[@rel='next']/@href")), "")
    assert met == titles[::-1]
    answer = await browser.client.get(
        f"/api/feeds/{feed_id}/entries?limit=2", headers=ADMIN
    )
    found = answer.json()
    assert [each["title"] for each in found["entries"]] == ["59", "58"]
    assert found["next"] == found["entries"][-1]["id"]
    entries = f"/admin/feeds/{feed_id}/entries"
    for address in ("/admin/feeds/99/entries", f"{entries}?before=99"):
        assert (await browser.open(address)).status_code == 404


async def test_a_feed_without_entries_says_so(
    browser: OperatorBrowser, feed_id: FeedId
) -> None:
    page = await browser.open(f"/admin/feeds/{feed_id}/entries")
    assert "no entry of this feed yet" in text_of(page)


# --- how it is read ---


async def parse(browser: OperatorBrowser, feed_id: FeedId) -> str:
    token = await browser.form_token()
    answer = await browser.send(f"/admin/feeds/{feed_id}/parse", form_token=token)
    assert answer.status_code == 200
    return text_of(answer)


async def test_a_page_shows_what_the_parser_makes_of_a_document(
    hub: Hub, browser: OperatorBrowser, feed_id: FeedId
) -> None:
    title = HOSTILE[0].replace("&", "&amp;").replace("<", "&lt;")
    document = (
        '<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel>'
        f"<title>A</title><item><title>{title}</title><link>https://a.example/1</link>"
        "<pubDate>yesterday</pubDate></item></channel></rss>"
    )
    hub.network.at[TOPIC] = answered(
        body=document.encode(), headers={"Content-Type": "text/xml"}
    )
    text = await parse(browser, feed_id)
    assert "It is read as rss, with 1 entry." in text
    assert "utf-8, by declaration" in text
    assert "an invalid date: yesterday" in text
    assert f"{HOSTILE[0]} its link https://a.example/1 it has no id of its own" in text
    path = f"/api/feeds/{feed_id}/parse"
    found = (await browser.client.post(path, headers=ADMIN)).json()
    assert (found["error"], found["status"]) == ("", 200)
    assert found["explanation"]["entries"][0]["rule"] == "its link"
    assert (await hub.storage.log.latest_entries(feed_id, 9)) == []


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (200, b"<html></html>", "It is no feed"),
        (503, b"", "answered 503"),
    ],
)
async def test_of_what_is_no_feed_it_says_why(
    hub: Hub,
    browser: OperatorBrowser,
    feed_id: FeedId,
    status: int,
    body: bytes,
    why: str,
) -> None:
    hub.network.at[TOPIC] = answered(status, body=body)
    assert why in await parse(browser, feed_id)


async def test_what_is_not_fetched_has_no_document(
    browser: OperatorBrowser, feed_id: FeedId
) -> None:
    await browser.client.delete(f"/api/feeds/{feed_id}", headers=ADMIN)
    answer = await browser.client.post(f"/api/feeds/{feed_id}/parse", headers=ADMIN)
    assert answer.status_code == 409
    assert "it is not fetched" in answer.json()["detail"]


# --- credentials ---


async def test_credentials_are_set_never_shown_and_removed(
    hub: Hub, browser: OperatorBrowser, feed_id: FeedId
) -> None:
    path = f"/admin/feeds/{feed_id}"
    token = await browser.form_token()
    fields = {"user": "me", "password": "hunter2", "headers": "X-Key: k3y\n\n"}
    answer = await browser.send(f"{path}/credentials", form_token=token, **fields)
    page = await browser.open(answer.headers["location"])
    assert "is fetched with these credentials" in text_of(page)
    assert "Credentials: it has some" in text_of(page)
    assert not any(secret in page.text for secret in ("hunter2", "k3y"))
    [target] = await hub.storage.feeds.targets([feed_id])
    assert target.credentials == Credentials(
        username="me", password="hunter2", headers={"X-Key": "k3y"}
    )
    answer = await browser.send(
        f"{path}/credentials", form_token=token, what="remove", user="me"
    )
    page = await browser.open(answer.headers["location"])
    assert "Credentials: none" in text_of(page)
    [target] = await hub.storage.feeds.targets([feed_id])
    assert target.credentials is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "a user with a password, or headers"),
        ({"headers": "s3cret"}, "lines such as Authorization"),
        ({"headers": "Host: s3cret"}, "a header that the hub does not set itself"),
    ],
)
async def test_credentials_that_cannot_be_sent_are_refused_without_being_repeated(
    browser: OperatorBrowser,
    feed_id: FeedId,
    fields: dict[str, str],
    expected: str,
) -> None:
    answer = await browser.send(
        f"/admin/feeds/{feed_id}/credentials",
        form_token=await browser.form_token(),
        **fields,
    )
    assert answer.status_code == 422
    assert expected in text_of(answer)
    assert "s3cret" not in answer.text
