"""Very many track queries, and which of them an entry matches."""

from __future__ import annotations

from collections.abc import Callable
from operator import ge, gt, le, lt
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from hub.core.news.track_matching import QueryIndex, WordShares, matching_names
from protocols.model import Entry, Feed, Link, Text
from protocols.track import Subject, canonical, parse_query, subject_of

WORDS = ("apple", "Pie", "sugar", "東京", "café")
HOSTS = ("a.example", "b.example")
LANGUAGES = ("en", "de", "")


def _said(title: str, exact: bool) -> list[str]:
    words = []
    for word in title.split():
        words += list(word) if word == "東京" else [word]
    return words if exact else [word.lower() for word in words]


def _has(entry: Entry, phrase: str, exact: bool) -> bool:
    said, asked = _said(entry.title, exact), _said(phrase, exact)
    return any(
        said[at : at + len(asked)] == asked for at in range(len(said) - len(asked) + 1)
    )


class Case(NamedTuple):
    """An entry, and the ranks of its feed."""

    entry: Entry
    popularity: float = 0.0
    porn_rank: float = 0.0
    bozo_rank: float = 0.0


Holds = Callable[[Case], bool]


class Naive(NamedTuple):
    """A query's text, and the naive evaluator of it and of its negation.

    Where a language is not known neither is true.
    """

    text: str
    holds: Holds
    fails: Holds


def _leaf(text: str, holds: Holds) -> Naive:
    return Naive(text, holds, lambda case: not holds(case))


def _word(word: str) -> Naive:
    return _leaf(word, lambda case: _has(case.entry, word, exact=False))


def _phrase(words: list[str]) -> Naive:
    text = " ".join(words)
    return _leaf(f'"{text}"', lambda case: _has(case.entry, text, exact=True))


def _site(host: str) -> Naive:
    return _leaf(
        f"site:{host}",
        lambda case: case.entry.links[0].href == f"https://{host}/x",
    )


def _link(host: str) -> Naive:
    places = {f"https://{host}/x", f"https://{host}/y"}
    return _leaf(f"link:{host}", lambda case: not places.isdisjoint(_links(case)))


def _links(case: Case) -> list[str]:
    content = case.entry.content
    return [case.entry.links[0].href, *content.value.split('"')] if content else []


def _language(code: str) -> Naive:
    return Naive(
        f"language:{code}",
        lambda case: case.entry.language == code,
        lambda case: case.entry.language not in ("", code),
    )


def _popularity(sign: str) -> Naive:
    compare = {"<": lt, "<=": le, ">": gt, ">=": ge}[sign]
    return _leaf(f"popularity:{sign}1", lambda case: compare(case.popularity, 1))


LEAVES = (
    st.sampled_from(WORDS).map(_word)
    | st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(_phrase)
    | st.sampled_from(HOSTS).map(_site)
    | st.sampled_from(HOSTS).map(_link)
    | st.sampled_from(["en", "de"]).map(_language)
    | st.sampled_from(["<", "<=", ">", ">="]).map(_popularity)
)


def _negated(member: Naive) -> Naive:
    return Naive(f"-{member.text}", member.fails, member.holds)


def _negated_group(member: Naive) -> Naive:
    return Naive(f"-({member.text})", member.fails, member.holds)


def _all(members: list[Naive]) -> Naive:
    return Naive(
        " ".join(
            f"({each.text})" if "|" in each.text else each.text for each in members
        ),
        lambda case: all(each.holds(case) for each in members),
        lambda case: any(each.fails(case) for each in members),
    )


def _any(members: list[Naive]) -> Naive:
    return Naive(
        " | ".join(each.text for each in members),
        lambda case: any(each.holds(case) for each in members),
        lambda case: all(each.fails(case) for each in members),
    )


def _admitting(query: Naive, flags: set[str]) -> Naive:
    """Decent and sane feeds only, unless the flags say that others are fine."""

    def holds(case: Case) -> bool:
        is_decent = "porn:ok" in flags or case.porn_rank <= 0.2
        is_sane = "bozo:ok" in flags or case.bozo_rank <= 0.3
        return is_decent and is_sane and query.holds(case)

    text = f"({query.text}) {' '.join(flags)}" if flags else query.text
    return Naive(text, holds, query.fails)


MEMBERS = LEAVES | LEAVES.map(_negated)
QUERIES = st.builds(
    _admitting,
    st.recursive(
        MEMBERS,
        lambda inner: (
            st.lists(inner, min_size=2, max_size=3).map(_all)
            | st.lists(inner, min_size=2, max_size=3).map(_any)
            | inner.map(_negated_group)
        ),
        max_leaves=6,
    ),
    st.sets(st.sampled_from(["porn:ok", "bozo:ok"])),
)
TITLES = st.lists(st.sampled_from([*WORDS, "pie", "APPLE", "x"]), max_size=6)
ENTRIES = st.builds(
    lambda title, host, links, language: Entry(
        key="k",
        id="k",
        title=" ".join(title),
        content=Text(value="".join(f'<a href="https://{link}/y">' for link in links)),
        links=(Link(href=f"https://{host}/x"),),
        language=language,
    ),
    TITLES,
    st.sampled_from(HOSTS),
    st.lists(st.sampled_from(HOSTS), max_size=2),
    st.sampled_from(LANGUAGES),
)


