"""What crawlers are given is put together as the settings have it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hub.app import _warn_about
from hub.publishing import FOLDER, build_publishing
from hub.settings import Settings
from protocols.scp.collection import Encoding
from tests.support.public_feeds import PublicFeeds, an_entry
from tests.support.services import open_hub

URL = "https://hub.example"


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
async def test_collections_lie_beside_the_database(
    tmp_path: Path, compression: str
) -> None:
    settings = replace(
        Settings(),
        database=f"sqlite:{tmp_path / 'data' / 'hub.db'}",
        scp_compression=compression,
    )
    async with open_hub(tmp_path) as hub:
        feeds = PublicFeeds(hub.storage)
        await feeds.publish(await feeds.add(), an_entry("a"))
        built = await build_publishing(
            settings, hub.storage, hub.clock, hub.metrics, URL
        )
        (made,) = await built.service.build(snapshots=False)
    assert made.encoding is Encoding(compression)
    assert (tmp_path / "data" / FOLDER / made.name).is_file()


async def test_switched_off_there_is_no_folder(tmp_path: Path) -> None:
    database = f"sqlite:{tmp_path / 'data' / 'hub.db'}"
    settings = replace(Settings(), database=database, scp="off")
    async with open_hub(tmp_path) as hub:
        built = await build_publishing(
            settings, hub.storage, hub.clock, hub.metrics, URL
        )
    assert not built.service.is_on
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("url", "scp", "warns"),
    [
        ("http://hub.example", "on", True),
        ("http://hub.example", "off", False),
        ("https://hub.example", "on", False),
        ("", "on", False),
    ],
)
def test_collections_in_the_clear_are_warned_of(
    url: str, scp: str, warns: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    _warn_about(replace(Settings(), public_url=url, scp=scp))
    assert ("scp_insecure" in capsys.readouterr().out) == warns
