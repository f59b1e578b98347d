"""Entries that are not to be found: who reads them back, and who does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hub.services.entry_retrieval import EntryRange, RetrievalRequest
from hub.services.token_authentication import CreateToken, Principal
from protocols.model import Entry
from storage.packing import unpack
from storage.records import TokenScope
from tests.support.library import CALLBACK, Library, topic_of
from tests.support.services import Hub, open_hub

WANTED = {
    "topic": RetrievalRequest(topic=topic_of("public")),
    "callback": RetrievalRequest(callback=CALLBACK),
}


async def principal_of(hub: Hub, account: str) -> Principal:
    made = await hub.services.tokens.create(
        CreateToken(account=account, scopes=frozenset({TokenScope.RETRIEVE}))
    )
    found = await hub.services.tokens.authenticate(made.secret)
    assert found is not None
    return found


async def filled(hub: Hub) -> Library:
    """A public feed that ``me`` subscribes to, with an entry of either kind."""
    library = await Library.open(hub)
    await library.add_feed("public")
    await library.subscribe("public")
    await library.publish("public", "listed")
    await library.publish("public", "hidden", minutes=1, unlisted=True)
    await library.index()
    return library


async def retrieved(
    hub: Hub, principal: Principal, wanted: RetrievalRequest
) -> list[str]:
    retrieval = hub.services.retrieval
    collected = await retrieval.collect(
        await retrieval.select(principal, wanted), EntryRange()
    )
    return [unpack(each.body, Entry).title for each in collected.entries]


async def searched(hub: Hub, principal: Principal) -> list[str]:
    found = await hub.services.search.find(principal, "listed | hidden", 10)
    return [unpack(each.body, Entry).title for each in found.entries]


@pytest.mark.parametrize("wanted", WANTED)
async def test_subscribers_retrieve_them_and_nobody_else(
    tmp_path: Path, wanted: str
) -> None:
    async with open_hub(tmp_path) as hub:
        await filled(hub)
        me, other = await principal_of(hub, "me"), await principal_of(hub, "other")

        assert await retrieved(hub, me, WANTED[wanted]) == ["hidden", "listed"]
        assert await retrieved(hub, other, WANTED["topic"]) == ["listed"]
        assert await searched(hub, me) == ["hidden", "listed"]
        assert await searched(hub, other) == ["listed"]


@pytest.mark.parametrize("wanted", WANTED)
async def test_withheld_they_are_retrieved_by_no_subscriber_either(
    tmp_path: Path, wanted: str
) -> None:
    async with open_hub(tmp_path, unlisted="withheld") as hub:
        await filled(hub)
        me = await principal_of(hub, "me")

        assert await retrieved(hub, me, WANTED[wanted]) == ["listed"]
        assert await searched(hub, me) == ["listed"]


@pytest.mark.parametrize(("unlisted", "shown"), [("told", True), ("withheld", False)])
async def test_a_replay_has_them_unless_they_are_withheld(
    tmp_path: Path, unlisted: str, shown: bool
) -> None:
    async with open_hub(tmp_path, unlisted=unlisted) as hub:
        await filled(hub)
        me = await principal_of(hub, "me")
        topic = topic_of("public")

        await hub.services.redeliveries.replay(me, topic, CALLBACK, 9, waits=True)

        [body] = [each.body for each in hub.network.of("POST")]
        assert body is not None
        assert (b"hidden" in body) is shown
        assert b"listed" in body
