"""What went to callbacks at the first try, by chunks."""

from __future__ import annotations

from typing import Any

import pytest

from storage.records import SentChunk
from tests.support.storage_scene import Scene, all_of, at


async def test_a_chunk_tells_how_many_took_it_and_how_fast(scene: Scene) -> None:
    feed = await scene.add_feed()
    subscriptions = [await scene.subscribe(feed, name) for name in "abc"]
    position = await scene.publish(feed)
    (chunk,) = await scene.claim(at(1))
    await scene.fail(chunk, subscriptions[1], when=at(1))
    await scene.flush(when=at(1), outcomes=all_of(chunk)[:1] + all_of(chunk)[2:])

    [sent] = await scene.storage.deliveries.sent_chunks(limit=9)

    assert (sent.feed_id, sent.position) == (feed.id, position)
    assert (sent.callbacks, sent.delivered) == (3, 2)
    assert sent.median_milliseconds == sent.slowest_milliseconds > 0


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, [4, 3, 2, 1]),
        ({"since": at(2)}, [4, 3, 2]),
        ({"until": at(2)}, [1]),
        ({"since": at(2), "until": at(4)}, [3, 2]),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_of_one", [False, True], ids=["all", "of one feed"])
async def test_chunks_are_found_by_time_and_feed_page_by_page(
    scene: Scene, wanted: dict[str, Any], expected: list[int], is_of_one: bool
) -> None:
    feed, other = await scene.add_feed(), await scene.add_feed("b")
    for each in (feed, other):
        await scene.subscribe(each)
    for seconds in range(1, 5):
        await scene.publish(feed)
        await scene.deliver(at(seconds))
    if is_of_one:
        await scene.publish(other)
        await scene.deliver(at(3))
        wanted = {**wanted, "feed_id": feed.id}
    met, before = list[SentChunk](), None
    while page := await scene.storage.deliveries.sent_chunks(
        limit=2, before=before, **wanted
    ):
        met += page
        before = page[-1].id
    assert [each.at for each in met] == [at(seconds) for seconds in expected]
