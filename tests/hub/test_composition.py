"""The hub is put together as its settings have it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import hub
from hub.composition import COLLECTIONS_FOLDER, BuiltHub, build_hub, identity
from hub.ingest.fetcher import FetcherIdentity
from hub.settings import Settings
from protocols.scp.collection import Encoding
from storage.contract import Storage
from tests.support.documents import an_entry
from tests.support.public_feeds import PublicFeeds
from tests.support.services import open_hub

HUB = "https://hub.example"


async def build(
    settings: Settings, storage: Storage, directory: Path, stack: AsyncExitStack
) -> BuiltHub:
    """A hub that says its database is in the directory, at rest."""
    placed = replace(settings, database=f"sqlite:{directory / 'hub.db'}")
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
