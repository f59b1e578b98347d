"""Subscriptions saved from elsewhere, whatever form they are in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.protocol_errors import InvalidValue
from protocols.superfeedr.subscription_lists import (
    WrittenSubscription,
    read_subscriptions,
)

TOPIC = "https://example.org/feed.xml"
HOOK = "https://you.example/hook"
PLAIN = {
    "subscription": {
        "format": "atom",
        "endpoint": HOOK,
        "secret": None,
        "feed": {"title": "A feed", "url": TOPIC},
    }
}
DETAILED = {
    "subscription": {
        "format": "json",
        "endpoint": HOOK,
        "secret": "s3cret",
        "feed": {"title": "A feed", "status": {"code": 200, "feed": TOPIC}},
    }
}


def read(text: str) -> list[tuple[str, str, str, str]]:
    found = list(read_subscriptions(text))
    assert [each.fault for each in found if each.fault] == []
    return [(each.topic, each.callback, each.format, each.secret) for each in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(
            json.dumps([PLAIN]), [(TOPIC, HOOK, "atom", "")], id="a page of the list"
        ),
        pytest.param(
            json.dumps({"subscriptions": [DETAILED], "meta": {"total": 1}}),
            [(TOPIC, HOOK, "json", "s3cret")],
            id="a detailed page",
        ),
        pytest.param(
            json.dumps([PLAIN], indent=2) + json.dumps([DETAILED]) + "\n[]\n",
            [(TOPIC, HOOK, "atom", ""), (TOPIC, HOOK, "json", "s3cret")],
            id="several pages after each other",
        ),
        pytest.param(
            f'\ufeff{{"topic": "{TOPIC}", "callback": "{HOOK}", "format": "JSON"}}\n\n'
            f'{{"hub.topic": "{TOPIC}", "hub.callback": "{HOOK}", "hub.secret": "x"}}',
            [(TOPIC, HOOK, "json", ""), (TOPIC, HOOK, "", "x")],
            id="JSON Lines",
        ),
        pytest.param(
            f"Callback,Secret,ignored,Topic,Format\n{HOOK},x,y,{TOPIC},raw\n",
            [(TOPIC, HOOK, "as-is", "x")],
            id="CSV with a heading",
        ),
        pytest.param(
            f"\n{TOPIC},{HOOK}\n{TOPIC},{HOOK},json,\n , \n",
            [(TOPIC, HOOK, "", ""), (TOPIC, HOOK, "json", "")],
            id="CSV without a heading",
        ),
        pytest.param(
            f'topic;endpoint\n"{TOPIC}?a;b";{HOOK}\n',
            [(f"{TOPIC}?a;b", HOOK, "", "")],
            id="semicolons",
        ),
        pytest.param(f"{TOPIC}\t{HOOK}\tatom", [(TOPIC, HOOK, "atom", "")], id="tabs"),
        pytest.param("[]", [], id="an empty page"),
        pytest.param(" \n", [], id="an empty file"),
    ],
)
def test_each_form_says_topic_callback_format_and_secret(
    text: str, found: list[tuple[str, str, str, str]]
) -> None:
    assert read(text) == found


@pytest.mark.parametrize(
    ("text", "place", "fault"),
    [
        ("[1]", "subscription 1", "expected an object"),
        ('[{"endpoint": "x"}]', "subscription 1", "topic: expected a URL"),
        ('[{"feed": {"status": 1}}]', "subscription 1", "topic: expected a URL"),
        (f"topic,callback\n{TOPIC},\n", "line 2", "callback: expected a URL"),
        (f"{TOPIC}", "line 1", "callback: expected a URL"),
        (
            f"{TOPIC},{HOOK},xml",
            "line 1",
            "format: expected json, atom, as-is or by-topic, not 'xml'",
        ),
    ],
)
def test_one_that_cannot_be_read_says_where_and_why(
    text: str, place: str, fault: str
) -> None:
    [found] = read_subscriptions(text)
    assert (found.place, found.fault) == (place, fault)


def test_a_line_that_is_no_json_leaves_the_others_to_be_read() -> None:
    good = json.dumps({"topic": TOPIC, "callback": HOOK})
    found = list(read_subscriptions(f'{good}\n{{"topic": "x\n{good}\n{{'))
    assert [(each.place, each.fault) for each in found] == [
        ("subscription 1", ""),
        ("line 2", "expected JSON"),
        ("subscription 3", ""),
        ("line 4", "expected JSON"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name,mail\nann,a@b.example\n", "JSON, JSON Lines or CSV"),
        ('[{"topic": 1}\n{', "line 1 is not JSON"),
        ('{"topic": 1}\n]', "line 2 is not JSON"),
        ("[]\n[]\n]", "line 3 is not JSON"),
        ("[" * 100_000, "line 1 is not JSON"),
        (f'{TOPIC},{HOOK}\n"{TOPIC}"x,', "line 2"),
    ],
)
def test_what_is_no_such_file_is_refused(text: str, expected: str) -> None:
    with pytest.raises(InvalidValue, match=expected):
        list(read_subscriptions(text))


@given(st.text() | st.from_regex(r"\[\{.*\}\]") | st.text('[]{}",:;a\n'))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        found = list(read_subscriptions(text))
    except InvalidValue:
        return
    assert all(isinstance(each, WrittenSubscription) for each in found)
