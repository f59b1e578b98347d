from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hub.core.fetched import Fetched
from hub.polling.lanes import PATIENCE
from hub.polling.slow_feeds import SlowFeeds
from storage.records import FeedId
from tests.support.fetch_targets import START, an_answer


def after(seconds: float) -> Fetched:
    return replace(an_answer(), at=START + timedelta(seconds=seconds))


def test_a_feed_is_slow_by_how_long_its_last_answer_took() -> None:
    feeds, feed = SlowFeeds(), FeedId(1)
    for seconds, is_slow in ((0, False), (PATIENCE, True), (PATIENCE - 0.1, False)):
        feeds.note(feed, after(seconds))
        assert (feed in feeds) is is_slow


def test_only_so_many_are_known_those_that_were_slow_last() -> None:
    feeds = SlowFeeds(most=2)
    for number in (1, 2, 1, 3):
        feeds.note(FeedId(number), after(PATIENCE))
    assert [number for number in (1, 2, 3) if FeedId(number) in feeds] == [1, 3]
