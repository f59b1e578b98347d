"""Parameters in every form that clients of Superfeedr send them."""

from __future__ import annotations

from enum import StrEnum

import pytest

from protocols.protocol_errors import InvalidValue
from protocols.superfeedr.parameters import (
    LONGEST_PATH,
    MOST_PARAMETERS,
    Lengths,
    Parameters,
    read_parameters,
)

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=----x7"


class Format(StrEnum):
    JSON = "json"
    ATOM = "atom"


def multipart(*parts: bytes) -> bytes:
    return b"".join(b"------x7\r\n%b\r\n" % part for part in parts) + b"------x7--\r\n"


def part(name: bytes, value: bytes) -> bytes:
    return b'Content-Disposition: form-data; name="%b"\r\n\r\n%b' % (name, value)


def refused(*arguments: object) -> str:
    with pytest.raises(InvalidValue) as caught:
        read_parameters(*arguments)  # type: ignore[arg-type]
    return caught.value.field


@pytest.mark.parametrize(
    ("query", "content_type", "body"),
    [
        ("hub.mode=list&page=2", "", b""),
        ("&hub.mode=list&page=2", "", b""),
        ("?hub.mode=list&page=2", "", b""),
        ("", FORM, b"hub.mode=list&page=2"),
        ("page=2", FORM, b"hub.mode=list"),
        ("", "", b"hub.mode=list&page=2"),
        ("", "text/plain", b"hub.mode=list&page=2"),
        ("", "application/json", b'{"hub.mode":"list","page":2}'),
        ("", "application/json;charset=utf-8", b'{"hub":{"mode":"list"},"page":"2"}'),
        ("hub[mode]=list&page[]=2", "", b""),
        ("", MULTIPART, multipart(part(b"hub.mode", b"list"), part(b"page", b"2"))),
        (
            "",
            'Multipart/Form-Data; boundary="----x7"',
            multipart(
                b"Content-Type: text/plain\r\ncontent-disposition: form-data;"
                b' name=hub.mode; filename="f"\r\n\r\nlist',
                part(b"page", b"2"),
            ),
        ),
    ],
)
def test_every_form_says_the_same(query: str, content_type: str, body: bytes) -> None:
    parameters = read_parameters(query, content_type, body)
    assert parameters.values == {"hub.mode": ("list",), "page": ("2",)}


def test_the_body_wins_over_the_query() -> None:
    parameters = read_parameters("hub.mode=list&a=1", FORM, b"hub.mode=retrieve")
    assert parameters.one("hub.mode") == "retrieve"
    assert parameters.one("a") == "1"


@pytest.mark.parametrize(
    "query",
    [
        "search[feed][url]=x",
        "search[feed.url]=x",
        "search.feed.url=x",
        "search%5Bfeed%5D%5Burl%5D=x",
    ],
)
def test_nested_names_are_dotted(query: str) -> None:
    assert read_parameters(query).under("search") == {"feed.url": "x"}


def test_nested_json_is_dotted_and_lists_are_repeated() -> None:
    body = b'{"search":{"feed":{"url":"x"}},"hub.url":["a","b"],"n":null,"t":true}'
    parameters = read_parameters("", "application/json", body)
    assert parameters.under("search") == {"feed.url": "x"}
    assert parameters.all("hub.url") == ("a", "b")
    assert parameters.flag("t")
    assert not parameters.all("n")
    assert not read_parameters("", "application/json", b'{"t":false}').flag("t", True)


def test_empty_parameters_are_absent() -> None:
    assert not read_parameters("hub.secret=&hub.topic=%20").values


