from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.http.network_errors import Blocked
from hub.ingest.fetcher import FetchRequest
from hub.websub import topic_admission as topics_module
from hub.websub.topic_admission import (
    LOOKED_AT_SECONDS,
    OpenHub,
    TopicBusy,
    TopicRefused,
    TopicUnready,
)
from protocols.model import Feed, Link
from storage.records import Credentials, FeedState, FetchCommit, NewFeed
from tests.support.fetch_targets import an_answer
from tests.support.open_hub import (
    HUB_URL,
    NAMES_HUB,
    TOPIC,
    OpenHubScene,
    named_by,
    open_hub_scene,
)

ATOM = (
    '<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>'
    f'<link rel="hub" href="{HUB_URL}"/></feed>'
).encode()
RSS = (
    '<rss version="2.0" xmlns:a="http://www.w3.org/2005/Atom"><channel>'
    f'<title>t</title><a:link rel="hub" href="{HUB_URL}"/></channel></rss>'
).encode()
PAGE = f'<!doctype html><html><link rel="hub" href="{HUB_URL}"></html>'.encode()


@pytest.fixture
async def open_to_any(tmp_path: Path) -> AsyncIterator[OpenHubScene]:
    async with open_hub_scene(tmp_path, OpenHub.ANY) as scene:
        yield scene


async def test_a_public_topic_is_admitted_unseen(scene: OpenHubScene) -> None:
    feed = await scene.add_feed()
    assert await scene.topics.admit(TOPIC) == feed.id
    assert scene.fetches.requests == []


async def test_a_topic_is_known_under_any_spelling(scene: OpenHubScene) -> None:
    feed = await scene.add_feed()
    assert await scene.topics.admit("https://FEEDS.example:443/%74opic") == feed.id


@pytest.mark.parametrize(
    ("link", "body"),
    [
        (f'<{HUB_URL}>; rel="hub"', b"plain text"),
        (f"<https://HUB.example/hub>;rel=hub, <{TOPIC}>; rel=self", b"text"),
        ("", ATOM),
        ("", RSS),
        ("", PAGE),
    ],
)
async def test_a_topic_that_names_this_hub_becomes_a_private_feed(
    scene: OpenHubScene, link: str, body: bytes
) -> None:
    scene.fetches.answers = lambda request: named_by(link, body)
    feed_id = await scene.topics.admit(TOPIC)
    feed = await scene.storage.feeds.get(feed_id)
    assert feed is not None
    assert (feed.url, feed.private) == (TOPIC, True)
    assert feed.polling.last_fetch is not None  # its baseline is stored


@pytest.mark.parametrize(
    ("link", "body"),
    [
        ("", b"plain text"),
        ("", b"<feed"),
        ('<https://other.example/hub>; rel="hub"', ATOM),  # the header comes first
        (f'<{HUB_URL}>; rel="self"', b"text"),
        (f'<{HUB_URL}/more>; rel="hub"', b"text"),
    ],
)
async def test_a_topic_that_does_not_is_refused_and_not_stored(
    scene: OpenHubScene, link: str, body: bytes
) -> None:
    scene.fetches.answers = lambda request: named_by(link, body)
    with pytest.raises(TopicRefused, match="does not name this hub"):
        await scene.topics.admit(TOPIC)
    assert await scene.storage.feeds.find(TOPIC) is None


async def test_a_private_topic_looks_like_an_unknown_one(scene: OpenHubScene) -> None:
    feed = await scene.add_feed(private=True)
    with pytest.raises(TopicRefused, match="does not name this hub"):
        await scene.topics.admit(TOPIC)
    scene.poller.outcome = lambda polling: replace(polling, hubs=(HUB_URL,))
    assert await scene.topics.admit(TOPIC) == feed.id


