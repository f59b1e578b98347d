"""Frames are what the websockets library reads, events what the standard has read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.uri import parse_uri

from protocols.live.live_messages import (
    Heartbeat,
    NotificationMessage,
    Subscribed,
    Unsubscribed,
)
from protocols.live.message_encoding import (
    comment,
    deflated_text_frame,
    encode,
    event,
    event_of,
    text_frame,
)
from protocols.protocol_errors import InvalidValue
from tests.support.event_stream import Event, EventParser


def read(*frames: bytes) -> list[bytes]:
    """As a client that negotiated ``permessage-deflate`` the way the hub does."""
    client = ClientProtocol(parse_uri("ws://hub.example/"), state=OPEN, max_size=None)
    client.extensions = [
        PerMessageDeflate(
            remote_no_context_takeover=True,
            local_no_context_takeover=True,
            remote_max_window_bits=12,
            local_max_window_bits=12,
        )
    ]
    client.receive_data(b"".join(frames))
    assert client.parser_exc is None
    found = [each for each in client.events_received() if isinstance(each, Frame)]
    assert all(each.opcode is Opcode.TEXT and each.fin for each in found)
    return [bytes(each.data) for each in found]


@given(st.lists(st.text().map(str.encode) | st.text().map(lambda it: it.encode() * 99)))
def test_frames_carry_their_messages(payloads: list[bytes]) -> None:
    plain = [text_frame(each) for each in payloads]
    deflated = [deflated_text_frame(each) for each in payloads]
    assert read(*plain) == payloads
    assert read(*deflated) == payloads


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536, 200_000])
def test_every_length_has_its_own_head(size: int) -> None:
    payload = b"x" * size
    assert read(text_frame(payload), deflated_text_frame(payload)) == [payload] * 2


def test_what_repeats_itself_becomes_smaller() -> None:
    payload = b"the same again and " * 100
    assert len(deflated_text_frame(payload)) < len(payload) / 5


def test_what_would_not_become_smaller_is_left_as_it_is() -> None:
    short = b"short"
    dense = bytes((number * number * 7919 >> 3) % 251 for number in range(600))
    assert deflated_text_frame(short) == text_frame(short)
    assert read(deflated_text_frame(dense)) == [dense]
    assert len(deflated_text_frame(dense)) <= len(text_frame(dense))


names = st.from_regex(r"[a-z]{1,9}", fullmatch=True)
lines = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"))


def parse(*parts: bytes) -> list[Event]:
    return list(EventParser().feed(b"".join(parts)))


@given(st.lists(st.tuples(names, st.text(), lines)))
def test_whatever_is_sent_is_one_event_each(
    events: list[tuple[str, str, str]],
) -> None:
    sent = [event(name, data.encode(), id) for name, data, id in events]
    expected = [
        Event(name, re.sub("\r\n|\r", "\n", data), id) for name, data, id in events
    ]
    assert parse(*sent) == expected


@pytest.mark.parametrize("breaking", ["\n", "\r", "\r\n", "\0", "x\ndata: y"])
def test_nothing_can_break_out_of_a_field(breaking: str) -> None:
    for send in (
        lambda: event(breaking, b"{}"),
        lambda: event("name", b"{}", breaking),
        lambda: comment(breaking),
        lambda: comment("text", breaking),
    ):
        with pytest.raises(InvalidValue):
            send()


def test_a_comment_is_no_event_but_may_move_the_last_event_id() -> None:
    parser = EventParser()
    assert list(parser.feed(comment("heartbeat"))) == []
    assert parser.last_id == ""
    assert list(parser.feed(comment("heartbeat", "a-7"))) == []
    assert parser.last_id == "a-7"


def test_a_heartbeat_only_moves_the_cursor_and_is_no_event() -> None:
    parser = EventParser()
    assert list(parser.feed(event_of(Heartbeat(cursor="a-7")))) == []
    assert parser.last_id == "a-7"


def test_the_beginning_is_an_event_with_data_whose_id_every_library_keeps() -> None:
    begun = Subscribed(topic="t", cursor="a-7", id=1)
    assert event_of(begun).startswith(b"event: subscribed\nid: a-7\ndata: {")
    assert parse(event_of(begun)) == [
        Event("subscribed", encode(begun).decode(), "a-7")
    ]


def test_other_messages_are_events_with_the_same_json() -> None:
    told = NotificationMessage(
        topic="t", cursor="a-7", prev=None, kind="entries", body=b"{}"
    )
    left = Unsubscribed(topic="t")
    assert parse(event_of(told), event_of(left)) == [
        Event("notification", encode(told).decode(), "a-7"),
        Event("unsubscribed", encode(left).decode(), "a-7"),
    ]
