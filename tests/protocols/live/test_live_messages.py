"""Messages of the live stream: what is written can be read, and nothing else."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.live import live_messages
from protocols.live.live_messages import (
    BodyFormat,
    ClientMessage,
    Closed,
    Closing,
    ErrorMessage,
    Heartbeat,
    LiveErrorCode,
    NotificationMessage,
    Reset,
    ServerMessage,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
    WantedUpdates,
)
from protocols.live.message_decoding import (
    InvalidMessage,
    read_client_message,
    read_server_message,
)
from protocols.live.message_encoding import encode
from protocols.protocol_errors import InvalidValue

ALL = [each for each in vars(live_messages).values() if isinstance(each, Closing)]


def test_reasons_fit_into_a_close_frame() -> None:
    assert all(0 < len(each.reason.encode()) <= 123 for each in ALL)


def test_codes_tell_what_they_tell_once() -> None:
    others = [each for each in ALL if each is not live_messages.TOKEN_ENDED]
    assert len({each.code for each in others}) == len(others) == 9


def test_an_ended_token_authorizes_as_little_as_a_wrong_one() -> None:
    assert live_messages.TOKEN_ENDED.code == live_messages.NOT_AUTHORIZED.code


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
ids = st.none() | texts | st.integers(-(2**63), 2**63 - 1)
cursors = st.from_regex(r"[0-9a-f]{10}-[0-9]{1,9}", fullmatch=True)
bodies = texts | st.dictionaries(texts, st.integers(0, 9)).map(orjson.dumps)

client_messages = st.one_of(
    st.builds(
        Subscribe,
        topic=texts,
        id=ids,
        format=st.sampled_from(BodyFormat),
        updates=st.sampled_from(WantedUpdates),
        cursor=st.none() | cursors,
    ),
    st.builds(Unsubscribe, topic=texts, id=ids),
)
server_messages = st.one_of(
    st.builds(Subscribed, topic=texts, cursor=cursors, id=ids),
    st.builds(Unsubscribed, topic=texts, id=ids, reason=st.none() | texts),
    st.builds(Reset, topic=texts, cursor=cursors, id=ids),
    st.builds(
        NotificationMessage,
        topic=texts,
        cursor=cursors,
        prev=st.none() | cursors,
        kind=texts,
        body=bodies,
    ),
    st.builds(Heartbeat, cursor=cursors),
    st.builds(
        ErrorMessage,
        error=st.sampled_from(LiveErrorCode),
        reason=texts,
        id=ids,
        topic=st.none() | texts,
        field=st.none() | texts,
    ),
    st.builds(Closed, code=st.integers(1000, 4999), reason=texts),
)


@given(client_messages)
def test_what_a_client_says_is_understood(message: ClientMessage) -> None:
    assert read_client_message(encode(message)) == message


@given(server_messages)
def test_what_the_hub_says_is_understood(message: ServerMessage) -> None:
    encoded = encode(message)
    assert b"\n" not in encoded
    assert read_server_message(encoded) == message


@given(st.binary() | texts)
def test_garbage_is_refused_and_nothing_else_happens(garbage: bytes | str) -> None:
    with pytest.raises(InvalidMessage):
        read_client_message(garbage)


def test_a_notification_says_that_nothing_came_before_it() -> None:
    message = NotificationMessage(
        topic="https://x.example/", cursor="a-1", prev=None, kind="entries", body=b"{}"
    )
    assert read_server_message(encode(message)) == message
    assert orjson.loads(encode(message)) == {
        "type": "notification",
        "topic": "https://x.example/",
        "cursor": "a-1",
        "prev": None,
        "kind": "entries",
        "body": {},
    }


def test_members_that_nobody_knows_are_passed_over() -> None:
    told = '{"type": "subscribe", "topic": "t", "colour": "blue", "cursor": null}'
    assert read_client_message(told) == Subscribe(topic="t")


@pytest.mark.parametrize(
    ("id", "is_known"), [('"x"', True), ("7", True), ("true", False), ("1.5", False)]
)
def test_an_error_is_told_by_the_id_of_its_message(id: str, is_known: bool) -> None:
    with pytest.raises(InvalidMessage) as refused:
        read_client_message(f'{{"type": "shout", "id": {id}}}')
    assert (refused.value.id is not None) is is_known
    assert refused.value.field == ("type" if is_known else "id")


def test_an_id_may_be_long_but_not_endless() -> None:
    read_client_message(f'{{"type": "unsubscribe", "topic": "t", "id": "{"x" * 128}"}}')
    with pytest.raises(InvalidMessage, match=r"^id: expected"):
        read_client_message(
            f'{{"type": "unsubscribe", "topic": "t", "id": "{"x" * 129}"}}'
        )


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[]", "message"),
        ('{"type": 7}', "type"),
        ("{}", "type"),
        ('{"type": "subscribe", "topic": "t"}', "type"),
        ('{"type": "heartbeat"}', "cursor"),
        ('{"type": "heartbeat", "cursor": "now"}', "cursor"),
        ('{"type": "error", "error": "odd", "reason": "r"}', "error"),
        ('{"type": "closed", "code": "1001", "reason": "r"}', "code"),
        ('{"type": "closed", "code": true, "reason": "r"}', "code"),
        (
            '{"type": "notification", "topic": "t", "cursor": "a-1", "prev": "x"}',
            "prev",
        ),
        ('{"type": "notification", "topic": "t", "cursor": "a-1"}', "kind"),
        (
            '{"type": "notification", "topic": "t", "cursor": "a-1", "kind": "k"}',
            "body",
        ),
    ],
)
def test_a_client_refuses_what_no_hub_says(text: str, field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read_server_message(text)
    assert refused.value.field == field
