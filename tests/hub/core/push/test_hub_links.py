from __future__ import annotations

import pytest
from msgspec.structs import replace

from hub.core.push.hub_offers import (
    MOST_HUBS,
    hubs_of_feed,
    hubs_of_header,
    validator_of_feed,
    validator_of_header,
)
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


def test_a_header_or_a_feed_names_where_subscriptions_are_allowed() -> None:
    answer = replace(an_answer(200), link="<https://a/>; rel=hub, </ask>; rel=validate")
    assert validator_of_header(answer) == "https://feed.example/ask"
    assert validator_of_header(an_answer(200)) == ""
    links = (
        Link(href="https://a/", rel="hub"),
        Link(href="https://b/", rel="validate"),
    )
    assert validator_of_feed(Feed(links=links)) == "https://b/"
    assert validator_of_feed(Feed()) == ""