async def test_a_private_feed_is_asked_as_always_and_not_anew(
    scene: OpenHubScene,
) -> None:
    feed = await scene.add_feed(private=True)
    scene.poller.outcome = lambda polling: replace(polling, code=304)
    head = Feed(links=(Link(href=HUB_URL, rel="hub"),))
    await scene.storage.log.commit(
        FetchCommit(
            feed_id=feed.id,
            at=scene.clock.now(),
            next_fetch=scene.clock.now(),
            polling=feed.polling,
            head=head,
        )
    )
    scene.poller.fetched.clear()

    assert await scene.topics.admit(TOPIC) == feed.id
    assert (scene.poller.fetched, scene.fetches.requests) == ([feed.id], [])


@pytest.mark.parametrize(
    ("status", "refusal"), [(404, TopicRefused), (0, TopicUnready)]
)
async def test_a_private_feed_that_cannot_be_fetched_is_refused_like_any_other(
    open_to_any: OpenHubScene, status: int, refusal: type[Exception]
) -> None:
    await open_to_any.add_feed(private=True)
    open_to_any.poller.outcome = lambda polling: replace(
        polling, code=status, error="no answer"
    )
    with pytest.raises(refusal, match="the topic cannot be fetched: no answer"):
        await open_to_any.topics.admit(TOPIC)


async def test_a_topic_that_never_was_a_feed_is_looked_at_as_a_stranger_would(
    scene: OpenHubScene,
) -> None:
    new = NewFeed(url=TOPIC, private=True)
    feed, _ = await scene.storage.feeds.add(new, scene.clock.now())
    assert await scene.topics.admit(TOPIC) == feed.id
    assert len(scene.fetches.requests) == 1


async def test_what_takes_credentials_is_an_unknown_topic_for_strangers(
    scene: OpenHubScene,
) -> None:
    closed = await scene.add_feed(private=True, credentials=Credentials(username="u"))
    opened = await scene.topics.admit(TOPIC)
    assert opened != closed.id
    assert scene.fetches.requests[0].credentials is None
    (target,) = await scene.storage.feeds.targets([opened])
    assert target.credentials is None


async def test_credentials_under_another_spelling_say_nothing_of_a_topic(
    scene: OpenHubScene,
) -> None:
    login = Credentials(username="u")
    secret = await scene.add_feed(f"{TOPIC}#u", private=True, credentials=login)

    feed_id = await scene.topics.admit(TOPIC)

    assert feed_id != secret.id
    (target,) = await scene.storage.feeds.targets([feed_id])
    assert target.credentials is None


async def test_a_removed_topic_with_credentials_does_not_return_for_strangers(
    scene: OpenHubScene,
) -> None:
    login = Credentials(username="u")
    feed = await scene.add_feed(private=True, credentials=login)
    await scene.storage.feeds.set_state(feed.id, FeedState.REMOVED, scene.clock.now())
    assert await scene.topics.admit(TOPIC) != feed.id
    found = await scene.storage.feeds.get(feed.id)
    assert found is not None
    assert found.state is FeedState.REMOVED


async def test_a_topic_that_gets_credentials_while_it_is_looked_at_stays_apart(
    scene: OpenHubScene,
) -> None:
    new = NewFeed(url=TOPIC, private=True, credentials=Credentials(username="u"))

    async def while_it_is_added(request: FetchRequest) -> Fetched:
        await scene.storage.feeds.add(new, scene.clock.now())
        return named_by(NAMES_HUB)

    scene.fetches.answers = while_it_is_added
    (target,) = await scene.storage.feeds.targets([await scene.topics.admit(TOPIC)])
    assert target.credentials is None


async def test_a_removed_topic_is_an_unknown_one(scene: OpenHubScene) -> None:
    feed = await scene.add_feed()
    await scene.storage.feeds.set_state(feed.id, FeedState.REMOVED, scene.clock.now())
    assert await scene.topics.admit(TOPIC) == feed.id
    again = await scene.storage.feeds.get(feed.id)
    assert again is not None
    assert (again.state, again.private) == (FeedState.ACTIVE, True)


