"""The hub is put together as its settings have it."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace as replace_settings
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

import hub
from hub.composition import COLLECTIONS_FOLDER, BuiltHub, build_hub, identity
from hub.ingest.fetcher import FetcherIdentity
from hub.runtime.node_membership import NodeMembership
from hub.settings import Settings
from protocols.scp.collection import Encoding
from storage.contract import Storage
from storage.errors import StorageBusy
from storage.records import (
    ANONYMOUS,
    FeedId,
    NewFeed,
    NewVerification,
    Push,
    PushOffer,
    PushWay,
    PushWrite,
    VerificationMode,
)
from tests.support.documents import an_entry
from tests.support.fake_fetcher import InlineParser
from tests.support.fake_network import FakeNetwork
from tests.support.public_feeds import PublicFeeds
from tests.support.services import open_hub
from tests.support.storage_scene import Scene, fetch
from tests.support.waiting import eventually, in_background

HUB = "https://hub.example"


async def build(
    settings: Settings, storage: Storage, directory: Path, stack: AsyncExitStack
) -> BuiltHub:
    """A hub that says its database is in the directory, at rest."""
    placed = replace_settings(settings, database=f"sqlite:{directory / 'hub.db'}")
    return await build_hub(placed, storage, "token", HUB, stack)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(Settings(public_url=HUB, contact="me@hub.example"), id="both"),
        pytest.param(Settings(public_url=HUB), id="no-contact"),
        pytest.param(Settings(contact="me@hub.example"), id="no-public-url"),
    ],
)
def test_publishers_are_told_the_public_url_and_the_contact_that_are_set(
    settings: Settings,
) -> None:
    assert identity(settings) == FetcherIdentity(
        product=f"Fanfare/{hub.__version__}",
        url=settings.public_url and f"{HUB}/about",
        contact=settings.contact,
    )


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
async def test_collections_lie_beside_the_database(
    tmp_path: Path, compression: str
) -> None:
    data = tmp_path / "data"
    settings = Settings(scp_compression=compression)
    async with open_hub(tmp_path) as around, AsyncExitStack() as stack:
        feeds = PublicFeeds(around.storage)
        await feeds.publish(await feeds.add(), an_entry("a"))
        built = await build(settings, around.storage, data, stack)
        (made,) = await built.services.collections.build(snapshots=False)
    assert made.encoding is Encoding(compression)
    assert (data / COLLECTIONS_FOLDER / made.name).is_file()


async def test_collections_that_are_switched_off_have_no_folder(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with open_hub(tmp_path) as around, AsyncExitStack() as stack:
        built = await build(Settings(scp="off"), around.storage, data, stack)
    assert not built.services.collections.is_on
    assert not data.exists()


@pytest.mark.parametrize(
    ("settings", "takes_pushes"),
    [
        pytest.param(Settings(upstream="on"), True, id="on"),
        pytest.param(Settings(upstream="off"), False, id="off"),
        pytest.param(Settings(public_url=HUB), True, id="auto-public"),
        pytest.param(Settings(), False, id="auto-local"),
    ],
)
async def test_what_other_hubs_push_is_read_where_they_can_reach_this_one(
    tmp_path: Path, settings: Settings, takes_pushes: bool
) -> None:
    async with open_hub(tmp_path) as around, AsyncExitStack() as stack:
        built = await build(settings, around.storage, tmp_path, stack)
    assert ("received pushes" in built.background) == takes_pushes


class Terms(NodeMembership):
    """``is_certain``: this node is no longer, or still, sure of its term; ``asked``:
    how often each task, by its name, wanted to know."""

    is_certain = False

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self.asked: Counter[str] = Counter()

    def is_trusted(self) -> bool:
        if task := asyncio.current_task():
            self.asked[task.get_name()] += 1
        return self.is_certain


@pytest.mark.parametrize("is_certain", [False, True])
async def test_a_hub_whose_term_may_be_over_begins_no_request(
    tmp_path: Path, is_certain: bool
) -> None:
    """Another node may be at all of it by now."""
    async with open_hub(tmp_path) as around, AsyncExitStack() as stack:
        storage, clock, network = around.storage, around.clock, FakeNetwork()
        await owe_one_of_each(Scene(storage), clock.now())
        membership = Terms(storage)
        membership.is_certain = is_certain
        built = await build_hub(
            Settings(upstream="on", database=f"sqlite:{tmp_path / 'hub.db'}"),
            storage,
            "token",
            HUB,
            stack,
            clock=clock,
            network=network,
            parser=InlineParser(),
            membership=membership,
        )
        parts = ("poller", "push subscriber", "digests", "denials", "verifier")
        for name in parts:
            await stack.enter_async_context(in_background(built.background[name], name))

        def asked() -> set[str]:
            return {urlsplit(each.url).hostname or "" for each in network.requests}

        kinds = ("feed", "hub", "digest", "ended", "asked")
        if is_certain:
            await eventually(lambda: asked() == {f"{kind}.exempt" for kind in kinds})
        else:
            with pytest.raises(StorageBusy):
                await built.services.feeds.fetch(FeedId(1))

            def have_looked() -> bool:
                """All, and those that look every second once more: by then the others
                would have begun."""
                counts = [membership.asked[name] for name in parts]
                return min(counts) > 0 and sum(count > 1 for count in counts) >= 3

            await eventually(have_looked)
            assert asked() == set()


async def owe_one_of_each(scene: Scene, now: datetime) -> None:
    """What each part of a hub would begin at once."""
    storage = scene.storage
    feed, _ = await storage.feeds.add(NewFeed(url="https://feed.exempt/"), now)
    offer = PushOffer(way=PushWay.WEBSUB, hub="https://hub.exempt/", topic=feed.url)
    push = PushWrite(push=Push(offer=offer), is_turned=True)
    await storage.log.commit(replace(fetch(feed), next_fetch=now, push=push))
    digest = await scene.subscribe(feed, callback="https://digest.exempt/")
    await storage.digests.set(digest.id, now)
    ended = await scene.subscribe(feed, callback="https://ended.exempt/")
    await storage.subscriptions.end(ended.id, "ended", now, tell=True)
    asked = NewVerification(
        account=ANONYMOUS,
        mode=VerificationMode.SUBSCRIBE,
        topic=feed.url,
        callback="https://asked.exempt/",
        token="token",
        lease_seconds=300,
    )
    assert await storage.verifications.add(asked, now, most=9, most_of_host=9)