def test_a_prefix_is_no_matter_where_there_is_only_one_meaning() -> None:
    assert read_parameters("hub.format=json").one("format") == "json"
    assert not read_parameters("hub.callback=http://a").one("callback")
    assert not read_parameters("format=json").one("hub.format")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("a=%ff",), "query"),
        (("&".join("a=1" for _ in range(MOST_PARAMETERS + 1)),), "query"),
        (("", FORM, b"a=%ff"), "body"),
        (("", FORM, b"\xff\xfe"), "body"),
        (("", "application/json", b"{"), "body"),
        (("", "application/json", b"[1]"), "body"),
        (("", "application/json", b'{"a":' * 9 + b"1" + b"}" * 9), "body"),
        (
            ("", "application/json", b'{"a":[' + b"1," * MOST_PARAMETERS + b"1]}"),
            "body",
        ),
        (("", "application/json", b'{"%b":{"b":1}}' % (b"a" * LONGEST_PATH)), "body"),
        (("", "multipart/form-data", multipart(part(b"a", b"b"))), "body"),
        (("", MULTIPART, b"------x7\r\n" + part(b"a", b"b")), "body"),
        (("", MULTIPART, multipart(b"a=b")), "body"),
        (("", MULTIPART, multipart(b"Content-Type: text/plain\r\n\r\nb")), "body"),
        (("", MULTIPART, b"nothing"), "body"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(
    arguments: tuple[object, ...], field: str
) -> None:
    assert refused(*arguments) == field


def parameters(**values: str) -> Parameters:
    return Parameters({name.replace("_", "."): (v,) for name, v in values.items()})


@pytest.mark.parametrize("value", ["true", "TRUE", "1", "yes"])
def test_a_flag_is_set_in_any_of_these_ways(value: str) -> None:
    assert parameters(retrieve=value).flag("retrieve")


@pytest.mark.parametrize(
    ("read", "field"),
    [
        (lambda p: p.flag("a"), "a"),
        (lambda p: p.number("a", 1, least=1, most=50), "a"),
        (lambda p: p.choice("a", Format), "a"),
        (lambda p: p.one("twice"), "twice"),
        (lambda p: p.required("b", "something"), "b"),
        (lambda p: p.topic(), "hub.topic"),
        (lambda p: p.callback(), "hub.callback"),
    ],
    ids=["flag", "number", "choice", "one", "required", "topic", "callback"],
)
def test_a_wrong_value_is_refused_by_name(read: object, field: str) -> None:
    given = Parameters(
        {
            "a": ("perhaps",),
            "twice": ("1", "2"),
            "hub.topic": ("http://a/" + "x" * 3_000,),
            "hub.callback": ("http://a/" + "x" * 250,),
        }
    )
    with pytest.raises(InvalidValue) as caught:
        read(given)  # type: ignore[operator]
    assert caught.value.field == field


def test_the_longest_topic_and_callback_are_settings() -> None:
    given = Parameters(
        {"hub.topic": ("http://a/bc",), "hub.callback": ("http://a/bc",)},
        Lengths(topic=11, callback=11),
    )
    assert given.topic() == given.callback() == "http://a/bc"
    with pytest.raises(InvalidValue, match="at most 10"):
        Parameters(given.values, Lengths(topic=10)).topic()


def test_a_topic_keeps_its_fragment_and_a_callback_has_none() -> None:
    assert parameters(hub_topic="http://a/#.b").topic() == "http://a/#.b"
    with pytest.raises(InvalidValue, match="fragment"):
        parameters(hub_callback="http://a/#b").callback()


@pytest.mark.parametrize("count", ["0", "51", "900", "9" * 5_000, "-1", "1.0", "²"])
def test_numbers_out_of_bounds_are_told_and_not_cut(count: str) -> None:
    with pytest.raises(InvalidValue, match="a whole number from 1 to 50"):
        parameters(count=count).number("count", 10, least=1, most=50)


def test_numbers_may_be_as_large_as_said_and_be_left_out() -> None:
    assert parameters(count="50").number("count", 10, least=1, most=50) == 50
    assert parameters(count="0" * 30 + "7").number("count", 10, least=1, most=50) == 7
    assert parameters().number("count", 10, least=1, most=50) == 10


def test_choices_are_made_in_any_case() -> None:
    assert parameters(format="JSON").choice("format", Format) is Format.JSON
    assert parameters().choice("format", Format) is None
    assert parameters().flag("retrieve") is False
