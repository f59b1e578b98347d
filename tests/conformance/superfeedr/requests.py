"""Requests as clients of Superfeedr put them on the wire, and the answers they need.

Method, path, parameters and where they stand are those of the clients, as captured from
them or read in their code; where neither says a thing (most other headers, some
orders) it is written from what is known of Superfeedr's interface. Credentials and
addresses are the fields in braces. To add one is to add a row.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

ATOM = "application/atom+xml"
JSON = "application/json; charset=utf-8"
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Addresses:
    """What stands for the fields: a topic that is fresh, a callback that confirms."""

    topic: str
    callback: str
    host: str
    basic: str  # base64 of login:token

    def fill(self, text: str) -> str:
        """``{topic}`` as it is, ``{topic_q}`` quoted as in a query."""
        for name in ("topic", "callback", "basic"):
            value = getattr(self, name)
            text = text.replace("{" + name + "_q}", quote(value, safe=""))
            text = text.replace("{" + name + "}", value)
        return text


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    content_type: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def anything(reply: Reply) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Replay:
    """``head`` without Host and Content-Length, its lines parted by line feeds.

    ``before``: the names of rows that are sent first, with the same addresses.
    ``is_right``: what the client looks at.
    """

    name: str
    head: str
    status: int
    body: str = ""
    content_type: str = ""
    is_right: Callable[[Reply], bool] = anything
    before: tuple[str, ...] = ()


def _multipart(**values: str) -> str:
    """As curl writes what PHP gives it as an array."""
    parts = "".join(
        f"--------------------------d74496d66958873e\r\nContent-Disposition: form-data;"
        f' name="{name.replace("_", ".", 1)}"\r\n\r\n{value}\r\n'
        for name, value in values.items()
    )
    return f"{parts}--------------------------d74496d66958873e--\r\n"


_SUBSCRIBED = "pubsubsuperfeedr subscribes"

REQUESTS: tuple[Replay, ...] = (
    Replay(
        _SUBSCRIBED,
        "POST /hubbub HTTP/1.1\nAuthorization: Basic {basic}\n"
        f"User-Agent: PubSubSuperfeedr/0.3.1\nContent-Type: {FORM}\n"
        "Accept-Encoding: identity",
        204,
        body="hub.mode=subscribe&hub.callback={callback_q}&hub.topic={topic_q}"
        "&hub.verify=sync&hub.verify_token=vt&hub.secret=s3cret",
    ),
    Replay(
        "pubsubsuperfeedr unsubscribes",
        "POST /hubbub HTTP/1.1\nAuthorization: Basic {basic}\n"
        f"User-Agent: PubSubSuperfeedr/0.3.1\nContent-Type: {FORM}",
        204,
        body="hub.mode=unsubscribe&hub.callback={callback_q}&hub.topic={topic_q}"
        "&hub.verify=sync&hub.verify_token=vt",
        before=(_SUBSCRIBED,),
    ),
    Replay(
        "Superfeedr.php subscribes",
        "POST / HTTP/1.1\nAuthorization: Basic {basic}\nAccept: application/json\n"
        "Content-Type: multipart/form-data;"
        " boundary=------------------------d74496d66958873e",
        204,
        body=_multipart(
            hub_callback="{callback}",
            hub_mode="subscribe",
            hub_topic="{topic}",
            hub_secret="da39a3ee5e6b4b0d3255bfef95601890afd80709",
        ),
    ),
    Replay(
        "rack subscribes",
        f"POST / HTTP/1.1\nAccept: */*\nUser-Agent: Ruby\nContent-Type: {FORM}",
        204,
        body="hub.topic={topic_q}&hub.callback={callback_q}&authorization={basic_q}"
        "&hub.secret=s3cret&hub.mode=subscribe",
    ),
    Replay(
        "rack subscribes, verified before",
        f"POST / HTTP/1.1\nAccept: */*\nUser-Agent: Ruby\nContent-Type: {FORM}",
        204,
        body="hub.topic={topic_q}&hub.callback={callback_q}&authorization={basic_q}"
        "&hub.verify=sync&hub.secret=s3cret&hub.mode=subscribe",
    ),
    Replay(
        "rack subscribes, verified afterwards",
        f"POST / HTTP/1.1\nAccept: */*\nUser-Agent: Ruby\nContent-Type: {FORM}",
        202,
        body="hub.topic={topic_q}&hub.callback={callback_q}&authorization={basic_q}"
        "&hub.verify=async&hub.secret=s3cret&hub.mode=subscribe",
    ),
    Replay(
        "rack subscribes and retrieves Atom",
        f"POST / HTTP/1.1\nAccept: */*\nUser-Agent: Ruby\nContent-Type: {FORM}",
        200,
        body="hub.topic={topic_q}&hub.callback={callback_q}&authorization={basic_q}"
        "&retrieve=true&hub.secret=s3cret&hub.mode=subscribe",
        content_type=ATOM,
        is_right=lambda reply: b"Entry 1" in reply.body and b"<status" in reply.body,
    ),
    Replay(
        "rack subscribes and retrieves JSON",
        f"POST / HTTP/1.1\nAccept: */*\nUser-Agent: Ruby\nContent-Type: {FORM}",
        200,
        body="hub.topic={topic_q}&hub.callback={callback_q}&authorization={basic_q}"
        "&retrieve=true&format=json&hub.secret=s3cret&hub.mode=subscribe",
        content_type=JSON,
        is_right=lambda reply: reply.json["items"][0]["title"] == "Entry 1",
    ),
    Replay(
        "rack unsubscribes",
        f"POST / HTTP/1.1\nAccept: */*\nUser-Agent: Ruby\nContent-Type: {FORM}",
        204,
        body="hub.topic={topic_q}&hub.callback={callback_q}&authorization={basic_q}"
        "&hub.mode=unsubscribe",
        before=("rack subscribes",),
    ),
    Replay(
        "rack lists",
        "GET /?hub.mode=list&detailed=true&authorization={basic_q} HTTP/1.1\n"
        "Accept: */*\nUser-Agent: Ruby",
        200,
        content_type=JSON,
        before=("rack subscribes",),
        is_right=lambda reply: (
            {"meta", "subscriptions"} <= set(reply.json)
            and reply.json["meta"]["page"] == 1
            and reply.json["subscriptions"][0]["subscription"]["feed"]["status"]["feed"]
        ),
    ),
    Replay(
        "pshb subscribes",
        "POST / HTTP/1.1\nAuthorization: Basic {basic}\nAccept: application/json\n"
        f"Content-Type: {FORM}",
        204,
        body="hub.mode=subscribe&hub.topic={topic_q}&hub.callback={callback_q}"
        "&hub.secret=foo&hub.verify=sync&format=json",
    ),
    Replay(
        "pshb lists until there is no more",
        "GET /?hub.mode=list&page=1000 HTTP/1.1\nAuthorization: Basic {basic}\n"
        "Accept: application/json",
        200,
        content_type=JSON,
        is_right=lambda reply: reply.json == [],
    ),
    Replay(
        "pshb lists",
        "GET /?hub.mode=list&page=1 HTTP/1.1\nAuthorization: Basic {basic}\n"
        "Accept: application/json",
        200,
        content_type=JSON,
        before=("pshb subscribes",),
        is_right=lambda reply: "endpoint" in reply.json[0]["subscription"],
    ),
    Replay(
        "dreadjr subscribes and retrieves",
        "POST / HTTP/1.1\nAuthorization: Basic {basic}\nAccept: application/json\n"
        "Content-Type: application/json",
        200,
        body='{"hub.mode":"subscribe","hub.topic":"{topic}","hub.callback":'
        '"{callback}","hub.secret":"s3cret","format":"json","retrieve":true}',
        content_type=JSON,
        is_right=lambda reply: "status" in reply.json,
    ),
    Replay(
        "hapi subscribes and retrieves",
        f"POST / HTTP/1.1\nAuthorization: Basic {{basic}}\nContent-Type: {FORM}",
        200,
        body="hub.mode=subscribe&hub.topic={topic_q}&hub.callback={callback_q}"
        "&hub.secret=s3cret&retrieve=true&format=json",
        content_type=JSON,
        is_right=lambda reply: len(reply.json["items"]) == 1,
    ),
    Replay(
        "feedbox authenticates",
        "GET /?hub.mode=authenticate&rights=true HTTP/1.1\n"
        "Authorization: Basic {basic}\nAccept: application/json",
        200,
        content_type=JSON,
        is_right=lambda reply: reply.json["subscribe"] is True,
    ),
    Replay(
        "feedbox subscribes the null device",
        f"POST / HTTP/1.1\nAuthorization: Basic {{basic}}\nContent-Type: {FORM}",
        204,
        body="hub.mode=subscribe&hub.topic={topic_q}&format=json"
        "&hub.callback=https%3A%2F%2Fpush.superfeedr.com%2Fdev%2Fnull",
    ),
    Replay(
        "river authenticates from its own site",
        "GET /?hub.mode=authenticate HTTP/1.1\nAuthorization: Basic {basic}\n"
        "Origin: https://river.news\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: cors",
        200,
        is_right=lambda reply: reply.headers["access-control-allow-origin"] == "*",
    ),
    Replay(
        "river asks whether it may",
        "OPTIONS /?hub.mode=list HTTP/1.1\nOrigin: https://river.news\n"
        "Access-Control-Request-Method: GET\n"
        "Access-Control-Request-Headers: authorization, content-length",
        204,
        is_right=lambda reply: (
            "authorization" in reply.headers["access-control-allow-headers"]
        ),
    ),
    Replay(
        "angular subscribes by the query alone",
        "POST /?hub.mode=subscribe&hub.topic={topic_q}&hub.callback={callback_q}"
        "&authorization={basic_q}&format=json HTTP/1.1\nAccept: application/json",
        204,
    ),
    Replay(
        "angular lists with a wildcard",
        "GET /?hub.mode=list&detailed=true&hub.callback=http%25&page=1 HTTP/1.1\n"
        "Authorization: Basic {basic}\nAccept: application/json",
        200,
        before=("angular subscribes by the query alone",),
        is_right=lambda reply: reply.json["meta"]["total"] >= 1,
    ),
    Replay(
        "jquery lists as a script",
        "GET /?hub.mode=list&authorization={basic_q}&callback=jQuery1113_1"
        "&_=1447000000000 HTTP/1.1\nAccept: */*",
        200,
        content_type="text/javascript; charset=utf-8",
        is_right=lambda reply: reply.body.startswith(b"jQuery1113_1(["),
    ),
    Replay(
        "the npm package pubsubhubbub waits for a challenge",
        f"POST / HTTP/1.1\nContent-Type: {FORM}",
        401,
        body="hub.mode=subscribe&hub.topic={topic_q}&hub.callback={callback_q}",
        is_right=lambda reply: reply.headers["www-authenticate"].startswith(
            'Basic realm="'
        ),
    ),
    Replay(
        "a publisher pings",
        f"POST / HTTP/1.1\nContent-Type: {FORM}",
        204,
        body="hub.mode=publish&hub.url={topic_q}",
    ),
    Replay(
        "a publisher pings several",
        f"POST / HTTP/1.1\nContent-Type: {FORM}",
        204,
        body="hub.mode=publish&hub.url%5B%5D={topic_q}&hub.url%5B%5D={topic_q}x",
    ),
    Replay(
        "the PuSH suite pings by hub.topic",
        f"POST / HTTP/1.1\nContent-Type: {FORM}",
        204,
        body="hub.mode=publish&hub.topic={topic_q}",
    ),
)
