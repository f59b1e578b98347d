"""JSON Feeds as templates write them: nearly JSON, and nearly JSON Feeds."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from protocols.feeds import parse
from protocols.model import IdSource
from protocols.protocol_errors import InvalidDocument, MalformedDocument, NotAFeed
from protocols.scp.collection import EXTENSION
from tests.support.documents import CONTEXT

VERSION = '"version": "https://jsonfeed.org/version/1.1"'


def feed(items: str, head: str = VERSION) -> bytes:
    return f'{{{head}, "items": [{items}]}}'.encode()


@pytest.mark.parametrize(
    ("item", "title"),
    [
        ('{"id": "1", "title": "a\nb"}', "a b"),
        ('{"id": "1", "title": "a\tb\x01"}', "a b\x01"),
        ('{"id": "1", "title": "a\\\nb"}', "a b"),
        ('{"id": "1", "title": "a",}', "a"),
        ('{"id": "1", "title": "a" , /* c */ },', "a"),
        ('{"id": "1", // the first\n"title": "a"}', "a"),
        ('{"id": "1", "title": "it\\\'s \\x41"}', "it's x41"),
        ('{"id": "1", "title": "\\ud83d \\ud83d\\ude00"}', "\ufffd \U0001f600"),
        ('{"id": "1", "title": "a", "_n": NaN, "_i": -Infinity}', "a"),
        ('{"id": "1", "title": "// a, ]", "url": "https://a.example//b",}', "// a, ]"),
    ],
)
def test_what_is_nearly_json_is_mended_and_noted(item: str, title: str) -> None:
    parsed = parse(feed(item), CONTEXT)
    assert [(each.id, each.title) for each in parsed.entries] == [("1", title)]
    assert (parsed.path, len(parsed.problems)) == ("json", 1)


@pytest.mark.parametrize("beyond", ['{"id": "1"', '{"id": 1 2}', '{"id": "1", ""}'])
def test_what_no_mending_makes_json_is_malformed(beyond: str) -> None:
    with pytest.raises(MalformedDocument, match="line 1"):
        parse(feed(beyond), CONTEXT)


def test_a_byte_order_mark_is_no_part_of_json() -> None:
    assert parse(b"\xef\xbb\xbf" + feed('{"id": "1"}'), CONTEXT).path == "strict"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"[" + feed('{"id": "1", "content_text": "a"}') + b"]", "a list of one feed"),
        (b'[{"id": "1", "content_text": "a"}]', "a list was read"),
        (feed('{"id": "1", "content_text": "a"}', '"title": "T"'), "without a version"),
    ],
)
def test_items_tell_a_feed_that_does_not_say_it_is_one(
    body: bytes, problem: str
) -> None:
    parsed = parse(body, CONTEXT)
    assert [entry.id for entry in parsed.entries] == ["1"]
    assert parsed.path == "unlabelled"
    assert problem in parsed.problems[0]


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"[[1]]",
        b'[{"version": "2"}]',
        b'[{"id": 1}]',
        b'{"items": [{"id": 1, "name": "a"}]}',
        b'{"items": {}}',
        b'"text"',
    ],
)
def test_other_json_is_no_feed(body: bytes) -> None:
    with pytest.raises(NotAFeed):
        parse(body, CONTEXT)


def test_ids_that_are_large_numbers_do_not_meet() -> None:
    first, second = 10**30, 10**30 + 1
    items = f'{{"id": {first}}}, {{"id": {second}}}, {{"id": 1.10}}, {{"title": "x"}}'
    for body in (feed(items), b"[" + feed(items) + b"]"):
        ids = [entry.id for entry in parse(body, CONTEXT).entries[:3]]
        assert ids == [str(first), str(second), "1.10"]


def test_large_ids_in_a_bare_list_do_not_meet() -> None:
    items = [f'{{"id": {10**30 + n}, "content_text": "a"}}' for n in range(2)]
    parsed = parse(f"[{', '.join(items)}]".encode(), CONTEXT)
    assert [entry.id for entry in parsed.entries] == [str(10**30), str(10**30 + 1)]


def test_ids_in_json_too_deep_for_exactness_are_read_as_they_are() -> None:
    deep = "[" * 1_000 + "]" * 1_000
    parsed = parse(feed(f'{{"id": 2.5, "_deep": {deep}}}'), CONTEXT)
    assert [entry.id for entry in parsed.entries] == ["2.5"]


@pytest.mark.parametrize("id", ["true", "null", "[]", '{"a": 1}', '""', '" "'])
def test_what_is_no_id_leaves_the_link(id: str) -> None:
    items = ", ".join(f'{{"id": {id}, "url": "https://a.example/{n}"}}' for n in (1, 2))
    parsed = parse(feed(items), CONTEXT)
    assert [entry.id for entry in parsed.entries] == [
        "https://a.example/1",
        "https://a.example/2",
    ]


def test_an_item_with_neither_id_nor_link_is_known_by_what_it_says() -> None:
    parsed = parse(feed('{"content_text": "a"}, {"content_text": "b"}'), CONTEXT)
    assert [each.id_source for each in parsed.entries] == [IdSource.CONTENT] * 2


def test_an_id_has_no_control_characters() -> None:
    parsed = parse(feed('{"id": "a\\u0000b\\u001f\\u007f"}'), CONTEXT)
    assert [(each.id, each.key) for each in parsed.entries] == [("ab", "ab")]


@pytest.mark.parametrize(
    "written",
    [
        '"2020-01-11T10:00:00Z"',
        '"2020-01-11T12:00:00+0200"',
        '"Sat, 11 Jan 2020 10:00:00 GMT"',
        '"January 11, 2020 10:00 am"',
        "1578736800",
        "1578736800000",
        "1578736800.0",
        '"/Date(1578736800000)/"',
    ],
)
def test_dates_are_read_in_other_forms_than_the_one(written: str) -> None:
    parsed = parse(feed(f'{{"id": "1", "date_published": {written}}}'), CONTEXT)
    assert parsed.entries[0].published == datetime(2020, 1, 11, 10, tzinfo=UTC)


def test_a_feed_that_speaks_of_sitemaps_is_none() -> None:
    parsed = parse(feed(f'{{"id": "1", "title": "urlset {EXTENSION}"}}'), CONTEXT)
    assert len(parsed.entries) == 1


@pytest.mark.parametrize("items", ["{}", '"none"', "7", "true", '{"1": {"id": "a"}}'])
def test_items_that_are_no_array_are_refused(items: str) -> None:
    with pytest.raises(InvalidDocument, match="/items: expected an array"):
        parse(f'{{{VERSION}, "items": {items}}}'.encode(), CONTEXT)


@pytest.mark.parametrize("items", ["", ', "items": null', ', "items": []'])
def test_a_feed_may_have_no_items(items: str) -> None:
    assert parse(f"{{{VERSION}{items}}}".encode(), CONTEXT).entries == ()


def test_an_item_that_is_no_object_is_left_out_and_named() -> None:
    read = parse(feed('5, {"id": "a"}, null'), CONTEXT)

    assert len(read.entries) == 1
    assert read.problems == (
        "/items/0: expected an object",
        "/items/2: expected an object",
    )
