"""Whatever is sent to the API, the answer is a documented one, and says why."""

from __future__ import annotations

import base64
import json
from itertools import product
from urllib.parse import quote

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocols.protocol_errors import InvalidValue
from protocols.superfeedr.parameters import read_parameters

ODD = (
    "http://[",
    "http://[::1",
    "http://a:99999999/",
    "http://\x00/",
    "x" * 5_000,
    "%00",
    "\uff48ttp://\uff41.example/",
    "http://a.example/\ud7ff",
    "0",
    "-1",
    "1e9",
    "9" * 5_000,
    "{'a': 1}",
    "null",
)
NAMES = (
    *("hub.topic", "hub.callback", "hub.secret", "hub.verify", "hub.verify_token"),
    *("hub.signature_algorithm", "hub.url", "hub.content", "hub.signature"),
    *("format", "retrieve", "page", "by_page", "detailed", "search", "callback"),
    *("search[feed][url]", "search[feed][velocity]", "search[endpoint][hostname]"),
    *("search[][]", "search[[", "digest", "superfeedr.digest"),
)
MODES = ("subscribe", "unsubscribe", "list", "publish", "authenticate", "dance")
GOOD = {
    "hub.topic": "https://example.org/feed.xml",
    "hub.callback": "https://you.example/callback",
}


@pytest.mark.parametrize("mode", MODES)
async def test_odd_values_are_answered_in_words(
    anybody: httpx2.AsyncClient, token: str, mode: str
) -> None:
    for name, value in product(NAMES, ODD):
        form = {**GOOD, "hub.mode": mode, name: value}
        answer = await anybody.post("/", data=form, auth=("me", token))
        assert answer.status_code in (200, 204, 403, 422), (value, answer.text)
        assert answer.text or answer.status_code == 204


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"\xff\xfe", "application/x-www-form-urlencoded"),
        (b"{", "application/json"),
        (b'{"hub.mode": {"a": []}}', "application/json"),
        (b'["hub.mode"]', "application/json"),
        (b"--x\r\n", "multipart/form-data; boundary=x"),
        (b"--x--\r\n", "multipart/form-data"),
        (b"hub.mode=list&hub.mode=subscribe", "application/x-www-form-urlencoded"),
    ],
)
async def test_bodies_that_cannot_be_read_are_422(
    anybody: httpx2.AsyncClient, token: str, body: bytes, content_type: str
) -> None:
    answer = await anybody.post(
        "/", content=body, headers={"Content-Type": content_type}, auth=("me", token)
    )
    assert answer.status_code == 422
    assert "body" in answer.text or "hub.mode" in answer.text


async def test_a_body_that_is_too_large_is_413(anybody: httpx2.AsyncClient) -> None:
    answer = await anybody.post("/", content=b"x" * (1024 * 1024 + 1))
    assert answer.status_code == 413
    assert answer.text


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    query=st.text(alphabet=st.characters(max_codepoint=255)),
    content_type=st.sampled_from(
        ("", "application/json", "multipart/form-data; boundary=b", "text/xml")
    ),
    body=st.one_of(
        st.binary(),
        st.lists(
            st.sampled_from(
                (b"--b", b"\r\n", b"--", b"name=", b'"', b"a", b"Content-Disposition:")
            )
        ).map(b"".join),
    ),
)
def test_reading_parameters_gives_texts_or_says_what_is_wrong(
    query: str, content_type: str, body: bytes
) -> None:
    try:
        parameters = read_parameters(query, content_type, body)
    except InvalidValue as error:
        refused = error.field
    else:
        refused = ""
    assert refused in ("", "body", "query")
    if refused:
        return
    for name, values in parameters.values.items():
        assert all(value.strip() for value in values), name


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "one ?query="),
        ("-a", "at character 1"),
        ("paris+(a", "closing parenthesis at character 9"),
    ],
)
async def test_a_track_query_is_at_fault_where_it_was_sent(
    anybody: httpx2.AsyncClient, token: str, query: str, expected: str
) -> None:
    answer = await anybody.post(
        "/",
        data={
            "hub.mode": "subscribe",
            "hub.topic": f"http://track.superfeedr.com/?query={query}",
            "hub.callback": GOOD["hub.callback"],
        },
        auth=("me", token),
        headers={"Accept": "application/json"},
    )
    assert (answer.status_code, answer.json()["field"]) == (422, "hub.topic")
    assert answer.json()["error"].startswith("Please provide a valid hub.topic")
    assert expected in answer.json()["error"]


async def test_a_search_is_at_fault_by_its_own_query(
    anybody: httpx2.AsyncClient, token: str
) -> None:
    form = {"hub.mode": "search", "query": "-a"}
    answer = await anybody.post("/", data=form, auth=("me", token))
    assert answer.status_code == 422
    assert answer.text.startswith("query: expected")


async def test_jsonp_is_told_errors_by_a_script_that_runs(
    anybody: httpx2.AsyncClient, token: str
) -> None:
    """As superfeedr-jquery asks, which looks for ``error`` in what came."""
    authorization = base64.b64encode(f"me:{token}".encode()).decode()
    answers = {
        credentials: await anybody.get(
            "/?hub.mode=retrieve&hub.topic=http%3A%2F%2F127.0.0.1%3A9701%2Ffeed%2Fgone"
            f"&format=json&authorization={quote(credentials, safe='')}&count=2"
            "&callback=jQuery400018436303790550657_1795317874356&_=1795317874357"
        )
        for credentials in (authorization, "bWU6bm9uZQ==")
    }
    statuses = []
    for answer in answers.values():
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
        function, _, called_with = answer.text.partition("(")
        assert function == "jQuery400018436303790550657_1795317874356"
        told = json.loads(called_with.removesuffix(")"))
        assert told["error"]
        statuses.append(told["status"])
    assert statuses == [404, 401]


@pytest.mark.parametrize("name", ["alert(1)", "x" * 129])
async def test_an_unsafe_function_is_not_called_with_errors_either(
    anybody: httpx2.AsyncClient, token: str, name: str
) -> None:
    answer = await anybody.get(
        "/", params={"hub.mode": "dance", "callback": name}, auth=("me", token)
    )
    assert answer.status_code == 422
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("topic", ODD)
async def test_content_of_what_is_no_topic_is_refused_in_words(
    anybody: httpx2.AsyncClient, topic: str
) -> None:
    form = {
        "hub.mode": "publish",
        "hub.url": topic,
        "hub.content": "<rss/>",
        "hub.signature": "0" * 40,
    }
    answer = await anybody.post("/", data=form)
    assert answer.status_code in (403, 422), answer.text
    assert "hub." in answer.text