async def test_an_open_hub_takes_what_can_be_fetched(open_to_any: OpenHubScene) -> None:
    open_to_any.fetches.answers = lambda request: named_by("")
    assert await open_to_any.topics.admit(TOPIC)


@pytest.mark.parametrize("status", [401, 404, 410])
async def test_what_cannot_be_fetched_is_refused(
    open_to_any: OpenHubScene, status: int
) -> None:
    open_to_any.fetches.answers = lambda request: an_answer(status)
    with pytest.raises(TopicRefused, match=str(status)):
        await open_to_any.topics.admit(TOPIC)


async def test_a_private_address_is_refused(scene: OpenHubScene) -> None:
    scene.fetches.answers = lambda request: replace(
        an_answer(200), status=0, error=Blocked().reason
    )
    with pytest.raises(TopicRefused, match="blocked"):
        await scene.topics.admit(TOPIC)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_what_may_pass_is_tried_later(scene: OpenHubScene, status: int) -> None:
    scene.fetches.answers = lambda request: an_answer(status)
    with pytest.raises(TopicUnready, match=str(status)):
        await scene.topics.admit(TOPIC)


async def test_what_was_found_is_believed_for_an_hour(scene: OpenHubScene) -> None:
    scene.poller.outcome = lambda polling: replace(polling, hubs=(HUB_URL,))
    for seconds in (0, LOOKED_AT_SECONDS - 1, 1):
        scene.clock.advance(seconds)
        await scene.topics.admit(TOPIC)
    assert len(scene.fetches.requests) == 1
    assert len(scene.poller.fetched) == 2  # the baseline, and an hour later


async def test_many_who_ask_for_one_new_topic_cause_one_look(
    scene: OpenHubScene,
) -> None:
    found = await asyncio.gather(*(scene.topics.admit(TOPIC) for _ in range(20)))
    assert len(set(found)) == 1
    assert len(scene.fetches.requests) == 1


async def test_few_topics_of_one_host_wait_for_their_turn(scene: OpenHubScene) -> None:
    await scene.topics.admit("https://feeds.example/first")
    urls = [f"https://feeds.example/{number}" for number in range(6)]
    tasks = [asyncio.create_task(scene.topics.admit(url)) for url in urls]
    _, waiting = await asyncio.wait(tasks, timeout=0.5)
    busy = [task for task in tasks if task.done() and task.exception()]
    assert [type(task.exception()) for task in busy] == [TopicBusy, TopicBusy]
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)


async def test_a_first_fetch_that_hangs_is_waited_for_in_vain(
    scene: OpenHubScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics_module, "FETCH_SECONDS", 0.01)
    scene.poller.hangs = True
    with pytest.raises(TopicUnready, match="takes too long"):
        await scene.topics.admit(TOPIC)


async def give_up(scene: OpenHubScene) -> None:
    feed = await scene.add_feed()
    scene.poller.fetched.clear()
    await scene.storage.feeds.set_state(feed.id, FeedState.DEAD, scene.clock.now())


async def test_a_topic_that_was_given_up_is_tried_once_more_and_refused(
    scene: OpenHubScene,
) -> None:
    await give_up(scene)
    scene.poller.outcome = lambda polling: replace(polling, error="answered 404")
    with pytest.raises(TopicRefused, match="cannot be fetched: answered 404"):
        await scene.topics.admit(TOPIC)
    assert len(scene.poller.fetched) == 1


async def test_a_topic_that_was_given_up_and_answers_again_is_admitted(
    scene: OpenHubScene,
) -> None:
    await give_up(scene)
    scene.poller.state = FeedState.ACTIVE
    assert await scene.topics.admit(TOPIC)
    assert len(scene.poller.fetched) == 1


async def test_a_server_that_asks_for_patience_gets_it(scene: OpenHubScene) -> None:
    scene.poller.outcome = lambda polling: replace(polling, last_fetch=None)
    with pytest.raises(TopicUnready, match="no requests now"):
        await scene.topics.admit(TOPIC)
