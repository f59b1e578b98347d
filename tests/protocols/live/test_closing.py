from __future__ import annotations

from protocols.live import live_messages
from protocols.live.live_messages import Closing

ALL = [each for each in vars(live_messages).values() if isinstance(each, Closing)]


def test_reasons_fit_into_a_close_frame() -> None:
    assert all(0 < len(each.reason.encode()) <= 123 for each in ALL)


def test_codes_tell_what_they_tell_once() -> None:
    others = [each for each in ALL if each is not live_messages.TOKEN_ENDED]
    assert len({each.code for each in others}) == len(others) == 8


def test_an_ended_token_authorizes_as_little_as_a_wrong_one() -> None:
    assert live_messages.TOKEN_ENDED.code == live_messages.NOT_AUTHORIZED.code
