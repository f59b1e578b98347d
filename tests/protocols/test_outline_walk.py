"""Lists that include each other: each is read once, and not without end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from protocols.outlines import (
    DEEPEST,
    MOST_FEEDS,
    MOST_LISTS,
    FeedList,
    Inclusion,
    ListedFeed,
    OutlineWalk,
    WalkedList,
)

Lists = dict[str, tuple[Sequence[str], Sequence[str]]]


def url_of(name: str) -> str:
    return f"https://{name}.example/"


def a_list(feeds: Sequence[str] = (), included: Sequence[str] = ()) -> FeedList:
    return FeedList(
        feeds=tuple(ListedFeed(url=url_of(name)) for name in feeds),
        inclusions=tuple(Inclusion(url=url_of(name)) for name in included),
    )


def walk(
    lists: Lists, first: str = "a", moved: dict[str, str] | None = None
) -> OutlineWalk:
    """All that one list leads to; ``moved`` are redirects."""
    walk = OutlineWalk()
    walk.begin([url_of(first)])
    while (url := walk.next_url()) is not None:
        name = url.removeprefix("https://").partition(".")[0]
        name = (moved or {}).get(name, name)
        if name in lists:
            walk.take(url_of(name), a_list(*lists[name]))
        else:
            walk.give_up("answered 404")
    return walk


def feeds_of(walk: OutlineWalk) -> list[str]:
    return [each.url.removeprefix("https://").partition(".")[0] for each in walk.feeds]


def test_lists_inside_of_lists_are_read_in_their_order() -> None:
    found = walk(
        {
            "a": (["x"], ["b", "c"]),
            "b": (["y"], ["d"]),
            "c": (["z"], []),
            "d": (["w"], []),
        }
    )

    assert feeds_of(found) == ["x", "y", "z", "w"]
    assert [each.feeds for each in found.lists] == [1, 1, 1, 1]


def test_rings_and_diamonds_are_read_once() -> None:
    found = walk(
        {
            "a": (["x"], ["b", "c"]),
            "b": (["y"], ["d", "a"]),
            "c": (["z"], ["d", "c"]),
            "d": (["w"], ["a"]),
        }
    )

    assert feeds_of(found) == ["x", "y", "z", "w"]
    assert len(found.lists) == 4


def test_a_list_that_another_leads_to_by_a_redirect_is_the_same() -> None:
    found = walk({"a": (["x"], ["b", "c"]), "b": (["y"], [])}, moved={"c": "b"})

    assert feeds_of(found) == ["x", "y"]
    assert [each.url for each in found.lists] == [url_of("a"), url_of("b")]


def test_a_list_that_cannot_be_read_is_told_and_the_others_are_read() -> None:
    found = walk({"a": (["x"], ["gone", "b"]), "b": (["y"], [])})

    assert feeds_of(found) == ["x", "y"]
    assert found.lists[1] == WalkedList(url=url_of("gone"), trouble="answered 404")


def test_the_first_mention_of_a_feed_counts_in_any_spelling() -> None:
    found = OutlineWalk()
    found.begin_with(
        FeedList(
            feeds=(
                ListedFeed(url="https://a.example/%7Ef", title="first"),
                ListedFeed(url="HTTPS://A.example:443/~f#top", title="second"),
            )
        )
    )

    assert [each.title for each in found.feeds] == ["first"]


def test_lists_are_read_so_deep_and_no_deeper() -> None:
    names = "abcdefghij"
    found = walk({name: ([name * 2], [after]) for name, after in pairwise(names)})

    assert len(found.lists) == DEEPEST + 1
    assert found.notes == [f"lists more than {DEEPEST} levels deep were not read"]


def test_not_more_than_so_many_lists_are_asked_for() -> None:
    found = walk({"a": ([], [f"b{n}" for n in range(MOST_LISTS + 5)])})

    assert len(found.lists) == MOST_LISTS
    assert found.notes == [f"only the first {MOST_LISTS} lists were read"]


def test_not_more_than_so_many_feeds_are_taken() -> None:
    most = [f"f{n}" for n in range(MOST_FEEDS - 1)]
    found = walk({"a": (most, ["b", "c"]), "b": (["x", "y"], []), "c": (["z"], [])})

    assert len(found.feeds) == MOST_FEEDS
    assert found.notes == [f"only the first {MOST_FEEDS} feeds were read"]
    assert len(found.lists) == 2


def test_an_included_list_is_in_the_section_that_includes_it() -> None:
    found = OutlineWalk()
    found.begin_with(FeedList(inclusions=(Inclusion(url=url_of("b"), section="News"),)))
    found.next_url()
    found.take(
        url_of("b"),
        FeedList(
            feeds=(
                ListedFeed(url=url_of("x")),
                ListedFeed(url=url_of("y"), section="Own"),
            ),
            inclusions=(Inclusion(url=url_of("c")),),
        ),
    )
    found.next_url()
    found.take(url_of("c"), a_list(["z"]))

    assert [each.section for each in found.feeds] == ["News", "Own", "News"]


def test_an_answer_to_nothing_is_a_mistake_of_ours() -> None:
    with pytest.raises(RuntimeError):
        OutlineWalk().give_up("trouble")
