"""``hub.mode=retrieve``, ``search`` and ``replay``, as clients ask for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import orjson
import pytest

from hub.delivery.notification_counter import NotificationCounter
from hub.delivery.notifications import NotificationBody
from hub.delivery.redelivery import Redeliveries
from hub.http import Request
from hub.services.entry_retrieval import FETCHED_AT_ONCE, RedeliveryService
from hub.services.token_authentication import CreateToken
from hub.web.application import create_application
from storage.records import FeedStatistics, Format, Subscription, TokenScope
from tests.support.admin import TOKEN
from tests.support.application_client import client_of
from tests.support.golden import read_xml
from tests.support.library import CALLBACK, START, Library, id_of, topic_of
from tests.support.services import HUB_URL, PUBLIC_URL, Hub, open_hub
from tests.support.waiting import eventually, in_background

ATOM = "{http://www.w3.org/2005/Atom}"
SUPERFEEDR = "{http://superfeedr.com/xmpp-pubsub-ext}"

Ask = Callable[..., Awaitable[httpx2.Response]]


@pytest.fixture
async def library(hub: Hub) -> Library:
    return await Library.open(hub)


@pytest.fixture
def ask(anybody: httpx2.AsyncClient, library: Library) -> Ask:
    async def request(
        mode: str = "retrieve", accept: str = "*/*", method: str = "GET", **given: str
    ) -> httpx2.Response:
        named = {name.replace("hub_", "hub."): it for name, it in given.items()}
        if "callback" in given:  # as scripts of pages do
            named["authorization"] = library.credential
        query = urlencode({"hub.mode": mode, **named})
        return await anybody.request(
            method,
            f"/?{query}",
            auth=("me", library.token),
            headers={"Accept": accept},
        )

    return request


@pytest.fixture
async def news(library: Library) -> str:
    """A private topic that the account subscribes to, with entries a, b, c and d."""
    await library.add_feed("news", private=True)
    await library.subscribe("news")
    await library.publish("news", "a", "b", "c", "d")
    return topic_of("news")


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("application/json", "application/json"),
        ("text/html, application/json;q=0.1", "application/json"),
        ("application/atom+xml, application/json;q=0.1", "application/atom+xml"),
        ("application/json;q=0", "application/atom+xml"),
    ],
)
async def test_what_is_accepted_the_most_is_answered(
    ask: Ask, news: str, accept: str, content_type: str
) -> None:
    answer = await ask(accept=accept, hub_topic=news)

    assert answer.headers["content-type"].partition(";")[0] == content_type


def titles(answer: httpx2.Response) -> list[str]:
    return [item["title"] for item in answer.json()["items"]]


async def test_a_topic_is_retrieved_as_atom_with_its_status_first(
    ask: Ask, news: str
) -> None:
    answer = await ask(hub_topic=news)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/atom+xml"
    assert answer.headers["etag"]
    feed = read_xml(answer.content)
    status = feed[0]
    assert status.tag == f"{SUPERFEEDR}status"
    assert status.get("feed") == news
    for needed in ("http", "next_fetch", "last_fetch", "last_parse"):
        assert status.findtext(f"{SUPERFEEDR}{needed}")
    assert status.findtext(f"{SUPERFEEDR}last_maintenance_at")
    found = [each.findtext(f"{ATOM}title") for each in feed.iter(f"{ATOM}entry")]
    assert found == ["d", "c", "b", "a"]


@pytest.mark.parametrize(
    "wish", [{"format": "json"}, {"format": "JSON"}, {"accept": "application/json"}]
)
async def test_a_topic_is_retrieved_as_json(
    ask: Ask, news: str, wish: dict[str, str]
) -> None:
    answer = await ask(hub_topic=news, **wish)

    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert titles(answer) == ["d", "c", "b", "a"]
    document = answer.json()
    assert document["status"]["feed"] == news
    assert document["status"]["code"] == 200
    assert document["title"] == "About news"
    assert "source" not in document["items"][0]


async def test_a_page_has_as_many_entries_as_asked_for(
    ask: Ask, library: Library, news: str
) -> None:
    await library.publish("news", *map(str, range(60)), minutes=1)

    assert len(titles(await ask(hub_topic=news, format="json"))) == 10
    assert titles(await ask(hub_topic=news, format="json", count="2")) == ["59", "58"]
    assert len(titles(await ask(hub_topic=news, format="json", count="50"))) == 50


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"before": id_of("c")}, ["b", "a"]),
        ({"after": id_of("b")}, ["d", "c"]),
        ({"after": id_of("a"), "before": id_of("d")}, ["c", "b"]),
        ({"after": id_of("d")}, []),
        ({"before": id_of("d"), "count": "1"}, ["c"]),
        ({"before": "http" + id_of("c")[5:]}, ["b", "a"]),
    ],
)
async def test_a_page_lies_before_and_after_entries_given_by_their_ids(
    ask: Ask, news: str, bounds: dict[str, str], expected: list[str]
) -> None:
    assert titles(await ask(hub_topic=news, format="json", **bounds)) == expected


async def test_an_id_that_is_not_the_entrys_key_is_found_too(
    ask: Ask, library: Library
) -> None:
    """The key of an entry without an id is made of its link, and so on."""
    await library.add_feed("odd")
    await library.publish("odd", "x", "y", "z", key_of="of a source: ")

    answer = await ask(hub_topic=topic_of("odd"), format="json", before=id_of("z"))

    assert titles(answer) == ["y", "x"]


async def test_jsonp_wraps_what_would_have_been_json(ask: Ask, news: str) -> None:
    answer = await ask(hub_topic=news, format="json", callback="jQuery1_2", _="17")

    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.text.startswith("jQuery1_2({")
    assert answer.text.endswith("})")


async def test_jsonp_takes_json(ask: Ask, news: str) -> None:
    answer = await ask(hub_topic=news, callback="fn")

    assert answer.status_code == 422
    assert "callback" in answer.text


async def test_statuses_have_what_maintenance_found_out(
    ask: Ask, library: Library, news: str
) -> None:
    statistics = FeedStatistics(maintained_at=START, popularity=1.1, porn_rank=0.2)
    await library.maintain("news", statistics)
    await library.index()

    topic = (await ask(hub_topic=news, format="json")).json()["status"]
    merged = (await ask(hub_callback=CALLBACK, format="json")).json()
    found = (await ask("search", query="a", format="json")).json()

    sources = [each["items"][0]["source"]["status"] for each in (merged, found)]
    for status in (topic, *sources):
        assert (status["popularity"], status["pornRank"]) == (1.1, 0.2)
        assert status["lastMaintenanceAt"]


async def test_the_topic_goes_before_a_callback_that_was_never_subscribed(
    ask: Ask, news: str
) -> None:
    answer = await ask(
        hub_topic=news, hub_callback="https://never.example/", format="json"
    )

    assert titles(answer) == ["d", "c", "b", "a"]


async def test_public_topics_are_there_for_every_account(
    ask: Ask, library: Library
) -> None:
    await library.add_feed("public")
    await library.publish("public", "x")

    assert titles(await ask(hub_topic=topic_of("public"), format="json")) == ["x"]


async def test_the_operator_reads_all(
    anybody: httpx2.AsyncClient, library: Library, news: str
) -> None:
    query = {"hub.mode": "retrieve", "hub.topic": news, "format": "json"}

    answer = await anybody.get("/", params=query, auth=("admin", TOKEN))

    assert titles(answer) == ["d", "c", "b", "a"]


async def test_a_private_topic_of_others_and_an_unknown_one_look_alike(
    ask: Ask, library: Library
) -> None:
    await library.add_feed("secret", private=True)

    secret = await ask(hub_topic=topic_of("secret"))
    unknown = await ask(hub_topic=topic_of("unknown"))

    assert secret.status_code == unknown.status_code == 404
    assert secret.text == unknown.text
    assert "hub.topic" in secret.text


async def test_a_topic_is_gone_with_its_subscription(
    ask: Ask, library: Library, hub: Hub, news: str
) -> None:
    found = await hub.storage.subscriptions.find(library.account, news, CALLBACK)
    assert found is not None
    await hub.storage.subscriptions.end(found.id, "", hub.clock.now(), tell=False)

    assert (await ask(hub_topic=news)).status_code == 404


async def test_a_feed_that_was_never_fetched_is_fetched_before_the_answer(
    ask: Ask, library: Library, hub: Hub
) -> None:
    feed = await library.add_feed("new", fetched=False)
    await library.subscribe("new")

    answer = await ask(hub_topic=feed.url, format="json")

    assert hub.poller.fetched == [feed.id]
    assert answer.json()["status"]["code"] == 200
    await ask(hub_topic=feed.url)
    await ask(hub_callback=CALLBACK)
    assert hub.poller.fetched == [feed.id]


async def test_a_few_are_fetched_at_once_and_one_that_fails_harms_no_other(
    ask: Ask, library: Library, hub: Hub
) -> None:
    for number in range(30):
        await library.add_feed(f"n{number}", fetched=False)
        await library.subscribe(f"n{number}")
    hub.poller.removed = library.feeds["n3"]

    answer = await ask(hub_callback=CALLBACK)

    assert answer.status_code == 200
    assert hub.poller.most_at_once == FETCHED_AT_ONCE
    assert sorted(hub.poller.fetched) == sorted(library.feeds.values())


async def test_a_callback_has_the_entries_of_all_its_topics_with_their_sources(
    ask: Ask, library: Library
) -> None:
    for minute, name in enumerate(("one", "two", "three")):
        await library.add_feed(name, private=True)
        await library.publish(name, f"{name} old", minutes=minute)
        await library.publish(name, f"{name} new", minutes=10 + minute)
    await library.subscribe("one")
    await library.subscribe("two")
    await library.subscribe("three", "https://you.example/elsewhere")

    answer = await ask(hub_callback=CALLBACK, format="json", count="3")

    assert titles(answer) == ["two new", "one new", "two old"]
    sources = [item["source"] for item in answer.json()["items"]]
    named = [each["title"] for each in sources]
    assert named == ["About two", "About one", "About two"]
    assert sources[0]["status"]["feed"] == topic_of("two")
    assert answer.json()["status"]["feed"] == CALLBACK
    assert answer.json()["status"]["lastFetch"]
    before = await ask(hub_callback=CALLBACK, format="json", before=id_of("two old"))
    assert titles(before) == ["one old"]


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("[endpoint][hostname]", "you.example", ["two", "one"]),
        ("[endpoint.hostname]", "you.example", ["two", "one"]),
        ("[feed][url]", topic_of("one"), ["one"]),
        ("[feed][hostname]", "two.example", ["two"]),
        ("[format]", "JSON", ["three", "two", "one"]),
        ("", '{"endpoint.hostname"=>"else.example"}', ["three"]),
    ],
)
async def test_the_topics_of_a_search_over_subscriptions_are_read_together(
    ask: Ask, library: Library, key: str, value: str, found: list[str]
) -> None:
    for minute, (name, host) in enumerate(
        [("one", "you"), ("two", "you"), ("three", "else")]
    ):
        await library.add_feed(name, private=True)
        await library.publish(name, name, minutes=minute)
        await library.subscribe(name, f"https://{host}.example/{name}")

    answer = await ask(format="json", **{f"hub_callback{key}": value})

    assert titles(answer) == found


@pytest.mark.parametrize(
    ("key", "status"),
    [("[endpoint][hostname]", 404), ("[endpoint][jid]", 404), ("[feed][bozo]", 422)],
)
async def test_a_search_over_subscriptions_that_finds_none(
    ask: Ask, library: Library, key: str, status: int
) -> None:
    await library.add_feed("one")
    await library.subscribe("one")

    answer = await ask(**{f"hub_callback{key}": "nobody.example"})

    assert answer.status_code == status
    assert "hub.callback" in answer.text


async def test_a_callback_without_entries_is_an_empty_feed(
    ask: Ask, library: Library
) -> None:
    await library.add_feed("quiet")
    await library.subscribe("quiet")

    answer = await ask(hub_callback=CALLBACK, format="json")

    assert answer.json()["items"] == []
    assert (await ask(hub_callback=CALLBACK)).status_code == 200


async def test_a_callback_of_another_account_is_unknown(
    ask: Ask, hub: Hub, library: Library
) -> None:
    other = await Library.open(hub, "other")
    await other.add_feed("theirs")
    await other.subscribe("theirs")

    answer = await ask(hub_callback=CALLBACK)

    assert answer.status_code == 404
    assert "hub.callback" in answer.text


async def test_a_callback_with_too_many_feeds_is_refused(
    ask: Ask, library: Library
) -> None:
    for number in range(200):
        await library.add_feed(f"n{number}", fetched=False)
        await library.subscribe(f"n{number}")

    answer = await ask(hub_callback=CALLBACK)

    assert answer.status_code == 422
    assert "hub.callback" in answer.text


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"count": "none"}, "count"),
        ({"count": "0"}, "count"),
        ({"count": "-1"}, "count"),
        ({"count": "1.5"}, "count"),
        ({"count": "51"}, "count"),
        ({"format": "yaml"}, "format"),
        ({"before": "unknown"}, "before"),
        ({"after": "unknown"}, "after"),
        ({"wait": "long"}, "wait"),
        ({"hub_topic": "no URL"}, "hub.topic"),
        ({"hub_topic": "https://x.example/" + "x" * 3000}, "hub.topic"),
        ({"hub_topic": "", "hub_callback": "no URL"}, "hub.callback"),
        ({"hub_topic": ""}, "hub.topic"),
        ({"hub_topic": "", "hub_callback[feed][weight]": "3"}, "hub.callback"),
    ],
)
async def test_what_is_wrong_is_422_with_the_name_of_the_parameter(
    ask: Ask, news: str, given: dict[str, str], named: str
) -> None:
    asked = {"hub_topic": news, **given}
    answer = await ask(**asked)
    as_json = await ask(accept="application/json", **asked)

    assert answer.status_code == as_json.status_code == 422
    assert answer.headers["content-type"].startswith("text/plain")
    assert named in answer.text
    assert as_json.json()["field"].startswith(named)


# --- search ---


@pytest.fixture
async def texts(library: Library) -> None:
    """Entries in a public feed, in one of the account's, and in one of others'."""
    for name in ("public", "mine", "theirs"):
        await library.add_feed(name, private=name != "public")
    await library.subscribe("mine")
    await library.publish("public", "Romeo", text="and Juliette")
    await library.publish("public", "Romeo alone", minutes=1)
    await library.publish("mine", "AAPL", text="Romeo sells", minutes=2)
    await library.publish("theirs", "Romeo hidden", minutes=3)
    await library.index()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("romeo", ["AAPL", "Romeo alone", "Romeo"]),
        ("romeo -juliette", ["AAPL", "Romeo alone"]),
        ('"AAPL"', ["AAPL"]),
        ('"aapl"', []),
        ("aapl", ["AAPL"]),
        ("(juliette | sells) romeo", ["AAPL", "Romeo"]),
        ("site:public.example romeo", ["Romeo alone", "Romeo"]),
        ("ann-author -sells", ["Romeo alone", "Romeo"]),
        ("nothing", []),
    ],
)
@pytest.mark.usefixtures("texts")
async def test_entries_are_found_by_what_they_say(
    ask: Ask, query: str, found: list[str]
) -> None:
    answer = await ask("search", method="POST", query=query, format="json")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert titles(answer) == found


@pytest.mark.usefixtures("texts")
async def test_a_search_is_answered_in_atom_unless_json_is_asked_for(ask: Ask) -> None:
    answer = await ask("search", query="romeo", detailed="true", count="1")

    assert answer.headers["content-type"] == "application/atom+xml"
    (entry,) = read_xml(answer.content).iter(f"{ATOM}entry")
    assert entry.findtext(f"{ATOM}title") == "AAPL"
    assert entry.findtext(f"{ATOM}source/{ATOM}title") == "About mine"


@pytest.mark.usefixtures("texts")
async def test_a_link_leads_to_older_matches(
    ask: Ask, library: Library, anybody: httpx2.AsyncClient
) -> None:
    first = await ask("search", query="romeo", count="2", format="json")
    assert titles(first) == ["AAPL", "Romeo alone"]
    link = first.links["next"]["url"]
    assert link.startswith(f"{PUBLIC_URL}/?hub.mode=search&query=romeo&count=2")
    path = link.removeprefix(PUBLIC_URL)
    last = await anybody.get(path, auth=("me", library.token))
    assert titles(last) == ["Romeo"]
    assert "next" not in last.links
    refused = await ask("search", query="romeo", cursor="next")
    assert (refused.status_code, "cursor" in refused.text) == (422, True)


@pytest.mark.usefixtures("texts")
async def test_the_operator_finds_all(anybody: httpx2.AsyncClient) -> None:
    query = {"hub.mode": "search", "query": "romeo hidden", "format": "json"}

    answer = await anybody.get("/", params=query, auth=("admin", TOKEN))

    assert titles(answer) == ["Romeo hidden"]


@pytest.mark.parametrize(
    "query", ["", "-only", "(open", '"open', "site:", "language:english", "a" * 3000]
)
async def test_a_query_that_cannot_be_read_is_422(ask: Ask, query: str) -> None:
    answer = await ask("search", query=query)

    assert answer.status_code == 422
    assert "query" in answer.text


@pytest.mark.parametrize("query", ['x" OR "y', "NEAR(a b)", "words : a", "a*", "^a"])
async def test_what_means_something_to_the_index_is_words_like_any(
    ask: Ask, query: str
) -> None:
    answer = await ask("search", query=query, format="json")

    assert answer.status_code in (200, 422)
    assert "fts" not in answer.text


async def test_a_search_looks_past_what_must_not_be_seen(
    ask: Ask, library: Library
) -> None:
    await library.add_feed("theirs", private=True)
    await library.add_feed("public")
    await library.publish("public", "word")
    await library.publish("theirs", *[f"word {n}" for n in range(150)], minutes=1)
    await library.index()

    assert titles(await ask("search", query="word", format="json")) == ["word"]


# --- replay ---


def replayed(request: Request) -> list[str]:
    return [item["title"] for item in orjson.loads(request.body or b"")["items"]]


async def test_the_last_entry_is_replayed_to_the_callback(
    ask: Ask, hub: Hub, news: str
) -> None:
    answer = await ask("replay", hub_topic=news, hub_callback=CALLBACK)

    assert answer.status_code == 204
    [sent] = hub.network.requests
    assert (sent.method, sent.url) == ("POST", CALLBACK)
    assert sent.headers["Content-Type"] == "application/json; charset=utf-8"
    assert replayed(sent) == ["d"]


async def test_as_many_entries_are_replayed_as_asked_for(
    ask: Ask, hub: Hub, news: str
) -> None:
    asked = {"hub_topic": news, "hub_callback": CALLBACK}
    assert (await ask("replay", count="3", **asked)).status_code == 204
    assert (await ask("replay", count="50", **asked)).status_code == 204

    assert [len(replayed(each)) for each in hub.network.requests] == [3, 4]


@pytest.mark.parametrize(
    "null_device",
    ["https://push.superfeedr.com/dev/null", "http://hub.example/dev/null"],
)
async def test_a_replay_to_the_null_device_is_sent_to_nobody(
    ask: Ask, hub: Hub, library: Library, news: str, null_device: str
) -> None:
    await library.subscribe("news", null_device)

    answer = await ask("replay", hub_topic=news, hub_callback=null_device)

    assert answer.status_code == 204
    assert hub.network.requests == []


async def test_an_async_replay_is_answered_before_it_is_sent(
    ask: Ask, hub: Hub, news: str
) -> None:
    asked = {"hub_topic": news, "hub_callback": CALLBACK, "async": "true"}

    assert (await ask("replay", **asked)).status_code == 204
    assert hub.network.requests == []
    async with in_background(hub.built.background["redeliveries"]):
        await eventually(lambda: hub.network.urls == [CALLBACK])


class FullQueue(Redeliveries):
    def send_later(
        self, subscription: Subscription, document: NotificationBody
    ) -> bool:
        return False


async def test_an_async_replay_is_refused_while_too_many_wait(
    hub: Hub, library: Library, news: str
) -> None:
    full = FullQueue(hub.network, hub.clock, HUB_URL, NotificationCounter())
    redeliveries = RedeliveryService(
        hub.storage, hub.services.retrieval, full, PUBLIC_URL
    )
    application = create_application(
        replace(hub.services, redeliveries=redeliveries), TOKEN
    )
    asked = {"hub.mode": "replay", "hub.topic": news, "hub.callback": CALLBACK}
    async with client_of(application) as client:
        refused = await client.post(
            "/", data={**asked, "async": "true"}, auth=("me", library.token)
        )

    assert refused.status_code == 503


@pytest.mark.parametrize(
    ("format", "content_type"),
    [(Format.ATOM, "application/atom+xml"), (Format.AS_IS, "text/xml")],
)
async def test_a_replay_has_the_format_of_the_subscription(
    ask: Ask, library: Library, hub: Hub, format: Format, content_type: str
) -> None:
    await library.add_feed("news")
    await library.subscribe("news", format=format)
    await library.publish("news", "a")

    await ask("replay", hub_topic=topic_of("news"), hub_callback=CALLBACK)

    [sent] = hub.network.requests
    assert sent.headers["Content-Type"] == content_type


async def test_an_answer_that_is_known_is_not_sent_again(
    anybody: httpx2.AsyncClient, ask: Ask, library: Library, news: str
) -> None:
    first = await ask(hub_topic=news)
    again = await anybody.get(
        first.request.url,
        auth=("me", library.token),
        headers={"If-None-Match": first.headers["ETag"]},
    )
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]


async def test_a_document_that_is_not_kept_is_replayed_as_atom(
    ask: Ask, library: Library, hub: Hub
) -> None:
    await library.add_feed("news")
    await library.publish("news", "a")
    await library.subscribe("news", format=Format.AS_IS)

    await ask("replay", hub_topic=topic_of("news"), hub_callback=CALLBACK)

    [sent] = hub.network.requests
    assert sent.headers["Content-Type"] == "application/atom+xml"


async def test_a_callback_that_does_not_take_a_replay_is_422_with_the_reason(
    ask: Ask, hub: Hub, news: str
) -> None:
    hub.network.answer_with(500)

    answer = await ask("replay", hub_topic=news, hub_callback=CALLBACK)

    assert answer.status_code == 422
    assert "hub.callback" in answer.text
    assert "it answered 500" in answer.text


async def test_a_replay_needs_a_subscription_of_the_account(
    ask: Ask, library: Library, news: str
) -> None:
    elsewhere = await ask(
        "replay", hub_topic=news, hub_callback="https://you.example/else"
    )
    unknown = await ask("replay", hub_topic=topic_of("unknown"), hub_callback=CALLBACK)

    assert elsewhere.status_code == unknown.status_code == 404
    assert elsewhere.text == unknown.text


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"hub_callback": ""}, "hub.callback"),
        ({"hub_topic": ""}, "hub.topic"),
        ({"count": "few"}, "count"),
        ({"async": "maybe"}, "async"),
    ],
)
async def test_a_replay_that_is_wrong_is_422(
    ask: Ask, news: str, given: dict[str, str], named: str
) -> None:
    asked = {"hub_topic": news, "hub_callback": CALLBACK, **given}

    answer = await ask("replay", **asked)

    assert answer.status_code == 422
    assert named in answer.text


@pytest.mark.parametrize("mode", ["retrieve", "search", "replay"])
async def test_each_mode_takes_the_right_to_retrieve(
    anybody: httpx2.AsyncClient, hub: Hub, mode: str
) -> None:
    made = await hub.services.tokens.create(
        CreateToken(account="me", scopes=frozenset({TokenScope.LIST}))
    )

    answer = await anybody.get("/", params={"hub.mode": mode}, auth=("me", made.secret))

    assert answer.status_code == 403
    assert "retrieve" in answer.text


async def test_a_hub_without_an_index_says_so(tmp_path: Path) -> None:
    async with open_hub(tmp_path, search_days=0.0) as hub:
        library = await Library.open(hub)
        async with client_of(hub.application) as http:
            answer = await http.get(
                "/?hub.mode=search&query=word", auth=("me", library.token)
            )
    assert answer.status_code == 403
    assert "this hub has no search (FANFARE_SEARCH_DAYS=0)" in answer.text
