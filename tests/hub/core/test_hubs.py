from __future__ import annotations

from dataclasses import replace

import pytest

from hub.core.hubs import MOST_HUBS, hubs_of_feed, hubs_of_header
from protocols.model import Feed, Link
from tests.support.fetch_targets import an_answer


@pytest.mark.parametrize(
    ("link", "hubs"),
    [
        ("", ()),
        ('<https://feed.example/feed>; rel="self"', ()),
        (
            '<https://a/>; rel=hub, <b>; rel="hub"',
            ("https://a/", "https://feed.example/b"),
        ),
        ('<https://a/>; rel="hub self"', ("https://a/",)),
        ("<https://a/>; rel=hub," * (MOST_HUBS + 1), ("https://a/",) * MOST_HUBS),
    ],
)
def test_a_header_names_hubs(link: str, hubs: tuple[str, ...]) -> None:
    assert hubs_of_header(replace(an_answer(200), link=link)) == hubs


def test_a_feed_names_hubs() -> None:
    links = (Link(href="https://a/", rel="hub"), Link(href="https://b/", rel="self"))
    assert hubs_of_feed(Feed(links=links)) == ("https://a/",)
