"""Whatever is thrown at the door, the answer is none of 5xx, and a 4xx says why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import httpx2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.hub.web.superfeedr.conftest import make_token
from tests.support.services import open_hub

TOPIC, CALLBACK = "https://example.org/feed.xml", "https://you.example/callback"
MODES = (
    *("subscribe", "unsubscribe", "list", "retrieve", "search", "replay"),
    *("publish", "authenticate", "dance", "", "LIST", " list "),
)
NAMES = (
    *("hub.topic", "hub.callback", "hub.secret", "hub.verify", "hub.verify_token"),
    *("hub.lease_seconds", "hub.signature_algorithm", "hub.url", "hub.url[]"),
    *("hub.content", "hub.signature", "hub.callback[endpoint][hostname]"),
    *("hub.callback[feed][velocity]", "hub[mode]", "hub[topic]", "format"),
    *("retrieve", "page", "by_page", "count", "before", "after", "detailed"),
    *("search", "search[format]", "search[feed][url]", "search[feed.inurl]"),
    *("search[feed][porn]", "search[endpoint][jid]", "search[x]", "search[[a]"),
    *("callback", "query", "async", "digest", "rights", "authorization", "", "[]"),
)
VALUES = (
    *(TOPIC, CALLBACK, "https://push.superfeedr.com/dev/null", "true", "json", "1"),
    *("sync", "async", "http://track.superfeedr.com/?query=a", "a -b | (c)", "50"),
    *("http://track.superfeedr.com/?query=velocity:>>", "http://[::1", "http://\0/"),
    *("\0", "%00", "é\ud7ff\U0010ffff", "-1", "1e9", "9" * 30, "abc", ">=0.5", ">>"),
    *("x" * 300, "http://a.example/" + "y" * 2_100, "bWU6bm8=", "====", "{", "[]"),
    *('{"feed.url"=>"http://a/"}', "fn", "alert(1)", "http%", "javascript:x"),
)
TYPES = (
    *("application/x-www-form-urlencoded", "multipart/form-data; boundary=b", ""),
    *("application/json", "text/xml", "application/json; charset=latin-1", "a/b/c"),
)

values = st.one_of(
    st.sampled_from(VALUES),
    st.text(st.characters(codec="utf-8"), max_size=40),
    st.integers().map(str),
)
pairs = st.lists(st.tuples(st.sampled_from(NAMES), values), max_size=6)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | values,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=6,
)


@dataclass(frozen=True, slots=True)
class Thrown:
    """A request; ``mode`` None: it names none."""

    mode: str | None
    query: tuple[tuple[str, str], ...]
    body: bytes
    content_type: str
    method: str
    path: str


def _multipart(given: list[tuple[str, str]]) -> bytes:
    parts = [
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in given
    ]
    return "".join([*parts, "--b--\r\n"]).encode()


bodies = st.one_of(
    pairs.map(lambda given: urlencode(given).encode()),
    pairs.map(_multipart),
    json_values.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=60),
)
requests = st.builds(
    Thrown,
    mode=st.none() | st.sampled_from(MODES),
    query=pairs.map(tuple),
    body=bodies,
    content_type=st.sampled_from(TYPES),
    method=st.sampled_from(("GET", "POST", "PUT", "HEAD", "DELETE")),
    path=st.sampled_from(("/", "/hubbub", "/stream", "/&")),
)


class Door:
    """A hub that answers one request after another."""

    def __init__(self, runner: asyncio.Runner, client: httpx2.AsyncClient) -> None:
        self._runner = runner
        self._client = client

    def answer(self, thrown: Thrown, accept: str) -> httpx2.Response:
        mode = [] if thrown.mode is None else [("hub.mode", thrown.mode)]
        query = urlencode([*mode, *thrown.query], quote_via=quote)
        return self._runner.run(
            self._client.request(
                thrown.method,
                f"{thrown.path}?{query}",
                content=thrown.body,
                headers={"Content-Type": thrown.content_type, "Accept": accept},
            )
        )


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        hub = runner.run(
            stack.enter_async_context(open_hub(tmp_path_factory.mktemp("hub")))
        )
        token = runner.run(make_token(hub))
        client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(hub.application, raise_app_exceptions=True),
            base_url="http://hub.example",
            auth=("me", token),
        )
        yield Door(runner, client)
        runner.run(client.aclose())
        runner.run(stack.aclose())


@settings(max_examples=150)
@given(thrown=requests)
@example(
    thrown=Thrown(
        mode="subscribe",
        query=tuple(("hub.topic", str(number)) for number in range(3)),
        body=b"",
        content_type="",
        method="GET",
        path="/",
    )
)
@example(
    thrown=Thrown(
        mode="list",
        query=(("authorization", "é\u20ac"),),
        body=b"",
        content_type="",
        method="GET",
        path="/",
    )
)
def test_no_request_is_5xx_and_each_4xx_names_what_is_wrong(
    door: Door, thrown: Thrown
) -> None:
    answer = door.answer(thrown, "application/json")

    assert answer.status_code < 500, answer.text
    if answer.status_code < 400 or thrown.method == "HEAD":
        return
    if "access-control-allow-origin" not in answer.headers:
        return  # of the page at the path, or of the hub's own stream
    told = answer.json()
    assert told["status"] == answer.status_code
    assert told["error"]
    if answer.status_code in (404, 422):
        assert told["field"] in told["error"], told


@given(thrown=requests)
def test_as_text_it_says_the_same(door: Door, thrown: Thrown) -> None:
    answer = door.answer(thrown, "*/*")

    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400 and thrown.method != "HEAD":
        assert answer.text.strip()


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/x-www-form-urlencoded", b"&".join([b"a=b"] * 100_000)),
        ("application/x-www-form-urlencoded", b"hub.url[]=x&" * 80_000),
        ("application/json", b'{"hub.url": [' + b'"x",' * 100_000 + b'"x"]}'),
        ("application/json", b"[" * 100_000),
        ("application/json", b'{"a":' * 20_000 + b"1" + b"}" * 20_000),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\n" * 100_000),
    ],
    ids=["pairs", "repeated", "list", "open lists", "nested", "parts"],
)
def test_a_hundred_thousand_parameters_are_refused_by_name(
    door: Door, content_type: str, body: bytes
) -> None:
    thrown = Thrown("list", (), body, content_type, "POST", "/")
    answer = door.answer(thrown, "application/json")

    assert answer.status_code == 422
    assert answer.json()["field"] == "body"
    in_query = door.answer(
        Thrown("list", tuple([("a", "b")] * 2_000), b"", "", "GET", "/"), "text/plain"
    )
    assert (in_query.status_code, "query" in in_query.text) == (422, True)
