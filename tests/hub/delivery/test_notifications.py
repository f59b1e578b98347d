from __future__ import annotations

import asyncio
from random import Random
from typing import Any, cast

import orjson
import pytest
from lxml import etree
from msgspec import structs
from msgspec.structs import replace

from hub.delivery import notifications
from hub.delivery.notifications import NotificationBody, Notifications
from protocols.model import Feed, Link, Status
from storage.contract import LogStore
from storage.packing import pack, pack_bytes
from storage.records import (
    EntryId,
    EntryRef,
    FeedId,
    Format,
    Record,
    RecordKind,
    SourceFeed,
    StoredBody,
    Updates,
)
from tests.support.live_scene import FakeLog
from tests.support.subscriptions import a_record, a_subscription

HUB_URL = "https://hub.example/hub"


def notifications_of(log: FakeLog) -> Notifications:
    return Notifications(cast("LogStore", log), HUB_URL)


async def told(log: FakeLog, *records: Record, **fields: object) -> dict[str, Any]:
    """The JSON a subscription with these fields gets for the records."""
    document = await notifications_of(log).document(records, a_subscription(**fields))
    assert document is not None
    answer: dict[str, Any] = orjson.loads(document.body)
    return answer


async def test_json_has_its_type_the_topic_and_the_entries() -> None:
    log = FakeLog(record := a_record(1, entries=2))
    log.head_of_feed = Feed(title="A feed")
    document = await notifications_of(log).document((record,), a_subscription())
    assert document is not None
    assert document.content_type == "application/json; charset=utf-8"
    body = orjson.loads(document.body)
    assert [item["title"] for item in body["items"]] == ["Entry 10", "Entry 11"]
    assert body["status"]["feed"] == "https://feeds.example/1"
    assert body["title"] == "A feed"


async def test_atom_has_its_type() -> None:
    log = FakeLog(record := a_record(1))
    document = await notifications_of(log).document(
        (record,), a_subscription(format=Format.ATOM)
    )
    assert document is not None
    assert document.content_type == "application/atom+xml"
    assert b"Entry 10" in document.body


PUBLISHED = Feed(
    title="A feed",
    links=(
        Link(href="https://feeds.example/1", rel="self"),
        Link(href="https://appspot.example/", rel="hub"),
    ),
)


async def links_in_both(log: FakeLog, topic: str) -> list[dict[str, str]]:
    """By relation, as Atom and as JSON."""
    notifications = notifications_of(log)
    atom, json = [
        await notifications.document(log.all, a_subscription(format=each, topic=topic))
        for each in (Format.ATOM, Format.JSON)
    ]
    assert atom is not None
    assert json is not None
    heads = etree.fromstring(atom.body).findall("{http://www.w3.org/2005/Atom}link")
    standard = orjson.loads(json.body)["standardLinks"]
    return [
        {each.get("rel"): each.get("href") for each in heads},
        {rel: links[0]["href"] for rel, links in standard.items()},
    ]


@pytest.mark.parametrize(
    "topic",
    [
        "https://hub.example/topics/1.atom",
        "https://hub.example/topics/1.json?limit=3",
        "HTTPS://HUB.example:443/topics/1.atom",
    ],
)
async def test_of_the_hubs_own_topic_body_and_header_name_the_same(topic: str) -> None:
    log = FakeLog(a_record(1))
    log.head_of_feed = PUBLISHED
    expected = {"self": topic, "hub": HUB_URL, "via": "https://feeds.example/1"}
    assert await links_in_both(log, topic) == [expected, expected]


async def test_of_a_publishers_topic_the_body_is_the_publishers() -> None:
    log = FakeLog(a_record(1))
    log.head_of_feed = PUBLISHED
    given = {each.rel: each.href for each in PUBLISHED.links}
    assert await links_in_both(log, "https://feeds.example/1") == [given, given]


async def test_as_is_bytes_and_type_are_untouched() -> None:
    log = FakeLog(record := a_record(1))
    body = "<rss>é</rss>".encode("latin-1")
    content_type = "application/rss+xml; charset=ISO-8859-1"
    log.latest = StoredBody(content_type=content_type, body=pack_bytes(body))
    document = await notifications_of(log).document(
        (record,), a_subscription(format=Format.AS_IS)
    )
    assert document == NotificationBody(content_type, body)


