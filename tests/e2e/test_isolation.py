"""One slow or dead endpoint delays nobody else."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import monotonic

from tests.support.http_server import ServerAnswer
from tests.support.stage import open_stage
from tests.support.subscribers import Subscriber
from tests.support.waiting import LoopLag, eventually

FEEDS = 4
SUBSCRIBERS_EACH = 60
HANGING_EACH = 3  # 5 %
ROUNDS = 6
WHOLE_DAY = 86_400.0


async def test_hanging_callbacks_do_not_delay_the_others(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage, LoopLag() as lag:
        feeds = [await stage.add_feed() for _ in range(FEEDS)]
        healthy = []
        for _feed_id, feed in feeds:
            for index in range(SUBSCRIBERS_EACH):
                subscriber = await stage.subscribe(f"s{feed.number}-{index}", feed)
                if index < HANGING_EACH:
                    subscriber.answers = itertools.repeat(ServerAnswer(delay=WHOLE_DAY))
                else:
                    healthy.append(subscriber)

        published: dict[tuple[int, int], float] = {}
        for round in range(ROUNDS):
            for feed_id, feed in feeds:
                published[feed.number, feed.count + 1] = monotonic()
                await stage.publish(feed_id, feed)
            await eventually(partial(_all_have, healthy, round + 1), seconds=60)

        delays = sorted(
            receipt.started - published[entry]
            for subscriber in healthy
            for receipt in subscriber.accepted
            for entry in receipt.entries
        )
        assert len(delays) == ROUNDS * FEEDS * (SUBSCRIBERS_EACH - HANGING_EACH)
        late = lag.most_since(0.0)  # everything on this machine, at its worst
        assert delays[len(delays) * 99 // 100] < 2.0 + late
        assert delays[len(delays) // 2] < 0.5 + late


def _all_have(subscribers: Sequence[Subscriber], count: int) -> bool:
    return all(len(each.numbers) == count for each in subscribers)