RANKS = st.sampled_from([0.0, 0.2, 0.3, 0.31, 0.9])
CASES = st.builds(Case, ENTRIES, st.sampled_from([0.0, 1.0, 2.0]), RANKS, RANKS)


def subject(entry: Entry) -> Subject:
    return subject_in(Case(entry))


def subject_in(case: Case) -> Subject:
    return subject_of(
        case.entry,
        Feed(),
        feed_url="https://feeds.invalid/f",
        popularity=case.popularity,
        porn_rank=case.porn_rank,
        bozo_rank=case.bozo_rank,
    )


@given(st.lists(QUERIES, max_size=8), st.lists(CASES, max_size=4))
def test_the_index_finds_what_holding_each_query_against_each_entry_finds(
    queries: list[Naive], cases: list[Case]
) -> None:
    index: QueryIndex[str] = QueryIndex(WordShares().share_of)
    readable = {}
    for query in queries:
        try:
            index.add(query.text, parse_query(query.text))
        except ValueError:  # of negations alone, or with two sites
            continue
        readable[query.text] = query.holds
    assert index.names == readable.keys()
    for case in cases:
        expected = {text for text, holds in readable.items() if holds(case)}
        assert index.matches(subject_in(case)) == expected


@given(QUERIES, CASES)
def test_what_a_query_is_known_by_is_read_as_the_same_query(
    query: Naive, case: Case
) -> None:
    try:
        parsed = parse_query(query.text)
    except ValueError:  # of negations alone, or with two sites
        return
    again = parse_query(canonical(parsed))
    assert canonical(again) == canonical(parsed)
    assert again.matches(subject_in(case)) == parsed.matches(subject_in(case))
    assert parsed.matches(subject_in(case)) is query.holds(case)


@settings(max_examples=40)
@given(st.lists(QUERIES, max_size=8), ENTRIES)
def test_removed_queries_match_nothing_and_leave_nothing(
    queries: list[Naive], entry: Entry
) -> None:
    shares = WordShares()
    index: QueryIndex[str] = QueryIndex(shares.share_of)
    for text, _, _ in queries:
        try:
            index.add(text, parse_query(text))
        except ValueError:
            continue
    shares.observe(["apple", "pie"])  # what is rare now was not when they were added
    for text, _, _ in queries:
        index.remove(text)
    index.remove("never added")
    assert len(index) == 0
    assert index.matches(subject(entry)) == set()


def test_a_query_of_popularity_alone_is_held_against_every_entry() -> None:
    index: QueryIndex[int] = QueryIndex(WordShares().share_of)
    index.add(1, parse_query("popularity:<1"))
    assert index.matches(subject(Entry(key="k", id="k"))) == {1}


def test_a_query_takes_the_place_of_the_one_with_its_name() -> None:
    index: QueryIndex[int] = QueryIndex(WordShares().share_of)
    index.add(1, parse_query("apple"))
    index.add(1, parse_query("sugar"))
    assert index.matches(subject(Entry(key="k", id="k", title="apple"))) == set()
    assert index.matches(subject(Entry(key="k", id="k", title="sugar"))) == {1}


def test_feeds_of_ill_repute_are_kept_from_queries_of_one_word_too() -> None:
    index: QueryIndex[int] = QueryIndex(WordShares().share_of)
    index.add(1, parse_query("apple"))
    index.add(2, parse_query("apple bozo:ok"))
    entry = Entry(key="k", id="k", title="apple")
    bozo = subject_of(entry, Feed(), feed_url="https://f.invalid/", bozo_rank=0.9)
    assert index.matches(bozo) == {2}


class TestShares:
    def test_words_that_are_seen_often_are_common(self) -> None:
        shares = WordShares()
        for _ in range(100):
            shares.observe(["the", "apple"])
            shares.observe(["the"])
        assert 0.9 < shares.share_of("the") <= 1
        assert 0.4 < shares.share_of("apple") < 0.6
        assert shares.share_of("unheard") < 0.01

    def test_before_any_was_seen_short_words_are_taken_for_common(self) -> None:
        shares = WordShares()
        assert shares.share_of("a") > shares.share_of("the") > shares.share_of("extra")

    def test_what_is_old_and_rare_is_forgotten(self) -> None:
        shares = WordShares(most_words=10)
        for number in range(1_000):
            shares.observe(["the", f"word{number}"])
        assert len(shares) <= 11
        assert shares.share_of("the") > 10 * shares.share_of("word1")


def test_what_may_take_long_needs_the_index_no_more() -> None:
    """Queries come and go while an entry is held against those that it was found by."""
    index: QueryIndex[int] = QueryIndex(WordShares().share_of)
    index.add(1, parse_query("apple pie"))
    index.add(2, parse_query("apple -pie"))
    entry = Entry(key="k", id="k", title="apple pie")
    subject = subject_of(entry, Feed(), feed_url="")

    candidates = index.candidates(subject)
    index.remove(1)
    index.add(3, parse_query("apple"))

    assert matching_names(subject, candidates) == {1}
    assert index.matches(subject) == {3}