async def test_large_as_is_bytes_are_untouched_too() -> None:
    log = FakeLog(record := a_record(1))
    body = Random(1).randbytes(500_000)
    log.latest = StoredBody(content_type="text/x", body=pack_bytes(body))
    document = await notifications_of(log).document(
        (record,), a_subscription(format=Format.AS_IS)
    )
    assert document == NotificationBody("text/x", body)


async def test_a_record_of_many_entries_is_told_like_any_other() -> None:
    log = FakeLog(record := a_record(1, entries=200))
    answer = await told(log, record)
    titles = [item["title"] for item in answer["items"]]
    assert titles == [f"Entry {number}" for number in range(10, 210)]


async def test_as_is_a_later_record_is_never_told_by_an_earlier_document() -> None:
    log = FakeLog(earlier := a_record(1), later := a_record(2))
    as_is = a_subscription(format=Format.AS_IS)
    notifications = notifications_of(log)
    log.latest = StoredBody(content_type="text/x", body=pack_bytes(b"then"))
    await notifications.document((later,), as_is)

    log.latest = StoredBody(content_type="text/x", body=pack_bytes(b"now"))
    documents = [
        await notifications.document((each,), as_is) for each in (earlier, later)
    ]

    assert [document and document.body for document in documents] == [b"now", b"now"]


async def test_an_as_is_document_that_is_not_kept_is_nothing_to_send() -> None:
    log = FakeLog(record := a_record(1))
    document = await notifications_of(log).document(
        (record,), a_subscription(format=Format.AS_IS)
    )
    assert document is None


PART = "https://feeds.example/1#.news"
OWN = StoredBody(content_type="text/x", body=pack_bytes(b"as it is"))


async def sent_by_topic(log: FakeLog, topic: str) -> str | None:
    """The type of what who asked for no format gets for the last record."""
    document = await notifications_of(log).document(
        (log.all[-1],), a_subscription(format=Format.BY_TOPIC, topic=topic)
    )
    return None if document is None else document.content_type


@pytest.mark.parametrize(
    ("kind", "topic", "expected"),
    [
        (RecordKind.ENTRIES, "https://feeds.example/1", "application/atom+xml"),
        (RecordKind.ENTRIES, "https://feeds.example/1#top", "application/atom+xml"),
        (RecordKind.ENTRIES, PART, "text/x"),
        (RecordKind.CONTENT, "https://feeds.example/1", "text/x"),
        (RecordKind.ERROR, PART, None),
        (RecordKind.RECOVERED, PART, None),
    ],
)
async def test_without_a_format_what_there_is_to_send_decides_on_it(
    kind: RecordKind, topic: str, expected: str | None
) -> None:
    log = FakeLog(a_record(1, kind=kind))
    log.latest = OWN
    assert await sent_by_topic(log, topic) == expected


@pytest.mark.parametrize(
    ("head", "latest", "code", "expected"),
    [
        (None, None, 503, "application/atom+xml"),  # it was down ever since
        (Feed(title="A feed"), None, 200, "application/atom+xml"),
        (Feed(title="A feed"), OWN, 503, "application/atom+xml"),
        (None, OWN, 503, None),  # a resource
        (None, None, 200, None),  # a resource that nobody wanted as it is before
    ],
)
async def test_of_trouble_only_those_hear_who_cannot_tell_it_from_a_resource(
    head: Feed | None, latest: StoredBody | None, code: int, expected: str | None
) -> None:
    record = a_record(1, kind=RecordKind.ERROR, entries=0)
    log = FakeLog(replace(record, status=structs.replace(record.status, code=code)))
    log.head_of_feed, log.latest = head, latest
    assert await sent_by_topic(log, "https://feeds.example/1") == expected


@pytest.mark.parametrize(
    "kind", [RecordKind.ERROR, RecordKind.RECOVERED, RecordKind.CONTENT]
)
async def test_status_records_have_no_items_at_all(kind: RecordKind) -> None:
    record = a_record(1, kind=kind, entries=0)
    assert "items" not in await told(FakeLog(record), record)


