"""Requests of clients that read back what is stored; see `requests`."""

from __future__ import annotations

from tests.conformance.superfeedr.requests import ATOM, FORM, JSON, Replay, Reply

_NEEDED = ("http", "next_fetch", "last_fetch", "last_parse", "last_maintenance_at")


def _first_status_is_whole(reply: Reply) -> bool:
    """pubsubsuperfeedr looks for the first status, and for all of these in it."""
    text = reply.body.decode()
    status = text[text.index("<status") : text.index("</status>")]
    values = [status.partition(f"<{name}")[2].partition(">")[2] for name in _NEEDED]
    return all(value and not value.startswith("<") for value in values)


def _has_the_entry(reply: Reply) -> bool:
    return [item["title"] for item in reply.json["items"]] == ["Entry 1"]


RETRIEVALS: tuple[Replay, ...] = (
    Replay(
        "pubsubsuperfeedr asks for a feed's status by a GET with a body",
        "GET /hubbub HTTP/1.1\nAuthorization: Basic {basic}\n"
        f"User-Agent: PubSubSuperfeedr/0.3.1\nContent-Type: {FORM}\n"
        "Accept-Encoding: identity",
        200,
        body="hub.mode=retrieve&hub.topic={topic_q}",
        content_type=ATOM,
        before=("pubsubsuperfeedr subscribes",),
        is_right=_first_status_is_whole,
    ),
    Replay(
        "Superfeedr.php retrieves",
        "GET /?hub.mode=retrieve&hub.topic={topic_q} HTTP/1.1\n"
        "Authorization: Basic {basic}\nAccept: application/json",
        200,
        content_type=JSON,
        before=("Superfeedr.php subscribes",),
        is_right=_has_the_entry,
    ),
    Replay(
        "rack retrieves Atom, with a callback that it never subscribed",
        "GET /?hub.topic={topic_q}&hub.callback=http%3A%2F%2Fnever.example%2F1"
        "&authorization={basic_q}&count=10&hub.mode=retrieve HTTP/1.1\n"
        "Accept: */*\nUser-Agent: Ruby",
        200,
        content_type=ATOM,
        before=("rack subscribes",),
        is_right=lambda reply: b"Entry 1" in reply.body,
    ),
    Replay(
        "rack retrieves JSON",
        "GET /?hub.topic={topic_q}&hub.callback=http%3A%2F%2Fnever.example%2F1"
        "&authorization={basic_q}&count=10&format=json&hub.mode=retrieve HTTP/1.1\n"
        "Accept: */*\nUser-Agent: Ruby",
        200,
        content_type=JSON,
        before=("rack subscribes",),
        is_right=_has_the_entry,
    ),
    Replay(
        "rack retrieves what nobody subscribed",
        "GET /?hub.topic=https%3A%2F%2Fnobody.example%2Ffeed&authorization={basic_q}"
        "&hub.mode=retrieve HTTP/1.1\nAccept: */*\nUser-Agent: Ruby",
        404,
        is_right=lambda reply: b"hub.topic" in reply.body,
    ),
    Replay(
        "rack searches in JSON",
        f"POST / HTTP/1.1\nAccept: */*\nUser-Agent: Ruby\nContent-Type: {FORM}",
        200,
        body="hub.mode=search&detailed=true&format=json&authorization={basic_q}"
        "&query=superfeedr",
        content_type=JSON,
        is_right=lambda reply: reply.json["items"] == [],
    ),
    Replay(
        "rack searches in Atom",
        f"POST / HTTP/1.1\nAccept: */*\nUser-Agent: Ruby\nContent-Type: {FORM}",
        200,
        body="hub.mode=search&detailed=true&authorization={basic_q}&query=superfeedr",
        content_type=ATOM,
    ),
    Replay(
        "rack replays",
        f"POST / HTTP/1.1\nAccept: */*\nUser-Agent: Ruby\nContent-Type: {FORM}",
        204,
        body="hub.mode=replay&hub.topic={topic_q}&hub.callback={callback_q}"
        "&count=1&authorization={basic_q}",
        before=("rack subscribes",),
    ),
    Replay(
        "jquery retrieves as a script",
        "GET /?hub.mode=retrieve&hub.topic={topic_q}&format=json"
        "&authorization={basic_q}&count=2&callback=jQuery1113_1&_=1447000000000"
        " HTTP/1.1\nAccept: */*",
        200,
        content_type="text/javascript; charset=utf-8",
        before=("feedbox subscribes the null device",),
        is_right=lambda reply: (
            reply.body.startswith(b"jQuery1113_1({") and b"Entry 1" in reply.body
        ),
    ),
    Replay(
        "a page of another site polls, in the spelling of Superfeedr's documentation",
        "GET /&hub.mode=retrieve&hub.topic={topic_q}&wait=poll&format=json"
        "&authorization={basic_q} HTTP/1.1\nOrigin: https://river.news",
        200,
        content_type=JSON,
        before=("feedbox subscribes the null device",),
        is_right=_has_the_entry,
    ),
)
