"""The main path on real sockets: a feed in, signed webhooks out."""

from __future__ import annotations

import json
from datetime import UTC, timedelta
from pathlib import Path

import pytest
from lxml import etree

from hub.runtime.clock import SystemClock
from tests.support.http_server import ServerAnswer
from tests.support.publisher import entry_id
from tests.support.stage import open_stage
from tests.support.standard_webhooks import Received, verifies
from tests.support.waiting import eventually

ATOM = "{http://www.w3.org/2005/Atom}"


async def test_a_new_entry_arrives_and_the_baseline_does_not(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        subscriber = await stage.subscribe("reader", feed)
        await stage.api.fetch(feed_id)  # nothing is new

        number = await stage.publish(feed_id, feed)

        await eventually(lambda: bool(subscriber.receipts))
        await stage.hub.terminate()
        assert subscriber.numbers == [number] == [2]


async def test_a_json_notification_is_the_superfeedr_document(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        subscriber = await stage.subscribe("reader", feed, format="json")
        await stage.publish(feed_id, feed)
        await eventually(lambda: bool(subscriber.receipts))

        (receipt,) = subscriber.receipts
        headers = receipt.request.headers
        document = json.loads(receipt.request.body)
        assert headers["content-type"] == "application/json; charset=utf-8"
        assert receipt.signature_valid
        assert f'<{subscriber.topic}>; rel="self"' in headers["link"]
        assert 'rel="hub"' in headers["link"]
        sent_at = int(headers["webhook-timestamp"])
        assert abs(SystemClock().now().timestamp() - sent_at) < 60
        received = Received(headers=headers, body=receipt.request.body, now=sent_at)
        assert verifies(received, subscriber.secret)
        assert not verifies(received, "another's secret")
        assert document["status"]["feed"] == subscriber.topic
        assert document["status"]["code"] == 200
        assert [item["id"] for item in document["items"]] == [entry_id(1, 2)]


async def test_an_atom_notification_has_its_status_first(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        subscriber = await stage.subscribe("reader", feed, format="atom")
        await stage.publish(feed_id, feed)
        await eventually(lambda: bool(subscriber.receipts))

        (receipt,) = subscriber.receipts
        document = etree.fromstring(receipt.request.body)
        assert receipt.request.headers["content-type"] == "application/atom+xml"
        assert receipt.signature_valid
        assert document.tag == f"{ATOM}feed"
        assert etree.QName(document[0]).localname == "status"
        assert [each.text for each in document.iter(f"{ATOM}id")][-1] == entry_id(1, 2)


async def test_an_as_is_subscription_gets_the_document_untouched(
    tmp_path: Path,
) -> None:
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        subscriber = await stage.subscribe("reader", feed, format="as-is")
        await stage.publish(feed_id, feed)
        await eventually(lambda: bool(subscriber.receipts))

        (receipt,) = subscriber.receipts
        assert receipt.request.body == feed.document()
        assert receipt.request.headers["content-type"] == "application/atom+xml"
        assert receipt.signature_valid


async def test_a_fetch_that_updates_and_adds_is_one_document_as_is(
    tmp_path: Path,
) -> None:
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        as_is = await stage.subscribe("as-is", feed, format="as-is")
        everything = await stage.subscribe("all", feed, updates="all")

        feed.titles[1] = "Corrected"
        await stage.publish(feed_id, feed)
        first = feed.document()
        await eventually(lambda: len(everything.receipts) == 2)
        await stage.publish(feed_id, feed)
        await eventually(lambda: len(everything.receipts) == 3)

        await eventually(lambda: len(as_is.receipts) >= 2)
        await stage.hub.terminate()
        bodies = [each.request.body for each in as_is.receipts]
        assert bodies == [first, feed.document()]


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha384", "sha512"])
async def test_a_signature_is_made_with_the_algorithm_asked_for(
    tmp_path: Path, algorithm: str
) -> None:
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        subscriber = await stage.subscribe("reader", feed, algorithm=algorithm)
        subscriber.algorithm = algorithm
        await stage.publish(feed_id, feed)
        await eventually(lambda: bool(subscriber.receipts))
        assert subscriber.receipts[0].signature_valid


async def test_an_error_is_told_once_when_it_begins_and_once_when_it_ends(
    tmp_path: Path,
) -> None:
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        subscriber = await stage.subscribe("reader", feed)
        as_is = await stage.subscribe("as-is", feed, format="as-is")

        feed.instead = ServerAnswer(status=404)
        await stage.api.fetch(feed_id)
        await eventually(lambda: len(subscriber.receipts) == 1)
        await stage.api.fetch(feed_id)
        feed.instead = None
        await stage.api.fetch(feed_id)
        await eventually(lambda: len(subscriber.receipts) == 2)

        told = [json.loads(each.request.body) for each in subscriber.receipts]
        assert [each["status"]["code"] for each in told] == [404, 304]  # unchanged
        assert not any("items" in each for each in told)
        await stage.hub.terminate()
        assert len(subscriber.receipts) == 2
        assert as_is.receipts == []


async def test_updates_go_to_those_who_ask_for_them(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        none = await stage.subscribe("none", feed, updates="none")
        fresh = await stage.subscribe("fresh", feed)
        everything = await stage.subscribe("all", feed, updates="all")

        now = SystemClock().now().astimezone(UTC)
        feed.titles[1], feed.changed_at[1] = "A day old", now - timedelta(days=1)
        await stage.api.fetch(feed_id)
        await eventually(lambda: len(everything.receipts) == 1)
        feed.titles[1], feed.changed_at[1] = "Just changed", now
        await stage.api.fetch(feed_id)
        await eventually(lambda: len(everything.receipts) == 2)

        await eventually(lambda: len(fresh.receipts) == 1)
        await stage.hub.terminate()
        assert b"Just changed" in fresh.receipts[0].request.body
        assert (len(none.receipts), len(everything.receipts)) == (0, 2)


async def test_subscribers_of_a_removed_feed_are_denied(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        subscriber = await stage.subscribe("reader", feed)

        await stage.api.remove_feed(feed_id)

        await eventually(lambda: bool(subscriber.questions))
        query = subscriber.questions[0].query
        assert query["hub.mode"] == "denied"
        assert query["hub.topic"] == subscriber.topic


async def test_a_restart_keeps_validators_and_sends_nothing_again(
    tmp_path: Path,
) -> None:
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        subscriber = await stage.subscribe("reader", feed)
        await stage.publish(feed_id, feed)
        await eventually(lambda: len(subscriber.receipts) == 1)
        asked_before = len(feed.requests)

        assert await stage.hub.terminate() == 0
        await stage.hub.start()
        await stage.hub.wait_ready()
        await stage.api.fetch(feed_id)
        await stage.publish(feed_id, feed)

        await eventually(lambda: len(subscriber.receipts) == 2)
        asked = feed.requests[asked_before:]
        assert all("if-none-match" in request.headers for request in asked)
        assert subscriber.numbers == [2, 3]
