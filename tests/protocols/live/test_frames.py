"""Prepared frames are what the websockets library reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.uri import parse_uri

from protocols.live.message_encoding import deflated_text_frame, text_frame


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
