"""Feeds that hubs of others push, and the callbacks that those know."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from msgspec.structs import replace

from storage.contract import Storage
from storage.records import (
    CallbackState,
    Credentials,
    FeedId,
    FeedPush,
    FeedState,
    NewPushCallback,
    Push,
    PushCallback,
    PushCount,
    PushOffer,
    PushRecord,
    PushWay,
    PushWrite,
    StoredFeed,
)
from tests.support.storage_scene import MINUTE, START, Scene, fetch
from tests.support.work_claims import ask_hub, held_push, leave_hub

IS_MODELLED = False
DAY = timedelta(days=1)
OFFER = PushOffer(
    way=PushWay.WEBSUB,
    hub="https://hub.example/",
    topic="https://a.example/feed",
    marks=("feed:1",),
)


async def offer(
    storage: Storage,
    feed: StoredFeed,
    push: Push | None = None,
    *,
    is_turned: bool = True,
    **more: object,
) -> None:
    write = PushWrite(
        push=push or Push(offer=OFFER),
        is_turned=is_turned,
        **more,  # type: ignore[arg-type]
    )
    await storage.log.commit(replace(fetch(feed), push=write))


async def an_offer(storage: Storage, name: str = "a") -> StoredFeed:
    feed = await Scene(storage).add_feed(name)
    await offer(storage, feed)
    return feed


async def ask(storage: Storage, feed: StoredFeed, name: str = "t") -> PushCallback:
    await ask_hub(
        storage,
        NewPushCallback(
            feed_id=feed.id,
            way=OFFER.way,
            hub=OFFER.hub,
            topic=OFFER.topic,
            token=name,
            secret="a secret",
            asked_at=START,
            until=START + MINUTE,
        ),
    )
    found = await storage.pushes.find(name)
    assert found is not None
    return found


async def upstream(storage: Storage, feed: StoredFeed) -> FeedPush:
    found = await storage.pushes.get(feed.id)
    assert found is not None
    return found


async def due(storage: Storage) -> list[FeedId]:
    return [it.feed_id for it in await storage.pushes.due(START + DAY, limit=9)]


async def counts(storage: Storage, hub: str = "") -> dict[str, int]:
    for each in await storage.pushes.hubs(9):
        if each.hub == hub:
            return {what.value: count for what, count in each.counts}
    return {}


async def test_what_a_feed_offers_is_stored_with_the_fetch(storage: Storage) -> None:
    feed = await Scene(storage).add_feed()
    assert await storage.pushes.get(feed.id) is None
    [before] = await storage.feeds.targets([feed.id])
    assert before.push is None

    record = PushRecord(proofs=2, missed_at=START)
    push = Push(offer=OFFER, record=record)
    await offer(storage, feed, push, counted=(PushCount.BROUGHT, PushCount.LATE))

    [after] = await storage.feeds.targets([feed.id])
    assert after.push == push
    found = await upstream(storage, feed)
    assert (found.push, found.feed_state) == (push, FeedState.ACTIVE)
    assert not found.has_credentials
    assert await counts(storage, OFFER.hub) == {}
    assert await counts(storage) == {"brought": 1, "late": 1}


async def test_a_feed_is_due_when_its_offer_turns_and_when_its_state_does(
    storage: Storage,
) -> None:
    feed, other = await an_offer(storage), await an_offer(storage, "b")
    assert await due(storage) == [feed.id, other.id]
    async with held_push(storage, feed.id) as lease_id:
        await storage.pushes.postpone(feed.id, None, lease_id=lease_id)
    async with held_push(storage, other.id) as lease_id:
        await storage.pushes.postpone(other.id, START + 2 * DAY, lease_id=lease_id)
    assert await due(storage) == []

    await offer(storage, feed, is_turned=False)
    assert await due(storage) == []
    await offer(storage, feed, is_turned=True)
    assert await due(storage) == [feed.id]
    await storage.feeds.set_state(other.id, FeedState.PAUSED, START)
    assert await due(storage) == [other.id, feed.id]
    waiting = await storage.pushes.due(START + DAY, limit=1, without=[other.id])
    assert [each.feed_id for each in waiting] == [feed.id]
    assert (await upstream(storage, other)).feed_state is FeedState.PAUSED


async def test_a_feed_with_credentials_says_so(storage: Storage) -> None:
    credentials = Credentials(username="a", password="b")
    feed = await Scene(storage).add_feed(credentials=credentials)
    await offer(storage, feed)
    assert (await upstream(storage, feed)).has_credentials


async def test_a_callback_is_found_by_its_token_which_the_file_does_not_show(
    storage: Storage, tmp_path: Path
) -> None:
    feed = await an_offer(storage)
    callback = await ask(storage, feed, "the-token")
    assert (callback.token, callback.secret) == ("the-token", "a secret")
    assert callback.state is CallbackState.ASKED
    assert (await upstream(storage, feed)).callbacks == (callback,)
    assert (await upstream(storage, feed)).asked_at == START
    assert await storage.pushes.find("the-other") is None
    await storage.close()
    stored = b"".join(each.read_bytes() for each in _files(tmp_path))
    assert b"the-token" not in stored
    assert b"a secret" not in stored


def _files(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def test_one_that_is_confirmed_lasts_as_long_as_its_lease(
    storage: Storage,
) -> None:
    feed = await an_offer(storage)
    callback = await ask(storage, feed)
    await storage.pushes.confirm(callback, START + DAY)
    found = await upstream(storage, feed)
    assert found.push.until == START + DAY
    assert found.callbacks[0].state is CallbackState.ACTIVE
    [target] = await storage.feeds.targets([feed.id])
    assert target.push is not None
    assert target.push.until == START + DAY

    await leave_hub(storage, found.callbacks[0], START + MINUTE)
    found = await upstream(storage, feed)
    assert found.push.until is None
    assert found.callbacks[0].until == START + MINUTE
    await storage.pushes.drop(found.callbacks[0])
    assert (await upstream(storage, feed)).callbacks == ()
    await storage.pushes.confirm(callback, START + DAY)  # too late
    assert (await upstream(storage, feed)).push.until is None
    assert await counts(storage) == {"requested": 1, "confirmed": 1}


async def test_failures_are_counted_until_one_is_confirmed(storage: Storage) -> None:
    feed = await an_offer(storage)
    for token in ("a", "b"):
        await storage.pushes.fail(
            await ask(storage, feed, token),
            PushCount.REFUSED,
            error="answered 500",
            retry_at=START + DAY,
        )
    found = await upstream(storage, feed)
    assert (found.failures, found.error) == (2, "answered 500")
    assert (found.retry_at, found.callbacks) == (START + DAY, ())
    await storage.pushes.confirm(await ask(storage, feed, "c"), START + DAY)
    found = await upstream(storage, feed)
    assert (found.failures, found.error, found.retry_at) == (0, "", None)


async def test_another_hub_has_no_failures_yet(storage: Storage) -> None:
    feed = await an_offer(storage)
    await storage.pushes.fail(
        await ask(storage, feed),
        PushCount.REFUSED,
        error="answered 500",
        retry_at=START + DAY,
    )
    assert await counts(storage, OFFER.hub) == {}
    other = replace(OFFER, hub="https://other.example/")
    await offer(storage, feed, Push(offer=other))
    found = await upstream(storage, feed)
    assert (found.failures, found.error, found.retry_at) == (0, "", None)
    assert await counts(storage) == {"requested": 1, "refused": 1}


async def test_a_hint_stays_until_a_later_fetch_has_heeded_it(
    storage: Storage,
) -> None:
    feed = await an_offer(storage)

    async def hinted() -> object:
        return (await upstream(storage, feed)).push.hinted_at

    callback = await ask(storage, feed)
    await storage.pushes.hint(callback, START + MINUTE)
    await storage.pushes.hint(callback, START + 2 * MINUTE)
    assert await hinted() == START + 2 * MINUTE
    await storage.pushes.hint(callback, START + MINUTE)
    assert await hinted() == START + 2 * MINUTE, "the last to come, not to be stored"
    assert (await counts(storage))["delivered"] == 3
    assert await storage.pushes.hinted(after=FeedId(0), limit=9) == [feed.id]
    assert await storage.pushes.hinted(after=feed.id, limit=9) == []
    await offer(storage, feed, heeded_until=START + MINUTE)
    assert await hinted() == START + 2 * MINUTE
    await offer(storage, feed, heeded_until=START + 2 * MINUTE)
    assert await hinted() is None
    assert await storage.pushes.hinted(after=FeedId(0), limit=9) == []
    await offer(storage, feed, Push(offer=OFFER, hinted_at=START))
    assert await hinted() == START


async def test_one_that_is_confirmed_is_due_when_it_was_postponed_to(
    storage: Storage,
) -> None:
    feed = await an_offer(storage)
    await storage.pushes.confirm(await ask(storage, feed), START + 9 * DAY)
    async with held_push(storage, feed.id) as lease_id:
        await storage.pushes.postpone(feed.id, START + MINUTE, lease_id=lease_id)

    assert await storage.pushes.due(START, limit=9) == []
    assert await due(storage) == [feed.id]


async def test_a_feed_that_offers_nothing_any_more_is_forgotten_with_its_hub(
    storage: Storage,
) -> None:
    feed = await an_offer(storage)
    await storage.pushes.confirm(await ask(storage, feed), START + DAY)
    assert (await counts(storage, OFFER.hub))["confirmed"] == 1
    async with held_push(storage, feed.id) as lease_id:
        await storage.pushes.forget(feed.id, lease_id=lease_id)  # it still does
    assert await storage.pushes.get(feed.id) is not None
    await offer(storage, feed, Push(offer=None))
    assert (await upstream(storage, feed)).push.offer is None
    assert await counts(storage, OFFER.hub) == {}
    async with held_push(storage, feed.id) as lease_id:
        await storage.pushes.forget(feed.id, lease_id=lease_id)
    assert await storage.pushes.get(feed.id) is None
    assert (await counts(storage))["confirmed"] == 1


async def test_hubs_are_listed_by_their_subscriptions(storage: Storage) -> None:
    for hub, number in (("https://few.example/", 1), ("https://many.example/", 3)):
        for _ in range(number):
            await storage.pushes.count(hub, PushCount.CONFIRMED)
    await storage.pushes.count("https://none.example/", PushCount.REFUSED)
    assert [each.hub for each in await storage.pushes.hubs(1)] == [
        "",
        "https://many.example/",
    ]
    assert [each.hub for each in await storage.pushes.hubs(9)] == [
        "",
        "https://few.example/",
        "https://many.example/",
    ]


async def test_of_hubs_that_are_not_used_only_what_they_push_is_due_at_the_start(
    storage: Storage,
) -> None:
    feeds = []
    for name in ("bad", "good", "asked"):
        feed = await Scene(storage).add_feed(name)
        hub = f"https://{name}.example/"
        await offer(storage, feed, Push(offer=replace(OFFER, hub=hub)))
        if name != "asked":
            await storage.pushes.confirm(await ask(storage, feed, name), START + DAY)
        async with held_push(storage, feed.id) as lease_id:
            await storage.pushes.postpone(feed.id, None, lease_id=lease_id)
        feeds.append(feed)
    bad, good, _ = feeds
    assert await due(storage) == []
    hubs = [f"https://{name}.example/" for name in ("asked", "bad", "good")]
    assert sorted(await storage.pushes.named_hubs()) == hubs
    await storage.pushes.switch(is_on=True, unused=hubs[:2])  # one pushes nothing
    assert sorted(await due(storage)) == [bad.id, good.id]
    assert (await upstream(storage, bad)).push.until is None
    assert (await upstream(storage, good)).push.until == START + DAY


async def test_a_purged_feed_leaves_neither_offer_nor_callbacks(
    storage: Storage,
) -> None:
    feed = await an_offer(storage)
    await ask(storage, feed)
    await storage.feeds.set_state(feed.id, FeedState.REMOVED, START)
    await storage.feeds.purge_removed(START + DAY, 9)
    assert await storage.pushes.get(feed.id) is None
    assert await storage.pushes.find("t") is None


async def test_what_a_publisher_agreed_on_is_kept_with_its_feed(
    storage: Storage,
) -> None:
    feed, other = [await Scene(storage).add_feed(name) for name in "ab"]
    await storage.feeds.set_publish_secret(feed.id, "s3cret")
    await storage.feeds.set_subscription_callback(feed.id, "https://a.example/ask")

    assert await storage.feeds.publish_secret(feed.id) == "s3cret"
    assert await storage.feeds.publish_secret(other.id) == ""
    asked = await storage.feeds.subscription_callback(feed.id)
    assert asked == "https://a.example/ask"
    assert await storage.feeds.subscription_callback(other.id) == ""
