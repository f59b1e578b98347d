"""Very many track queries, and which of them an entry matches."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from hub.core.matching import QueryIndex
from hub.core.word_shares import WordShares
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


Holds = Callable[[Entry], bool]
"""The naive evaluator of one query."""


def _word(word: str) -> tuple[str, Holds]:
    return word, lambda entry: _has(entry, word, exact=False)


def _phrase(words: list[str]) -> tuple[str, Holds]:
    text = " ".join(words)
    return f'"{text}"', lambda entry: _has(entry, text, exact=True)


def _site(host: str) -> tuple[str, Holds]:
    return f"site:{host}", lambda entry: entry.links[0].href == f"https://{host}/x"


def _link(host: str) -> tuple[str, Holds]:
    places = {f"https://{host}/x", f"https://{host}/y"}
    return (
        f"link:{host}",
        lambda entry: (
            not places.isdisjoint(
                [entry.links[0].href, *entry.content.value.split('"')]
                if entry.content
                else []
            )
        ),
    )


def _language(code: str) -> tuple[str, Holds]:
    return f"language:{code}", lambda entry: entry.language == code


LEAVES = (
    st.sampled_from(WORDS).map(_word)
    | st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(_phrase)
    | st.sampled_from(HOSTS).map(_site)
    | st.sampled_from(HOSTS).map(_link)
    | st.sampled_from(["en", "de"]).map(_language)
)


def _negated(member: tuple[str, Holds]) -> tuple[str, Holds]:
    text, holds = member
    if text.startswith("language:"):
        code = text.partition(":")[2]
        return f"-{text}", lambda entry: entry.language not in ("", code)
    return f"-{text}", lambda entry: not holds(entry)


def _all(members: list[tuple[str, Holds]]) -> tuple[str, Holds]:
    text = " ".join(f"({text})" if "|" in text else text for text, _ in members)
    return text, lambda entry: all(holds(entry) for _, holds in members)


def _any(members: list[tuple[str, Holds]]) -> tuple[str, Holds]:
    text = " | ".join(text for text, _ in members)
    return text, lambda entry: any(holds(entry) for _, holds in members)


MEMBERS = LEAVES | LEAVES.map(_negated)
QUERIES = st.recursive(
    MEMBERS,
    lambda inner: (
        st.lists(inner, min_size=2, max_size=3).map(_all)
        | st.lists(inner, min_size=2, max_size=3).map(_any)
    ),
    max_leaves=6,
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


def subject(entry: Entry) -> Subject:
    return subject_of(entry, Feed(), feed_url="https://feeds.invalid/f")


@given(st.lists(QUERIES, max_size=8), st.lists(ENTRIES, max_size=4))
def test_the_index_finds_what_holding_each_query_against_each_entry_finds(
    queries: list[tuple[str, Holds]], entries: list[Entry]
) -> None:
    index: QueryIndex[str] = QueryIndex(WordShares().share_of)
    readable = {}
    for text, holds in queries:
        try:
            index.add(text, parse_query(text))
        except ValueError:  # of negations alone, or with two sites
            continue
        readable[text] = holds
    assert len(index) == len(readable)
    for entry in entries:
        expected = {text for text, holds in readable.items() if holds(entry)}
        assert index.matches(subject(entry)) == expected


@given(QUERIES, ENTRIES)
def test_what_a_query_is_known_by_is_read_as_the_same_query(
    query: tuple[str, Holds], entry: Entry
) -> None:
    try:
        parsed = parse_query(query[0])
    except ValueError:  # of negations alone, or with two sites
        return
    again = parse_query(canonical(parsed))
    assert canonical(again) == canonical(parsed)
    assert again.matches(subject(entry)) == parsed.matches(subject(entry))


@settings(max_examples=40)
@given(st.lists(QUERIES, max_size=8), ENTRIES)
def test_removed_queries_match_nothing_and_leave_nothing(
    queries: list[tuple[str, Holds]], entry: Entry
) -> None:
    shares = WordShares()
    index: QueryIndex[str] = QueryIndex(shares.share_of)
    for text, _ in queries:
        try:
            index.add(text, parse_query(text))
        except ValueError:
            continue
    shares.observe(["apple", "pie"])  # what is rare now was not when they were added
    for text, _ in queries:
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
