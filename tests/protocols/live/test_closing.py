from __future__ import annotations

from protocols.live import closing
from protocols.live.closing import Closing

ALL = [each for each in vars(closing).values() if isinstance(each, Closing)]


def test_reasons_fit_into_a_close_frame() -> None:
    assert all(0 < len(each.reason.encode()) <= 123 for each in ALL)


def test_codes_tell_what_they_tell_once() -> None:
    assert len({each.code for each in ALL}) == len(ALL) == 6