async def test_the_current_state_of_an_entry_is_sent() -> None:
    log = FakeLog(record := a_record(1))
    log.put_entry(10, "Corrected", revision=2)
    body = await told(log, record)
    assert [item["title"] for item in body["items"]] == ["Corrected"]


async def test_an_entry_deleted_since_is_left_out() -> None:
    log = FakeLog(record := a_record(1, entries=2))
    log.put_entry(10, "Gone", revision=2, deleted=True)
    body = await told(log, record, updates=Updates.ALL)
    assert [item["id"] for item in body["items"]] == ["id-11"]


async def test_a_record_of_which_nothing_is_left_is_not_sent() -> None:
    log = FakeLog(record := a_record(1))
    log.put_entry(10, "Gone", revision=2, deleted=True)
    assert await notifications_of(log).document((record,), a_subscription()) is None


async def test_a_deletion_taken_back_is_not_sent() -> None:
    log = FakeLog(record := a_record(1, kind=RecordKind.DELETED))
    subscription = a_subscription(updates=Updates.ALL)
    assert await notifications_of(log).document((record,), subscription) is None
    log.put_entry(10, "Gone", revision=2, deleted=True)
    document = await notifications_of(log).document((record,), subscription)
    assert document is not None
    assert b"id-10" in document.body


async def test_who_asks_for_fresh_updates_gets_only_those() -> None:
    record = replace(
        a_record(1, kind=RecordKind.UPDATED),
        entries=(EntryRef(EntryId(10), 1, True), EntryRef(EntryId(11), 1, False)),
    )
    log = FakeLog(record)
    fresh = await told(log, record, updates=Updates.FRESH)
    every = await told(log, record, updates=Updates.ALL)
    assert [item["id"] for item in fresh["items"]] == ["id-10"]
    assert [item["id"] for item in every["items"]] == ["id-10", "id-11"]


async def test_in_a_batch_each_entry_is_named_once_in_its_last_place() -> None:
    first = a_record(1, entries=2)
    update = replace(
        a_record(2, kind=RecordKind.UPDATED), entries=(EntryRef(EntryId(10), 2),)
    )
    log = FakeLog(first, update)
    log.put_entry(10, "Corrected", revision=2)
    body = await told(log, first, update)
    assert [item["id"] for item in body["items"]] == ["id-11", "id-10"]


async def test_equal_documents_are_rendered_once() -> None:
    log = FakeLog(record := a_record(1))
    rendering = notifications_of(log)
    one, other = a_subscription(), a_subscription(callback="https://b.example/")
    first = await rendering.document((record,), one)
    assert await rendering.document((record,), other) is first


async def test_a_document_does_not_wait_until_others_are_rendered() -> None:
    class SlowLog(FakeLog):
        """The head of the first feed takes until ``is_there``."""

        is_asked, is_there = asyncio.Event(), asyncio.Event()

        async def feed_head(self, feed_id: FeedId) -> bytes | None:
            if feed_id == 1:
                self.is_asked.set()
                await self.is_there.wait()
            return await super().feed_head(feed_id)

    slow, other = a_record(1), replace(a_record(2), feed_id=FeedId(2))
    log = SlowLog(slow, other)
    rendering = notifications_of(log)
    waiting = [
        asyncio.create_task(rendering.document((slow,), a_subscription()))
        for _ in range(2)
    ]
    await log.is_asked.wait()
    async with asyncio.timeout(5):
        assert await rendering.document((other,), a_subscription()) is not None
    log.is_there.set()
    first, second = await asyncio.gather(*waiting)
    assert first is second
    assert log.heads_read == 2, "each is rendered once"


async def test_an_entry_is_not_shown_older_than_it_was_before() -> None:
    """A later record, rendered for somebody who was ahead, must not be sent as it was
    then to one whom an earlier record has shown the entry as it is now."""
    added = a_record(1)
    changed = replace(
        a_record(2, kind=RecordKind.UPDATED), entries=(EntryRef(EntryId(10), 2),)
    )
    log = FakeLog(added, changed)
    rendering, reader = notifications_of(log), a_subscription(updates=Updates.ALL)
    log.put_entry(10, "Second", revision=2)
    await rendering.document((changed,), a_subscription(updates=Updates.ALL))
    log.put_entry(10, "Third", revision=3)

    documents = [await rendering.document((each,), reader) for each in (added, changed)]

    titles = [
        orjson.loads(each.body)["items"][0]["title"] for each in documents if each
    ]
    assert titles == ["Third", "Third"]


