"""Who has the database, for how long, and what becomes of a log that lost its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from storage.errors import StorageBusy, TermEnded
from storage.postgres import open_database
from storage.postgres.operations import PostgresStorage
from storage.records import ControlEvent, EpochBegan, NewFeed, NewNode
from tests.support.new_database import new_postgres
from tests.support.storage_scene import START, Scene

ONE, TWO = (NewNode(name=name, is_alone=True) for name in ("one", "two"))
END_TERMS = "UPDATE nodes SET expires_at = now() - interval '1 s'"


@asynccontextmanager
async def two_hubs(tmp_path: Path) -> AsyncIterator[list[PostgresStorage]]:
    async with new_postgres() as location:
        hubs = [await open_database(location, tmp_path / "key") for _ in range(2)]
        yield hubs
        for each in hubs:
            await each.close()


def execute(hub: PostgresStorage, statement: str) -> None:
    settings = hub._connections._settings
    with psycopg.connect(**settings.conninfo(), autocommit=True) as connection:
        connection.execute(statement)


async def test_a_term_is_taken_over_when_it_is_over_and_no_sooner(
    tmp_path: Path,
) -> None:
    async with two_hubs(tmp_path) as (one, two):
        term = await one.membership.join(ONE)
        with pytest.raises(StorageBusy, match=r"another hub \(one\) is using"):
            await two.membership.join(TWO)
        execute(one, END_TERMS)

        assert await one.membership.renew(term) == term  # late, and nobody was faster
        execute(one, END_TERMS)
        await two.membership.join(TWO)

        with pytest.raises(TermEnded):
            await one.membership.renew(term)
        assert [each.name for each in await one.membership.nodes()] == ["two"]


@pytest.mark.parametrize(
    "loss",
    [
        "UPDATE log_head SET head = head - 1",  # restored, as it was before
        "UPDATE log_head SET identity = 'of another server'",  # promoted
    ],
)
async def test_a_log_that_may_lack_its_end_begins_an_epoch(
    tmp_path: Path, loss: str
) -> None:
    async with two_hubs(tmp_path) as (hub, _):
        scene, told = Scene(hub), list[ControlEvent]()
        term = await hub.membership.join(ONE)
        before = await hub.log.end()
        feed, _ = await hub.feeds.add(NewFeed(url="https://a.example/"), START)
        await scene.publish(feed)
        with hub.control.watch(told.append):
            await hub.membership.renew(term)
            assert (await hub.log.end()).epoch == before.epoch
            execute(hub, loss)
            await hub.membership.renew(term)
            await hub.membership.renew(term)

        epoch = (await hub.log.end()).epoch
        assert epoch != before.epoch
        assert told == [EpochBegan(epoch)]


async def test_a_hub_that_starts_on_a_restored_log_begins_an_epoch(
    tmp_path: Path,
) -> None:
    key = tmp_path / "hub.key"
    async with new_postgres() as location:
        hub = await open_database(location, key)
        scene = Scene(hub)
        term = await hub.membership.join(ONE)
        await scene.publish(await scene.add_feed())
        before = await hub.log.end()
        await hub.membership.leave(term)
        await hub.close()

        async def begun(loss: str) -> str:
            opened = await open_database(location, key)
            execute(opened, loss)
            await opened.close()
            opened = await open_database(location, key)
            epoch = (await opened.log.end()).epoch
            await opened.close()
            return epoch

        assert await begun("SELECT 1") == before.epoch
        assert await begun("UPDATE log_head SET head = head - 1") != before.epoch
        other = "UPDATE log_head SET epoch = 'a', former_epochs = '{}'"
        assert await begun(other) not in (before.epoch, "a")
        (tmp_path / "hub.end").write_text("no cursor at all")
        (tmp_path / "hub.end.partial").mkdir()  # nor can one be written
        await (await open_database(location, key)).close()
