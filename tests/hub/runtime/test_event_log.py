from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from hub.runtime.event_log import MOST_OF_KIND, EventLog, LogEvent
from hub.runtime.metrics import Metrics


def test_a_line_is_a_sentence_with_its_kind_and_the_ids_it_is_about() -> None:
    with capture_logs() as lines:
        EventLog().tell(LogEvent.FEED_FAILING, "it began to fail", feed=7)
        EventLog().tell(LogEvent.NEWS, "it has news", feed=7)
    assert lines == [
        {
            "event": "it began to fail",
            "kind": "feed_failing",
            "feed": 7,
            "log_level": "warning",
        },
        {"event": "it has news", "kind": "news", "feed": 7, "log_level": "info"},
    ]


def test_of_each_kind_so_many_are_logged_in_a_minute_and_the_rest_is_summed_up() -> (
    None
):
    metrics = Metrics()
    events = EventLog(metrics)
    metrics.polls.add("fetched", 1_200)
    metrics.polls.add("failed", 30)
    metrics.entries.add("entries", 1)
    metrics.deliveries.add("delivered", 7)
    metrics.deliveries.add("unanswered")
    with capture_logs() as lines:
        for _ in range(MOST_OF_KIND + 1_000):
            events.tell(LogEvent.FEED_FAILING, "it began to fail", feed=7)
        events.tell(LogEvent.NEWS, "it has news", feed=7)
        events.sum_up()
        events.tell(LogEvent.FEED_FAILING, "another minute", feed=8)
    sentences = [line["event"] for line in lines]
    assert sentences[MOST_OF_KIND:] == [
        "it has news",
        "in the last minute: 1,230 polls (30 failed), 1 new entry,"
        " 8 deliveries (1 failed);"
        " not logged one by one: 1,000 feeds that began to fail",
        "another minute",
    ]


@pytest.mark.parametrize(
    ("collections", "sentences"),
    [(0, []), (2, ["in the last minute: 2 collections built"])],
)
def test_a_quiet_minute_is_not_summed_up_unless_collections_were_built(
    collections: int, sentences: list[str]
) -> None:
    metrics = Metrics()
    events = EventLog(metrics)
    metrics.collections.add("delta", collections)
    with capture_logs() as lines:
        events.sum_up()
        events.sum_up()
    assert [line["event"] for line in lines] == sentences


async def test_it_sums_up_every_minute() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        if slept:
            raise TimeoutError
        slept.append(seconds)

    metrics = Metrics()
    events = EventLog(metrics, sleep)
    metrics.collections.add("snapshot")
    with capture_logs() as lines, pytest.raises(TimeoutError):
        await events.run()
    assert slept == [60.0]
    assert len(lines) == 1
