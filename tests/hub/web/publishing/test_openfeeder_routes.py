"""What readers get by OpenFeeder, and what they are told when they ask badly."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hub.publishing.openfeeder_sync import MOST_CHANGES
from hub.publishing.page_visibility import PageUpdater
from hub.search.index_follower import SearchIndex
from hub.services.openfeeder_documents import OpenFeederService
from hub.services.token_authentication import CreateToken
from hub.web.application import create_application
from protocols.model import Author, Entry, Feed, Link, Text
from protocols.openfeeder.write.page_chunks import Candidate
from storage.packing import unpack
from storage.records import FeedId, FeedState, TokenScope
from tests.support.admin import ADMIN, TOKEN
from tests.support.application_client import client_of
from tests.support.documents import an_entry
from tests.support.openfeeder_client import OpenFeederClient, faults
from tests.support.public_feeds import PublicFeeds
from tests.support.services import Hub, open_hub
from tests.support.storage_scene import START

URL = "/openfeeder"


@dataclass(frozen=True)
class Scene:
    hub: Hub
    http: httpx2.AsyncClient

    @property
    def feeds(self) -> PublicFeeds:
        return PublicFeeds(self.hub.storage)

    @property
    def client(self) -> OpenFeederClient:
        return OpenFeederClient(self.http)

    async def judge(self, later: float = 1) -> None:
        """Have what was published among the pages, and found by its words."""
        self.hub.clock.advance(later)
        storage = self.hub.storage
        await PageUpdater(
            storage.pages, self.hub.clock, "http://hub.example"
        ).catch_up()
        await SearchIndex(storage, self.hub.clock).catch_up()

    async def ask(self, **query: object) -> httpx2.Response:
        return await self.http.get(URL, params={k: str(v) for k, v in query.items()})


@asynccontextmanager
async def a_scene(directory: Path, **settings: Any) -> AsyncIterator[Scene]:
    async with (
        open_hub(directory, **settings) as hub,
        client_of(hub.application) as http,
    ):
        yield Scene(hub, http)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with a_scene(tmp_path) as scene:
        yield scene


async def stored(hub: Hub) -> dict[str, str]:
    """Title by URL of all that the database holds for everybody."""
    found = {}
    for feed in await hub.storage.public.feeds(after=FeedId(0), limit=1_000):
        for each in await hub.storage.public.entries(feed.id, before=None, limit=9_999):
            entry = unpack(each.entry.body, Entry)
            if not entry.unlisted:
                found[entry.links[0].href] = entry.title
    return found


def titles(client: OpenFeederClient) -> dict[str, str]:
    return {url: page["title"] for url, page in client.pages.items()}


# --- following ---


async def test_the_site_says_what_it_can(scene: Scene) -> None:
    found = await scene.client.discover()
    assert found["site"] == {
        "name": "Feeds at hub.example",
        "url": "http://hub.example",
        "language": "en",
        "description": "The public feeds of the hub at hub.example",
    }
    assert found["feed"] == {
        "endpoint": "http://hub.example/openfeeder",
        "type": "paginated",
    }
    assert found["capabilities"] == ["search", "diff-sync"]
    assert "contact" not in found


async def test_the_site_may_have_a_name_and_a_contact(tmp_path: Path) -> None:
    settings = {"openfeeder_name": "Ours", "contact": "ops@example.org"}
    async with a_scene(tmp_path, **settings, scp_language="de") as scene:
        found = await scene.client.discover()
        assert found["contact"] == "ops@example.org"
        assert (found["site"]["name"], found["site"]["language"]) == ("Ours", "de")


async def test_a_reader_follows_adds_edits_and_deletions_to_the_same_state(
    scene: Scene,
) -> None:
    """Two readers: one goes on from tokens, one from the moments in them."""
    draw = Random(7)
    feeds = [await scene.feeds.add(name) for name in "abc"]
    client, by_moments = scene.client, scene.client
    for step in range(40):
        feed = draw.choice(feeds[1:] if 20 < step <= 30 else feeds)
        keys = [f"{feed.id}-{draw.randrange(12)}" for _ in range(draw.randrange(1, 5))]
        if draw.random() < 0.3:
            await scene.feeds.withdraw(feed, *dict.fromkeys(keys))
        else:
            is_hidden = draw.random() < 0.2
            await scene.feeds.publish(
                feed,
                *(
                    an_entry(key, title=f"{key} of {step}", unlisted=is_hidden)
                    for key in dict.fromkeys(keys)
                ),
            )
        if step in (20, 30):
            state = FeedState.REMOVED if step == 20 else FeedState.ACTIVE
            await scene.hub.storage.feeds.set_state(feeds[0].id, state, START)
        await scene.judge(draw.choice((0, 0.4, 90)))
        if draw.random() < 0.7:
            await client.sync()
        answer = await by_moments.sync_once()
        by_moments.token = answer["sync"]["as_of"]
    await client.sync()
    await by_moments.sync_once()
    walker = scene.client
    await walker.walk(limit=7)
    assert titles(client) == titles(by_moments) == titles(walker)
    assert titles(client) == await stored(scene.hub)
    assert len(client.pages) > 5
    for url, page in client.pages.items():
        known = walker.pages[url]
        assert page["chunks"] == known["chunks"]
        assert page["updated"] == known["updated"]


async def test_what_is_new_what_is_changed_and_what_is_gone_are_told_apart(
    scene: Scene,
) -> None:
    feed = await scene.feeds.add()
    await scene.feeds.publish(feed, an_entry("a"), an_entry("b"), an_entry("c"))
    await scene.judge()
    client = scene.client
    await client.sync()
    await scene.feeds.publish(feed, an_entry("a", title="Other"), an_entry("d"))
    await scene.feeds.withdraw(feed, "b")
    await scene.judge(60)
    answer = await client.sync_once()
    assert [each["url"] for each in answer["added"]] == ["https://example.org/d"]
    assert [each["title"] for each in answer["updated"]] == ["Other"]
    assert [each["url"] for each in answer["deleted"]] == ["https://example.org/b"]
    assert "deleted_tracking" not in answer["sync"]
    assert (await client.sync_once())["sync"]["counts"] == {
        "added": 0,
        "updated": 0,
        "deleted": 0,
    }
    # By a moment both bounds are inclusive: what was at that very moment comes again.
    at = answer["sync"]["as_of"]
    again = (await scene.ask(since=at, until=at)).json()
    assert again["sync"]["counts"] == {"added": 1, "updated": 1, "deleted": 1}
    assert (again["sync"]["since"], again["sync"]["until"]) == (at, at)
    until = (await scene.ask(until=at)).json()
    assert faults("sync", until) == []
    assert "since" not in until["sync"]
    assert (until["added"], until["deleted"]) == ([], [])
    assert len(until["updated"]) == 3
    await scene.feeds.publish(feed, an_entry("b"))
    await scene.judge(60)
    answer = await client.sync_once()
    assert [each["url"] for each in answer["added"]] == ["https://example.org/b"]


@pytest.mark.parametrize(
    "written",
    [
        lambda raw: base64.b64encode(raw).decode(),
        lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("="),
        lambda raw: json.loads(raw)["t"],
        lambda raw: json.loads(raw)["t"].replace("Z", "+00:00"),
        lambda raw: json.loads(raw)["t"].replace("Z", " 00:00"),
    ],
    ids=["token", "urlsafe token without padding", "moment", "offset", "lost plus"],
)
async def test_since_takes_tokens_of_anybody_and_moments(
    scene: Scene, written: Callable[[bytes], str]
) -> None:
    feed = await scene.feeds.add()
    await scene.feeds.publish(feed, an_entry("a"))
    await scene.judge()
    as_of = (await scene.client.sync_once())["sync"]["as_of"]
    plain = json.dumps({"t": as_of}).encode()
    answer = (await scene.ask(since=written(plain))).json()
    assert [each["url"] for each in answer["added"]] == ["https://example.org/a"]
    date = base64.b64encode(b'{"t":"2026-01-02"}').decode()
    later = (await scene.ask(since=date)).json()
    assert later["sync"]["since"] == "2026-01-02T00:00:00.000Z"
    assert later["added"] == []


async def test_much_that_has_changed_comes_in_several_answers(scene: Scene) -> None:
    feed = await scene.feeds.add()
    count = MOST_CHANGES + 30
    await scene.feeds.publish(feed, *(an_entry(str(n)) for n in range(count)))
    await scene.judge()
    client = scene.client
    client.endpoint = "http://hub.example/openfeeder"
    first = (await scene.ask(since=client.token)).json()
    assert first["sync"]["truncated"] is True
    assert len(first["added"]) == MOST_CHANGES
    rest = (await scene.ask(since=first["sync"]["sync_token"])).json()
    assert "truncated" not in rest["sync"]
    assert len(rest["added"]) == 30
    # Whoever goes on from the moment instead of the token gets there as well.
    by_moment = (await scene.ask(since=first["sync"]["as_of"])).json()
    urls = {each["url"] for each in first["added"] + by_moment["added"]}
    assert len(urls) == count


async def test_a_token_of_another_database_goes_on_from_its_moment(
    scene: Scene,
) -> None:
    feed = await scene.feeds.add()
    await scene.feeds.publish(feed, an_entry("a"))
    await scene.judge()
    members = {"t": "1999-01-01T00:00:00.000Z", "c": "elsewhere-1"}
    token = base64.b64encode(json.dumps(members).encode()).decode()
    assert len((await scene.ask(since=token)).json()["added"]) == 1


async def test_tombstones_are_told_as_long_as_the_setting_says(tmp_path: Path) -> None:
    async with a_scene(tmp_path, openfeeder_tombstone_seconds=3_600) as scene:
        feed = await scene.feeds.add()
        await scene.feeds.publish(feed, an_entry("a"))
        await scene.judge()
        token = (await scene.client.sync_once())["sync"]["sync_token"]
        await scene.feeds.withdraw(feed, "a")
        await scene.judge()
        told = (await scene.ask(since=token)).json()
        assert [each["url"] for each in told["deleted"]] == ["https://example.org/a"]
        scene.hub.clock.advance(3_700)
        late = (await scene.ask(since=token)).json()
        assert late["deleted"] == []
        assert late["sync"]["deleted_tracking"] is False


async def test_an_index_of_any_length_of_page_has_everything_once(
    scene: Scene,
) -> None:
    feed = await scene.feeds.add()
    entries = [
        an_entry(str(n), published=START + timedelta(hours=n * n)) for n in range(57)
    ]
    await scene.feeds.publish(feed, *entries)
    await scene.judge()
    expected = [f"https://example.org/{n}" for n in reversed(range(57))]
    for limit in (1, 10, 33, 50):
        urls: list[str] = []
        for page in range(1, -(-57 // limit) + 1):
            index = (await scene.ask(page=page, limit=limit)).json()
            assert index["total_pages"] == -(-57 // limit)
            urls += [each["url"] for each in index["items"]]
        assert urls == expected
    beyond = (await scene.ask(page=10**9)).json()
    assert beyond["items"] == []


# --- pages and search ---


async def test_a_page_is_its_content_in_chunks(scene: Scene) -> None:
    feed = await scene.feeds.add(head=Feed(title="F", language="de-CH"))
    content = (
        "<h2>Käse</h2><p>Er ist gut. Er ist alt.</p>"
        "<ul><li>Brie</li><li>Gouda</li></ul>"
        "<blockquote>So sagt man.</blockquote><pre>x = 1</pre>"
    )
    await scene.feeds.publish(
        feed,
        an_entry(
            "a",
            content=Text(value=content),
            authors=(Author(name="Ann <ann@example.org>", email="ann@example.org"),),
            published=START,
        ),
    )
    await scene.judge()
    page = await scene.client.fetch("https://example.org/a")
    assert [(each["type"], each["text"]) for each in page["chunks"]] == [
        ("heading", "Käse"),
        ("paragraph", "Er ist gut. Er ist alt."),
        ("list", "- Brie\n- Gouda"),
        ("quote", "So sagt man."),
        ("code", "x = 1"),
    ]
    assert page["author"] == "Ann"
    assert (page["language"], page["published"]) == ("de-CH", "2026-01-01T00:00:00Z")
    assert page["summary"].startswith("Er ist gut. Er ist alt.")
    assert page["meta"] == {
        "total_chunks": 5,
        "returned_chunks": 5,
        "cached": False,
        "cache_age_seconds": None,
    }
    scene.hub.clock.advance(7)
    again = await scene.ask(url="https://example.org/a", limit=2)
    assert again.json()["meta"] == {
        "total_chunks": 5,
        "returned_chunks": 2,
        "cached": True,
        "cache_age_seconds": 7,
    }
    assert again.headers["x-openfeeder-cache"] == "HIT"
    before = [each["id"] for each in page["chunks"]]
    edited = an_entry("a", content=Text(value=f"<p>New.</p>{content}"))
    await scene.feeds.publish(feed, edited)
    page = await scene.client.fetch("https://example.org/a")
    assert page["meta"]["cached"] is False
    assert [each["id"] for each in page["chunks"]][1:] == before


async def test_an_entry_without_a_link_is_a_page_of_the_hub(scene: Scene) -> None:
    feed = await scene.feeds.add()
    await scene.feeds.publish(feed, an_entry("a", links=(), title="Alone"))
    await scene.judge()
    [item] = (await scene.ask()).json()["items"]
    assert item["url"].startswith("http://hub.example/topics/")
    path = item["url"].removeprefix("http://hub.example")
    assert "#" not in path
    for url in (item["url"], path):
        assert (await scene.ask(url=url)).json()["title"] == "Alone"


async def test_answers_come_by_relevance(scene: Scene) -> None:
    feed = await scene.feeds.add()
    await scene.feeds.publish(
        feed,
        an_entry("title", title="Websockets", content=Text(value="<p>Nothing</p>")),
        an_entry("text", content=Text(value="<p>About websockets and sockets.</p>")),
        an_entry("half", content=Text(value="<p>About sockets.</p>")),
        an_entry("none", content=Text(value="<p>About cheese.</p>")),
    )
    await scene.judge()
    answer = (await scene.ask(q="Sockets, websockets!")).json()
    assert faults("index", answer) == []
    names = [each["url"].rpartition("/")[2] for each in answer["items"]]
    assert names[0] == "text"
    assert sorted(names) == ["half", "text", "title"]
    scores = [each["relevance"] for each in answer["items"]]
    assert scores == sorted(scores, reverse=True)
    least = scores[0]
    best = (await scene.ask(q="sockets websockets", min_score=least)).json()
    assert [each["url"] for each in best["items"]] == ["https://example.org/text"]
    assert (await scene.ask(q="nowhere")).json()["items"] == []
    assert (await scene.ask(q="?!")).json()["items"] == []
    one = (await scene.ask(q="sockets websockets", limit=1, page=2)).json()
    assert (one["page"], one["total_pages"]) == (2, 3)
    # q takes priority over both bounds, whatever they are.
    both = (await scene.ask(q="cheese", since="nonsense", until="worse")).json()
    assert [each["url"] for each in both["items"]] == ["https://example.org/none"]
    page = (await scene.ask(url="https://example.org/text", q="websockets")).json()
    assert faults("page", page) == []
    assert page["chunks"][0]["relevance"] > 0
    none = (
        await scene.ask(url="https://example.org/text", q="cheese", min_score=0.1)
    ).json()
    assert none["chunks"] == []


async def test_equal_state_gives_equal_bytes_and_304(scene: Scene) -> None:
    feed = await scene.feeds.add()
    await scene.feeds.publish(feed, *(an_entry(str(n)) for n in range(12)))
    await scene.judge()
    asked: list[dict[str, object]] = [
        {"limit": 5, "page": 2},
        {"q": "content"},
        {"since": "2020-01-01T00:00:00Z"},
        {"until": "2030-01-01T00:00:00Z"},
        {"url": "https://example.org/3"},
    ]
    for query in asked:
        first = await scene.ask(**query)
        scene.hub.clock.advance(100)
        second = await scene.ask(**query)
        assert first.headers["etag"] == second.headers["etag"]
        if "url" not in query:  # that says how long ago it was made
            assert first.content == second.content
        known = await scene.http.get(
            first.url, headers={"If-None-Match": first.headers["etag"]}
        )
        assert (known.status_code, known.content) == (304, b"")
        assert known.headers["x-openfeeder"] == "1.0"
    found = [await scene.http.get("/.well-known/openfeeder.json") for _ in range(2)]
    assert found[0].content == found[1].content
    await scene.feeds.publish(feed, an_entry("3", title="Other"))
    await scene.judge()
    for query in asked:
        headers = {"If-None-Match": (await scene.ask(**query)).headers["etag"]}
        answer = await scene.http.get(URL, params=query, headers=headers)  # type: ignore[arg-type]
        assert answer.status_code == 304


async def test_without_an_index_pages_are_not_found_by_words_and_nobody_is_told_so(
    tmp_path: Path,
) -> None:
    async with a_scene(tmp_path, search_days=0.0) as scene:
        assert (await scene.client.discover())["capabilities"] == ["diff-sync"]
        answer = await scene.ask(q="word")
        assert answer.status_code == 400
        assert faults("error", answer.json()) == []
        assert "this site has no search" in answer.json()["error"]["message"]


# --- the gatekeeper ---


async def test_a_key_is_asked_for_but_not_for_the_discovery(tmp_path: Path) -> None:
    async with a_scene(tmp_path, openfeeder_key="open sesame") as scene:
        found = await scene.client.discover()
        assert found["capabilities"] == ["search", "diff-sync", "auth"]
        for authorization in ("", "Bearer wrong", "Basic open sesame", "open sesame"):
            headers = {"Authorization": authorization} if authorization else {}
            refused = await scene.http.get(URL, headers=headers)
            assert refused.status_code == 401
            assert faults("error", refused.json()) == []
            assert refused.json()["error"]["code"] == "AUTH_REQUIRED"
            assert refused.headers["www-authenticate"].startswith("Bearer")
        shown = {"Authorization": "Bearer open sesame"}
        answer = await scene.http.get(URL, headers=shown)
        assert answer.status_code == 200
        assert answer.headers["cache-control"].startswith("private")
        assert answer.headers["vary"] == "Authorization"


async def test_excluded_paths_types_and_authors_are_nowhere(tmp_path: Path) -> None:
    async with a_scene(
        tmp_path,
        openfeeder_excluded_paths=("/checkout", "/admin/"),
        openfeeder_excluded_types=("audio",),
        openfeeder_authors="hidden",
    ) as scene:
        feed = await scene.feeds.add()
        audio = Link(
            href="https://example.org/a.mp3", rel="enclosure", type="audio/mp3"
        )
        page = Link(href="https://example.org/audio")
        await scene.feeds.publish(
            feed,
            an_entry("checkout/1"),
            an_entry("%63heckout"),
            an_entry("admin/"),
            an_entry("checkouts", authors=(Author(name="Ann"),)),
            an_entry("audio", links=(page, audio)),
        )
        await scene.judge()
        client = scene.client
        await client.sync()
        shown = "https://example.org/checkouts"
        assert list(client.pages) == [shown] == await client.walk()
        assert client.pages[shown]["author"] is None
        found = (await scene.ask(q="content")).json()
        assert [each["url"] for each in found["items"]] == [shown]
        for hidden in ("checkout/1", "audio", "admin/"):
            answer = await scene.ask(url=f"https://example.org/{hidden}")
            assert answer.status_code == 404
        await scene.feeds.withdraw(feed, "checkout/1", "checkouts")
        await scene.judge()
        [gone] = (await client.sync_once())["deleted"]
        assert gone["url"] == shown
        assert "https://example.org/checkout/1" not in client.deleted


async def test_switched_off_it_is_not_there(tmp_path: Path) -> None:
    async with a_scene(tmp_path, openfeeder="off") as scene:
        for path in (URL, "/.well-known/openfeeder.json"):
            answer = await scene.http.get(path)
            assert answer.status_code == 404
            assert faults("error", answer.json()) == []


# --- bad input ---

BAD = [
    ("page", "0", "page: expected a whole number from 1"),
    ("page", "-1", "page: expected a whole number from 1"),
    ("page", "two", "page: expected a whole number from 1, not 'two'"),
    ("page", "1.5", "page: expected a whole number from 1"),
    ("page", "", "page: expected a whole number from 1"),
    ("page", "\u0663", "page: expected a whole number from 1"),
    ("limit", "ten", "limit: expected a whole number, not 'ten'"),
    ("limit", "1e3", "limit: expected a whole number"),
    ("limit", "9" * 31, "limit: expected a whole number"),
    ("since", "yesterday", "since: expected a date and time of RFC 3339"),
    ("since", "", "since: expected a date and time of RFC 3339"),
    ("since", "12", "since: expected a date and time of RFC 3339"),
    ("since", "2026-02-20", "since: expected a date and time of RFC 3339"),
    ("since", "2026-02-20T00:00:00", "since: expected a date and time of RFC 3339"),
    ("since", "2026-02-30T00:00:00Z", "since: expected a date and time of RFC 3339"),
    ("since", "2026-02-20T25:00:00Z", "since: expected a date and time of RFC 3339"),
    ("since", "eyJ4IjoxfQ==", "since: expected a date and time of RFC 3339"),
    ("since", "eyJ0IjoxfQ==", "since: expected a date and time of RFC 3339"),
    ("since", "////", "since: expected a date and time of RFC 3339"),
    ("since", "A" * 600, "since: expected a date and time of RFC 3339"),
    ("until", "tomorrow", "until: expected a date and time of RFC 3339"),
    ("until", "eyJ0IjoiMjAyNi0wMi0yMyJ9", "until: expected a date and time of RFC"),
    ("url", "/" + "a" * 2_048, "url: expected up to 2048 characters"),
    ("q", "a" * 201, "q: expected up to 200 characters"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD)
async def test_a_bad_parameter_is_named_with_what_was_expected(
    scene: Scene, name: str, value: str, message: str
) -> None:
    answer = await scene.http.get(URL, params={name: value})
    assert answer.status_code == 400
    assert faults("error", answer.json()) == []
    assert answer.json()["error"]["code"] == "INVALID_PARAM"
    assert answer.json()["error"]["message"].startswith(message)
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("score", ["x", "-0.1", "1.1", "nan", "inf", "1e0", ""])
async def test_a_bad_score_is_refused_where_it_counts(scene: Scene, score: str) -> None:
    assert (await scene.ask(min_score=score)).status_code == 200
    answer = await scene.ask(q="a", min_score=score)
    assert answer.status_code == 400
    assert "min_score: expected a number from 0 to 1" in answer.text


async def test_until_is_not_before_since(scene: Scene) -> None:
    answer = await scene.ask(since="2026-02-02T00:00:00Z", until="2026-02-01T23:00:00Z")
    assert answer.status_code == 400
    assert answer.json()["error"] == {
        "code": "INVALID_PARAM",
        "message": "until: expected a moment that is not before since,"
        " 2026-02-02T00:00:00.000Z, not '2026-02-01T23:00:00.000Z'",
    }


@pytest.mark.parametrize(
    ("limit", "items"), [(-5, 1), (0, 1), (1, 1), (50, 50), (51, 50), (10**29, 50)]
)
async def test_limits_are_cut(scene: Scene, limit: int, items: int) -> None:
    feed = await scene.feeds.add()
    await scene.feeds.publish(feed, *(an_entry(str(n)) for n in range(60)))
    await scene.judge()
    assert len((await scene.ask(limit=limit)).json()["items"]) == items


async def test_a_page_that_there_is_not_is_not_found(scene: Scene) -> None:
    nowhere = ("/nothing", "https://elsewhere.example/", "javascript:alert(1)", "#")
    for url in (*nowhere, "http://[", "//[::1", "http://a:99999999/"):
        answer = await scene.ask(url=url)
        assert answer.status_code == 404
        assert faults("error", answer.json()) == []
        assert answer.json()["error"]["code"] == "NOT_FOUND"


SHAPES = ("index", "page", "sync", "error")
_TEXT = st.text(max_size=40) | st.sampled_from(
    ["1", "50", "https://example.org/0", "content", "2026-02-20T00:00:00Z", "MTI="]
)


@settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    query=st.dictionaries(
        st.sampled_from(["q", "url", "since", "until", "page", "limit", "min_score"]),
        _TEXT,
    )
)
async def test_whatever_is_asked_is_answered_in_a_known_shape(
    scene: Scene, query: dict[str, str]
) -> None:
    answer = await scene.http.get(URL, params=query)
    assert answer.status_code in (200, 400, 404)
    document = answer.json()
    assert any(faults(shape, document) == [] for shape in SHAPES), document
    if answer.status_code != 200:
        assert faults("error", document) == []


# --- headers, limits, hints ---


async def test_pages_of_any_site_may_read(scene: Scene) -> None:
    answer = await scene.http.options(URL)
    assert answer.status_code == 204
    assert "Authorization" in answer.headers["access-control-allow-headers"]
    for path in (URL, "/.well-known/openfeeder.json"):
        found = await scene.http.get(path)
        assert found.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-headers" not in found.headers
        assert found.headers["cache-control"].startswith("public, max-age=")
        assert (await scene.http.head(path)).content == b""


async def test_too_many_requests_are_told_when_to_return(tmp_path: Path) -> None:
    async with a_scene(tmp_path, rate_limit_address=12) as scene:
        now = int(scene.hub.clock.now().timestamp())
        left = []
        for _ in range(2):
            answer = await scene.http.get("/.well-known/openfeeder.json")
            assert answer.headers["x-ratelimit-limit"] == "2"
            left.append(answer.headers["x-ratelimit-remaining"])
            assert int(answer.headers["x-ratelimit-reset"]) >= now
        assert left == ["1", "0"]
        refused = await scene.http.get(URL)
        assert refused.status_code == 429
        assert faults("error", refused.json()) == []
        assert refused.json()["error"]["code"] == "RATE_LIMITED"
        assert refused.headers["retry-after"] == "5"
        assert refused.headers["x-ratelimit-remaining"] == "0"
        assert int(refused.headers["x-ratelimit-reset"]) == now + 5
        assert (await scene.http.post(f"{URL}/update", json={})).status_code == 429


async def test_a_broken_database_is_told_without_its_reasons(scene: Scene) -> None:
    await scene.hub.storage.close()
    answer = await scene.ask()
    assert answer.status_code == 503
    assert faults("error", answer.json()) == []
    assert answer.json()["error"]["code"] == "SERVER_ERROR"
    assert answer.headers["x-openfeeder"] == "1.0"


class BrokenRanker:
    def rank(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        raise RuntimeError("secret reasons")


async def test_whatever_else_goes_wrong_is_told_in_the_envelope(scene: Scene) -> None:
    feed = await scene.feeds.add()
    await scene.feeds.publish(feed, an_entry("a"))
    await scene.judge()
    hub = scene.hub
    broken = OpenFeederService(
        hub.storage, hub.clock, "http://hub.example", ranker=BrokenRanker()
    )
    application = create_application(replace(hub.services, openfeeder=broken), TOKEN)
    async with client_of(application) as client:
        answer = await client.get(URL, params={"q": "content"})
    assert answer.status_code == 500
    assert faults("error", answer.json()) == []
    assert answer.json()["error"]["code"] == "SERVER_ERROR"
    assert "secret" not in answer.text


async def hint(scene: Scene, body: object, token: str = TOKEN) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return await scene.http.post(f"{URL}/update", json=body, headers=headers)


async def test_a_hint_has_the_feed_of_a_page_fetched(scene: Scene) -> None:
    feed = await scene.feeds.add()
    other = await scene.feeds.add("b")
    await scene.feeds.publish(feed, an_entry("a"), an_entry("b"))
    await scene.judge()
    created = await scene.hub.services.tokens.create(
        CreateToken(account="cms", scopes=frozenset({TokenScope.LIST}))
    )
    urls = ["https://example.org/a", "https://example.org/b", other.url, "/unknown"]
    answer = await hint(scene, {"action": "delete", "urls": urls}, created.secret)
    assert answer.status_code == 202
    assert [(each["url"], each["status"]) for each in answer.json()["urls"]] == [
        (feed.url, "fetching"),
        (other.url, "fetching"),
        ("/unknown", "not-listed"),
    ]
    again = await hint(scene, {"urls": urls[:1]})
    assert again.json()["urls"][0]["status"] in ("coalesced", "fetching")


async def test_hints_take_a_token_and_a_body_of_their_form(scene: Scene) -> None:
    for token in ("", "wrong"):
        refused = await hint(scene, {"urls": ["https://example.org/a"]}, token)
        assert refused.status_code == 401
        assert refused.json()["error"]["code"] == "AUTH_REQUIRED"
    for body in (
        {},
        [],
        {"urls": []},
        {"urls": ["a"] * 101},
        {"urls": "a"},
        {"urls": ["a"], "action": "drop"},
        {"urls": ["a"], "more": 1},
    ):
        refused = await hint(scene, body)
        assert refused.status_code == 400
        assert faults("error", refused.json()) == []
    assert (await scene.http.get(f"{URL}/update")).status_code == 405


async def test_a_hint_whose_text_is_not_utf_8_is_refused(scene: Scene) -> None:
    body = b'{"urls": ["\xed\xa0\x80"]}'
    refused = await scene.http.post(f"{URL}/update", content=body, headers=ADMIN)
    assert refused.status_code == 400
    assert faults("error", refused.json()) == []
