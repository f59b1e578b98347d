"""What the index of words is asked for and given."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.core.news.search_terms import (
    EVERYWHERE,
    document_of,
    searched_subject,
    term_of,
)
from protocols.model import Author, Entry, Feed, Link, Text
from protocols.track import QueryError, parse_query
from storage.records import (
    Both,
    Either,
    FeedState,
    FeedStatistics,
    Phrase,
    PlaceTerm,
    Polling,
    SearchDocument,
    StoredFeed,
    Term,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FEED = StoredFeed(
    id=1,
    url="https://news.example/feed",
    state=FeedState.ACTIVE,
    private=False,
    category="",
    title="",
    format="atom",
    next_fetch=NOW,
    created_at=NOW,
    removed_at=None,
    polling=Polling(),
)
WORDS = ["laurel", "Hardy", "hardy", "stan", "Élan", "日本"]


def found(document: SearchDocument, term: Term) -> bool:
    match term:
        case Phrase(words):
            return f" {' '.join(words)} " in f" {document.words} "
        case PlaceTerm(name):
            return name in document.places
        case Both(members):
            return all(found(document, each) for each in members)
        case Either(members):
            return any(found(document, each) for each in members)


def entry(title: str = "", **more: object) -> Entry:
    return Entry(key="k", id="k", title=title, **more)


def document(each: Entry) -> SearchDocument:
    return document_of(1, searched_subject(each, Feed(), FEED))


@pytest.mark.parametrize(
    ("query", "term"),
    [
        ("Laurel", Phrase(("laurel",))),
        ("laurel hardy", Both((Phrase(("laurel",)), Phrase(("hardy",))))),
        ("laurel | hardy", Either((Phrase(("laurel",)), Phrase(("hardy",))))),
        ('"New York"', Phrase(("new", "york"))),
        ("romeo -juliette", Phrase(("romeo",))),
        ("romeo popularity:>5", Phrase(("romeo",))),
        ("popularity:>5", EVERYWHERE),
        ("romeo | popularity:>5", EVERYWHERE),
        ("-(a -b)", None),
    ],
)
def test_a_query_asks_the_index_for_all_that_it_requires(
    query: str, term: Term | None
) -> None:
    if term is None:
        with pytest.raises(QueryError):
            parse_query(query)
        return
    assert term_of(parse_query(query)) == term


@pytest.mark.parametrize(
    "query",
    [
        "site:news.example",
        "site:example",
        "link:https://else.example/page?x=1",
        "link:else.example",
        "language:en",
        "stan",
        '"Stan Laurel"',
        "body",
        "title -missing",
    ],
)
def test_what_matches_a_query_is_found_by_what_is_asked_for_it(query: str) -> None:
    each = entry(
        "A title",
        content=Text(value='A <b>body</b> <a href="https://else.example/page">x</a>'),
        authors=(Author(name="Stan Laurel"),),
        links=(Link(href="https://news.example/1"),),
        language="en-GB",
    )

    assert parse_query(query).matches(searched_subject(each, Feed(), FEED))
    assert found(document(each), term_of(parse_query(query)))


@pytest.mark.parametrize(
    ("query", "popularity", "porn_rank", "matches"),
    [
        ("title popularity:<1", 1.79, 0.0, False),
        ("title popularity:>1", 1.79, 0.0, True),
        ("title popularity:<1", 0.5, None, True),
        ("title", 0.0, 0.9, False),
        ("title porn:ok", 0.0, 0.9, True),
    ],
)
def test_popularity_and_porn_rank_are_those_that_the_feed_has(
    query: str, popularity: float, porn_rank: float | None, *, matches: bool
) -> None:
    statistics = FeedStatistics(
        maintained_at=NOW, popularity=popularity, porn_rank=porn_rank
    )
    subject = searched_subject(entry("A title"), Feed(), FEED, statistics)
    assert parse_query(query).matches(subject) is matches


def test_places_are_names_that_no_query_can_break() -> None:
    each = entry(links=(Link(href='https://e.example/a b"c', rel="related"),))

    assert all(name.isalnum() for name in document(each).places)


MEMBERS = st.recursive(
    st.sampled_from(WORDS).flatmap(
        lambda word: st.sampled_from([word, f"-{word}", f'"{word}"', "site:example"])
    ),
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
        lambda parts: st.sampled_from(
            [f"({' '.join(parts)})", f"({' | '.join(parts)})", f"-({' '.join(parts)})"]
        )
    ),
    max_leaves=6,
)


@given(query=MEMBERS, words=st.lists(st.sampled_from(WORDS), max_size=4))
def test_nothing_that_matches_is_missed(query: str, words: list[str]) -> None:
    try:
        read = parse_query(query)
    except QueryError:
        return
    each = entry(" ".join(words))

    if read.matches(searched_subject(each, Feed(), FEED)):
        assert found(document(each), term_of(read))
