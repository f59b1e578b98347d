"""The language of track queries, as it is read."""

from __future__ import annotations

import pytest

from protocols.track import QueryError, parse_query
from protocols.track.parsing import FLAGS

POSITIVE = "a word that must match, in every alternative,"


@pytest.mark.parametrize(
    ("query", "understood"),
    [
        ("laurel hardy", "laurel hardy"),
        ("laurel + hardy", "laurel hardy"),
        ("laurel+hardy", "laurel hardy"),
        ("romeo -juliette", "romeo -juliette"),
        ("romeo - juliette", "romeo -juliette"),
        ("--romeo", "romeo"),
        ("a | b | c", "a | b | c"),
        ("a b | c d", "a b | c d"),  # what is wanted together binds closer than choices
        ("paris (texas | france)", "paris (texas | france)"),
        ("((a))", "a"),
        ("a (b c) d", "a b c d"),
        ("a -(b c)", "a (-b | -c)"),
        ("a -(b | -c)", "a -b c"),
        ('"AAPL" | "New  York"', '"AAPL" | "New York"'),
        ("AAPL", "aapl"),
        ("covid-19", "covid-19"),
        ("node.js", "node-js"),
        ("don't", "don-t"),
        ("c++ rust", "c rust"),
        ("12:30", "12-30"),
        ("東京", "東-京"),
        ("\uff21\uff22\uff23", "abc"),
        ("site:techmeme.com x", "site:techmeme.com x"),
        ("SITE:https://www.Techmeme.com/river x", "site:techmeme.com x"),
        ("x -site:a.example -site:b.example", "x -site:a.example -site:b.example"),
        ("site:a.example | site:b.example", "site:a.example | site:b.example"),
        ("link:superfeedr.com", "link:superfeedr.com"),
        ("link:https://superfeedr.com/", "link:superfeedr.com/"),
        ("link:superfeedr.com/docs?x=1#y", "link:superfeedr.com/docs"),
        ("link:https://a.example/Foo_(bar)", "link:a.example/Foo_(bar)"),
        ("(link:a.example)", "link:a.example"),
        ('link:"a.example/b"', "link:a.example/b"),
        ("language:EN", "language:en"),
        ("language:pt-BR x", "language:pt x"),
        ("x -language:de", "x -language:de"),
        ("-language:it", "-language:it"),
        ("-language:it -language:de", "-language:it -language:de"),
        ("-language:it | x", "-language:it | x"),
        ("popularity:>5", "popularity:>5"),
        ("popularity>=.5 x", "popularity:>=0.5 x"),
        ("x -popularity:<2", "x popularity:>=2"),
        ("x -popularity:<=2", "x popularity:>2"),
        ("x -popularity:>=2", "x popularity:<2"),
        ("x -popularity:>2", "x popularity:<=2"),
        ("porn:ok plug", "plug porn:ok"),
        ("(a | BOZO:OK b) porn:ok", "(a | b) porn:ok bozo:ok"),
        ("popularity", "popularity"),
        ("site", "site"),
        ("unknown:flag", "unknown-flag"),
        (" a\t\nb ", "a b"),
    ],
)
def test_a_query_is_read_as_its_language_says(query: str, understood: str) -> None:
    assert str(parse_query(query)) == understood
    assert parse_query(understood) == parse_query(query)


@pytest.mark.parametrize(
    ("query", "position", "expected"),
    [
        ("", 1, "a word, a phrase in quotes, a flag or a group"),
        ("a |", 4, "a word, a phrase in quotes, a flag or a group"),
        ("a | | b", 5, "a word, a phrase in quotes, a flag or a group"),
        ("| a", 1, "a word, a phrase in quotes, a flag or a group"),
        ("+ a", 1, "a word, a phrase in quotes, a flag or a group"),
        ("a ++ b", 4, "a word, a phrase in quotes, a flag or a group"),
        ("a -", 4, "a word, a phrase in quotes, a flag or a group"),
        ("()", 2, "a word, a phrase in quotes, a flag or a group"),
        ("(a", 3, "a closing parenthesis"),
        ("link:a.example/(x", 18, "a closing parenthesis"),
        ("a)", 2, "the end of the query, or an opening parenthesis before this"),
        ('say "hello', 5, "a closing quote"),
        ("***", 1, "a letter or a digit"),
        ('""', 1, "a letter or a digit"),
        ("-a", 1, POSITIVE),
        (
            "-a -site:b.example",
            1,
            POSITIVE,
        ),
        ("a | -b", 1, POSITIVE),
        ("-(a b)", 1, POSITIVE),
        ("-language:en | -b", 1, POSITIVE),
        ("porn:ok bozo:ok", 1, POSITIVE),
        ("a -porn:ok", 4, "a word, phrase or group after the minus"),
        ("a porn:no", 3, "porn:ok"),
        ("bozo: a", 1, "bozo:ok"),
        ("site:", 1, "a host after site:"),
        ("site:/x", 1, "a host after site:"),
        ("a link:?", 3, "a URL or a host after link:"),
        ("language:english", 1, "two letters (ISO 639-1) after language:"),
        ("popularity:5", 1, "<, <=, > or >= and a number after popularity:"),
        ("a velocity:>>", 3, f"one of the flags {FLAGS}"),
        ("-bozo_rank:<1", 2, f"one of the flags {FLAGS}"),
        ("popularity:>>", 1, "<, <=, > or >= and a number after popularity:"),
        ("popularity:>many", 1, "<, <=, > or >= and a number after popularity:"),
        ("site:a.example site:b.example", 16, "no second site:"),
        ("link:a.example x link:b.example", 18, "no second link:"),
        ("language:en language:de", 13, "no second language:"),
        ("popularity:>1 popularity:<9", 15, "no second popularity:"),
        ("(" * 21 + "a" + ")" * 21, 22, "at most 20 nested groups"),
        ("-" * 21 + "a", 22, "at most 20 nested negations"),
        ("a " * 101, 201, "at most 100 terms"),
        ("a" * 2_049, 2_049, "the end, after at most 2048 characters,"),
    ],
)
def test_a_query_that_cannot_be_read_is_refused_with_the_place_and_what_belongs_there(
    query: str, position: int, expected: str
) -> None:
    with pytest.raises(QueryError) as refusal:
        parse_query(query)
    assert refusal.value.position == position
    assert refusal.value.expected == expected
    assert f"expected {expected} at character {position}" in str(refusal.value)


def test_the_refusal_shows_what_was_found() -> None:
    with pytest.raises(QueryError, match="expected porn:ok at character 6, not 'no'"):
        parse_query("word porn:no")
