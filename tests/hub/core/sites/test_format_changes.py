"""What of a site is new to subscribers of the feed that it was."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hub.core.news.seen_set import SeenSet, sight
from hub.core.sites.format_changes import news_since_feed
from protocols.model import Entry, Link

READ = datetime(2026, 1, 2, tzinfo=UTC)
SEEN = Entry(key="seen", id="seen", links=(Link(href="https://site.example/seen"),))
LATER = datetime(2026, 1, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("page", "is_news"),
    [
        (Entry(key="new", id="new", published=LATER), True),
        (Entry(key="new", id="new", updated=LATER), True),
        (Entry(key="old", id="old", published=READ), False),
        (Entry(key="undated", id="undated"), False),
        (Entry(key="seen", id="seen", published=LATER), False),
        (Entry(key="p", id="p", published=LATER, links=SEEN.links), False),
    ],
    ids=["published later", "updated later", "old", "undated", "known", "known link"],
)
def test_pages_younger_than_the_feed_that_it_did_not_show_are_new(
    page: Entry, is_news: bool
) -> None:
    seen = SeenSet([sight(SEEN, 0)]).pack()

    assert news_since_feed(seen, READ.timestamp())(page) is is_news
    assert not news_since_feed(seen, 0.0)(page)  # it was no feed before
