"""The sample feeds are good examples of their formats."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hub.demo.samples import CONTENT_TYPES, FeedKind, SampleFeed
from protocols.feeds import ParseContext, parse

NOW = datetime(2026, 1, 1, tzinfo=UTC)
URL = "http://127.0.0.1:1/feed"
HUB = "http://127.0.0.1:2/hub"


@pytest.mark.parametrize("kind", FeedKind)
def test_a_sample_is_read_as_it_was_meant(kind: FeedKind) -> None:
    feed = SampleFeed(kind)
    published = [feed.add(NOW + timedelta(seconds=n)) for n in range(25)]
    context = ParseContext(url=URL, content_type=CONTENT_TYPES[kind], now=NOW)
    parsed = parse(feed.document(URL, HUB), context)
    assert parsed.path == "strict"
    assert parsed.problems == ()
    newest = published[:-21:-1]
    assert [each.id for each in parsed.entries] == [each.id for each in newest]
    assert [each.title for each in parsed.entries] == [each.title for each in newest]
    assert [each.published for each in parsed.entries] == [
        each.published for each in newest
    ]
