"""What a person does with a hub, by the command line alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.command import Outcome, fanfare, fork_fanfare, knowing
from tests.support.http_server import ServerAnswer
from tests.support.hub_process import HubProcess
from tests.support.publisher import Publisher
from tests.support.subscribers import Subscribers
from tests.support.waiting import eventually


@dataclass(frozen=True, slots=True)
class Session:
    """A hub, a publisher, and a terminal that knows the hub."""

    hub: HubProcess
    publisher: Publisher

    async def type(self, *arguments: str) -> Outcome:
        return await fanfare(*arguments, variables=knowing(self.hub))


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    async with Publisher() as publisher, HubProcess(directory=tmp_path) as hub:
        yield Session(hub, publisher)


async def test_a_feed_from_its_adding_to_its_removal(session: Session) -> None:
    feed = session.publisher.add_feed()
    url = session.publisher.url(feed)

    added = await session.type("feeds", "add", url)
    assert (added.code, added.err) == (0, "")
    assert f"added  {url}  (feed 1)\n  Feed 1: 1 entry\n  next poll 20" in added.out
    assert "it is new: polled " in added.out

    listed = await session.type("feeds", "list", "--json")
    assert [each["url"] for each in json.loads(listed.out)] == [url]

    shown = await session.type("feeds", "show", url)
    for part in (
        "last answer",
        "etag",
        "next fetch",
        "velocity",
        "subscribers",
        "because",
    ):
        assert part in shown.out

    session.publisher.publish(feed)
    fetched = await session.type("feeds", "fetch", "1")
    assert "Feed 1: 2 entries" in fetched.out

    history = await session.type("feeds", "history", url, "--json")
    polls = json.loads(history.out)["polls"]
    assert [(each["reason"], each["outcome"], each["entries"]) for each in polls] == [
        ("asked_for", "new", 1),
        ("first_fetch", "first", 1),
    ]

    assert (await session.type("feeds", "pause", "1")).code == 0
    assert "paused" in (await session.type("feeds", "list")).out
    assert (await session.type("feeds", "resume", "1")).code == 0
    assert (await session.type("feeds", "remove", url)).code == 0
    assert "no feeds yet" in (await session.type("feeds", "list")).out
    assert (await session.type("feeds", "show", url)).code == 1


async def test_listening_prints_new_entries_and_unsubscribes(session: Session) -> None:
    feed = session.publisher.add_feed()
    url = session.publisher.url(feed)
    listener = await fork_fanfare("listen", url, variables=knowing(session.hub))
    assert listener.stdout is not None
    async with asyncio.timeout(60):
        assert b"listening at http://127.0.0.1:" in await listener.stdout.readline()
        session.publisher.publish(feed)
        await session.type("feeds", "fetch", url)
        line = (await listener.stdout.readline()).decode()
        assert line.endswith("  Entry 2  https://publisher.example/1/2\n")
        listener.terminate()
        await listener.communicate()
    assert listener.returncode == 0
    assert "no subscriptions" in (await session.type("subs", "list")).out


async def is_listed_as_late(session: Session) -> bool:
    return "503" in (await session.type("deliveries", "list")).out


async def test_a_subscription_shows_its_attempts(session: Session) -> None:
    feed = session.publisher.add_feed()
    url = session.publisher.url(feed)

    async with Subscribers() as subscribers:
        subscribers["hook"].answer(ServerAnswer(status=503))
        added = await session.type("subs", "add", subscribers["hook"].url, url)
        assert added.code == 0
        session.publisher.publish(feed)
        await session.type("feeds", "fetch", url)
        await eventually(lambda: is_listed_as_late(session), 20)
        shown = (await session.type("subs", "show", "1")).out
        assert "failing since" in shown
        assert "  503  " in shown
        retried = await session.type("deliveries", "retry", "--subscription", "1")
        assert retried.code == 0
        assert (await session.type("subs", "remove", "1")).code == 0


HTML = (
    b"<!doctype html><html><head><title>Home</title>"
    b'<link rel="alternate" type="application/rss+xml" href="/blog/feed.xml">'
    b"</head><body>Hello</body></html>"
)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            ServerAnswer(headers={"Content-Type": "text/html"}, body=HTML),
            ["not a feed", "/blog/feed.xml"],
        ),
        (ServerAnswer(body=b""), ["empty"]),
        (ServerAnswer(status=404), ["404"]),
        (ServerAnswer(status=500), ["500"]),
    ],
)
async def test_a_feed_that_fails_is_named_with_its_error_and_stays(
    session: Session, answer: ServerAnswer, words: list[str]
) -> None:
    feed = session.publisher.add_feed()
    feed.instead = answer
    url = session.publisher.url(feed)
    added = await session.type("feeds", "add", "--exactly", url)
    assert added.code == 1
    assert "(feed 1)\n  error: " in added.err
    for word in words:
        assert word in added.err
    assert "next poll 20" in added.err
    listed = await session.type("feeds", "list", "--json")
    assert len(json.loads(listed.out)) == 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("example", "expected an absolute http or https URL"),
        ("http://10.0.0.1/feed", "does not connect to http://10.0.0.1/feed"),
        ("http://no-such-host.invalid/feed", "cannot be resolved"),
        ("http://127.0.0.1:1/feed", "error"),
    ],
)
async def test_a_url_that_leads_nowhere_is_said_to(
    session: Session, url: str, words: str
) -> None:
    added = await session.type("feeds", "add", url)
    assert added.code == 1
    assert words in added.err
    assert "Traceback" not in added.err


async def test_of_several_urls_the_good_ones_are_added(session: Session) -> None:
    url = session.publisher.url(session.publisher.add_feed())
    added = await session.type("feeds", "add", url, "nonsense")
    assert added.code == 1
    assert f"added  {url}" in added.out
    assert "not added  nonsense" in added.err
    assert "1 of 2 feeds failed" in added.err


async def test_an_unknown_token_is_refused(session: Session) -> None:
    wrong = {**knowing(session.hub), "FANFARE_ADMIN_TOKEN": "wrong"}
    outcome = await fanfare("feeds", "list", variables=wrong)
    assert outcome.code == 1
    expected = "fanfare: invalid or revoked token\n"
    assert outcome.err == expected


@pytest.mark.once("a server has tools of its own for backups")
async def test_a_backup_of_a_running_hub_can_be_restored(
    session: Session, tmp_path: Path
) -> None:
    url = session.publisher.url(session.publisher.add_feed())
    await session.type("feeds", "add", url)
    backup = tmp_path / "copy" / "hub.db"
    backup.parent.mkdir()
    outcome = await session.type("db", "backup", str(backup))
    assert (outcome.code, outcome.err) == (0, "")
    assert "by the hub at" in (await session.type("db", "status")).out
    await session.hub.terminate()

    before = await session.type("db", "status")
    restored = {"FANFARE_DATABASE": f"sqlite:{backup}"}
    after = await fanfare("db", "status", variables=restored)
    assert (before.code, after.code) == (0, 0)
    epochs = [
        next(line for line in each.out.splitlines() if line.startswith("epoch"))
        for each in (before, after)
    ]
    assert epochs[0] != epochs[1]


@pytest.mark.once("a server has tools of its own for backups")
async def test_a_backup_needs_no_hub_and_overwrites_nothing(
    session: Session, tmp_path: Path
) -> None:
    await session.hub.terminate()
    backup = str(tmp_path / "copy.db")
    assert (await session.type("db", "backup", backup)).code == 0
    again = await session.type("db", "backup", backup)
    assert again.code == 1
    assert "exists already" in again.err
    assert (await session.type("db", "migrate")).code == 0


@pytest.mark.once("on a server, hubs go on while it is migrated")
async def test_a_migration_waits_for_the_hub_to_stop(session: Session) -> None:
    outcome = await session.type("db", "migrate")
    assert outcome.code == 1
    assert "stop it first" in outcome.err
