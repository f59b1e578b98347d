"""The same state gives the same bytes, whichever process is asked, and when."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from hub.search.index_follower import SearchIndex
from protocols.model import Author, Category, Entry, Feed, Link, Text
from tests.support.documents import an_entry
from tests.support.public_feeds import PublicFeeds
from tests.support.services import open_hub
from tests.support.storage_scene import START


def an_episode() -> Entry:
    """Much of what can be said, so that nothing depends on the order of a set."""
    audio = Link(href="https://cdn.example/1.mp3", rel="enclosure", type="audio/mpeg")
    return an_entry(
        "episode",
        content=Text(
            value="<h2>One</h2><p>Title and <a href='https://b.example/'>link</a></p>"
            "<ul><li>a</li></ul><p><img src='https://b.example/i.png'>Two</p>"
        ),
        links=(Link(href="https://example.org/episode"), audio),
        authors=(Author(name="Ann"), Author(name="Bob"), Author(name="Cat")),
        categories=tuple(Category(term=each) for each in ("x", "y", "z", "title")),
        extensions={"itunes": {"duration": "1:02:03", "season": "2"}, "dc": {"a": "b"}},
    )


async def publish(directory: Path) -> None:
    async with open_hub(directory) as hub:
        feeds = PublicFeeds(hub.storage)
        one = await feeds.add("one", category="first", head=Feed(title="The title"))
        two = await feeds.add("two", category="second")
        await feeds.add("empty")
        await feeds.publish(one, an_episode(), *(an_entry(str(n)) for n in range(60)))
        await feeds.publish(two, an_entry("3", title="Twice"), an_entry("open"))
        await hub.services.collections.build(snapshots=True)
        later = START + timedelta(hours=1)
        hub.clock.advance(3_600)
        await feeds.publish(one, an_entry("4", title="Edited title"), when=later)
        await feeds.withdraw(one, "5", when=later)
        await hub.services.collections.build(snapshots=False)
        await SearchIndex(hub.storage, hub.clock).catch_up()


def read(directory: Path, seed: str) -> dict[str, str]:
    """By a process of its own, which hashes strings in its own way."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.public_walk", str(directory)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.once("its other processes open the file")
async def test_two_processes_publish_the_same_bytes(tmp_path: Path) -> None:
    await publish(tmp_path)
    one, other = read(tmp_path, "1"), read(tmp_path, "2")
    assert one == other
    for name in ("/sitemap.xml", "/robots.txt", "/topics/1.atom", "/topics/1.json"):
        assert name in one
    for begin in ("/scp/all-delta", "/scp/second-snapshot", "/topics/1.atom?before="):
        assert any(path.startswith(begin) for path in one), begin
