from __future__ import annotations

import pytest

from protocols.protocol_errors import InvalidValue
from protocols.track import (
    QueryError,
    canonical,
    is_track_topic,
    parse_query,
    read_track_topic,
)

HUB = "https://hub.example"


@pytest.mark.parametrize(
    "topic",
    [
        "http://track.superfeedr.com/?query=laurel+hardy",
        "https://track.superfeedr.com/?query=laurel%20hardy",
        "https://track.superfeedr.com?query=laurel+hardy#part",
        "HTTPS://Track.Superfeedr.com:443/?query=laurel+hardy&count=5",
        "http://superfeedr.com/track?query=laurel+hardy",
        "https://www.superfeedr.com/track?query=laurel+hardy",
        "http://push.superfeedr.com/track?query=laurel+hardy",
        "http://superfeedr.com/track?include=laurel,hardy&exclude=&hub=x",
        "http://track.superfeedr.com/?include=laurel%2C+hardy",
        "http://superfeedr.com/track/laurel+hardy",
        "http://superfeedr.com/track/laurel%20hardy",
        f" {HUB}/track?query=laurel+hardy ",
        f"{HUB}/%74rack?query=laurel+hardy",
    ],
)
def test_a_query_at_the_hub_or_at_superfeedrs_host_is_a_topic(topic: str) -> None:
    found = read_track_topic(topic, HUB)

    assert found is not None
    assert (found.text, found.format) == ("laurel hardy", "")
    assert found.query == parse_query("laurel hardy")


@pytest.mark.parametrize(
    "topic",
    [
        "https://example.org/feed?query=laurel",
        "https://superfeedr.com/?query=laurel",
        "https://superfeedr.com/tracks?query=laurel",
        "https://superfeedr.com/track/a/b",
        "https://track.superfeedr.com/other?query=laurel",
        f"{HUB}/tracks?query=laurel",
        "https://other.example/track?query=laurel",
        "track:laurel",
        "",
    ],
)
def test_other_topics_are_none(topic: str) -> None:
    assert read_track_topic(topic, HUB) is None
    assert not is_track_topic(topic, HUB)


def test_an_older_query_is_read_with_all_that_it_says() -> None:
    found = read_track_topic(
        "http://superfeedr.com/track?include=a,b&exclude=c,d&lang=en&porn=ok&bozo=ok"
        "&format=json",
        HUB,
    )
    assert found is not None
    assert found.text == "a b -c -d language:en porn:ok bozo:ok"
    assert found.format == "json"


def test_an_older_query_for_places_is_refused() -> None:
    with pytest.raises(InvalidValue, match="without lat, lon, within"):
        read_track_topic("http://superfeedr.com/track?include=a&lat=1&lon=2", HUB)


@pytest.mark.parametrize(
    "topic",
    [
        "http://superfeedr.com/track",
        "http://superfeedr.com/track/?exclude=",
        "http://track.superfeedr.com/?",
    ],
)
def test_an_older_query_that_asks_for_nothing_is_refused(topic: str) -> None:
    with pytest.raises(InvalidValue, match="one \\?query="):
        read_track_topic(topic, HUB)


def test_the_hub_may_live_under_a_path() -> None:
    assert is_track_topic(
        "http://localhost:80/fan/track?query=a", "http://localhost/fan"
    )


def test_a_topic_may_name_the_format() -> None:
    found = read_track_topic(f"{HUB}/track?query=laurel&format=JSON", HUB)

    assert found is not None
    assert found.format == "json"


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ("", "one ?query="),
        ("?query=", "one ?query="),
        ("?include=laurel", "one ?query="),
        ("?query=a&query=b", "one ?query="),
        ("?query=laurel&format=rss", "expected atom or json"),
        ("?query=a" + "&b=c" * 100, "at most 100 parameters"),
    ],
)
def test_a_topic_without_one_query_or_with_another_format_is_refused(
    parameters: str, reason: str
) -> None:
    with pytest.raises(InvalidValue, match=reason.replace("?", r"\?")):
        read_track_topic(f"{HUB}/track{parameters}", HUB)


def test_what_is_wrong_with_a_query_is_told_with_its_place() -> None:
    with pytest.raises(QueryError, match="a closing parenthesis at character 9"):
        read_track_topic(f"{HUB}/track?query=paris+(a", HUB)


@pytest.mark.parametrize("text", ["-juliette", "a | -b"])
def test_queries_that_ask_for_nothing_are_refused(text: str) -> None:
    with pytest.raises(QueryError, match="a word that must match"):
        read_track_topic(f"{HUB}/track?query={text}", HUB)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("laurel hardy", "  Hardy + LAUREL"),
        ("paris (texas | france)", "(france|texas) paris"),
        ("a a b", "b a"),
        ("a | a", "a"),
        ("a (b c | c b)", "b a c"),
        ("site:Example.com a", "a site:http://example.com/"),
        ("popularity:>5 a", "a popularity>5.0"),
        ("bozo:ok porn:ok a", "porn:ok a bozo:ok"),
    ],
)
def test_queries_that_differ_in_spelling_and_order_are_one(
    one: str, other: str
) -> None:
    assert canonical(parse_query(one)) == canonical(parse_query(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a b", "a | b"),
        ("a b | c", "a (b | c)"),
        ('"a b"', '"b a"'),
        ('"a"', "a"),
        ("a-b", "a b"),
        ("a", "a porn:ok"),
        ('link:"a.example/b c"', "link:a.example/b c"),
        ('site:"a(b"', "site:a (b)"),
        ("popularity:>0.12345678", "popularity:>0.12345679"),
        ("a -b", "a b"),
    ],
)
def test_queries_that_mean_something_else_are_not(one: str, other: str) -> None:
    assert canonical(parse_query(one)) != canonical(parse_query(other))