async def test_a_document_is_not_kept_beyond_a_deletion() -> None:
    log = FakeLog(record := a_record(1))
    rendering = notifications_of(log)
    assert await rendering.document((record,), a_subscription()) is not None
    log.put_entry(10, "Gone", revision=2, deleted=True)
    assert await rendering.document((record,), a_subscription()) is None


async def test_each_gets_the_topic_url_it_subscribed_to() -> None:
    log = FakeLog(record := a_record(1))
    rendering = notifications_of(log)
    topics = ("http://feeds.example/1", "https://feeds.example/1")
    documents = [
        await rendering.document((record,), a_subscription(topic=topic))
        for topic in topics
    ]
    named = [orjson.loads(each.body)["status"]["feed"] for each in documents if each]
    assert named == list(topics)


async def test_what_is_kept_is_bounded_in_bytes() -> None:
    log = FakeLog(*(records := [a_record(number) for number in range(1, 5)]))
    for number in range(1, 5):
        log.put_entry(number * 10, "x" * (notifications.KEPT_BYTES // 2))
    rendering = notifications_of(log)
    first = await rendering.document(records[:1], a_subscription())
    for record in records[1:]:
        await rendering.document((record,), a_subscription())
    assert await rendering.document(records[:1], a_subscription()) is not first


# --- track queries ---

SOURCE = FeedId(7)


def a_match(position: int = 1) -> Record:
    return replace(
        a_record(position),
        source=SOURCE,
        status=Status(code=200, http="Fetched (ring) 200 900", popularity=1.5),
    )


def a_source(*links: Link) -> SourceFeed:
    head = Feed(title="A source", id="urn:source", links=links)
    return SourceFeed("https://source.example/feed", pack(head))


async def test_a_match_has_the_status_of_a_track_feed_and_no_feed_of_its_own() -> None:
    log = FakeLog(record := a_match())
    log.sources[SOURCE] = a_source()
    log.head_of_feed = Feed(title="never shown")
    topic = "https://track.superfeedr.com/?query=entry"

    body = await told(log, record, topic=topic)

    at = int(record.at.timestamp())
    assert body["status"] == {
        "code": 200,
        "http": "Track feed",
        "period": 900,
        "nextFetch": at + 900,
        "lastFetch": at,
        "lastParse": at,
        "lastMaintenanceAt": at,
        "feed": topic,
    }
    assert (body["title"], body["id"], body["updated"]) == ("", "", at)


async def test_a_matched_entry_says_of_which_feed_it_is_and_how_that_does() -> None:
    log = FakeLog(record := a_match())
    log.sources[SOURCE] = a_source(Link(href="https://source.example/", rel="self"))

    [item] = (await told(log, record))["items"]

    source = item["source"]
    assert (source["id"], source["title"]) == ("urn:source", "A source")
    assert source["status"] == {
        "code": 200,
        "http": "Fetched (ring) 200 900",
        "popularity": 1.5,
        "feed": "https://source.example/feed",
    }


async def test_a_source_that_names_itself_is_subscribed_to_by_that() -> None:
    log = FakeLog(record := a_match())
    own = Link(href="https://source.example/feed", rel="self")
    log.sources[SOURCE] = a_source(own)

    [item] = (await told(log, record))["items"]

    assert list(item["source"]["standardLinks"]) == ["self"]
    assert item["source"]["status"]["feed"] == own.href


async def test_of_a_source_that_became_private_nothing_is_told() -> None:
    log = FakeLog(record := a_match())

    assert await notifications_of(log).document((record,), a_subscription()) is None


async def test_matches_of_several_sources_in_one_request_name_each_its_own() -> None:
    first, second = a_match(1), replace(a_match(2), source=FeedId(8))
    log = FakeLog(first, second)
    log.sources[SOURCE] = a_source()
    log.sources[FeedId(8)] = SourceFeed("https://other.example/feed", None)

    items = (await told(log, first, second))["items"]

    assert [item["source"]["status"]["feed"] for item in items] == [
        "https://source.example/feed",
        "https://other.example/feed",
    ]
