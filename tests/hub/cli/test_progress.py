"""How far long work has come, in a log and at a terminal."""

from __future__ import annotations

import pytest

from hub.cli import say, say_in_place
from hub.cli.progress import CopyProgress, Progress, waiting
from tests.support.terminal import terminal
from tests.support.waiting import eventually

SECONDS = (0.0, 1.0, 4.0, 5.0, 12.0, 40.0)


def work(note: str = "") -> None:
    """Five equal parts, done after so many seconds."""
    seconds = iter(SECONDS)
    progress = Progress(10_000, monotonic=lambda: next(seconds))
    for _ in range(5):
        progress.add(2_000, note)


def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    work("1 failed")
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "4,000 of 10,000 feeds, 1 failed, 6 s left",
        "8,000 of 10,000 feeds, 1 failed, 3 s left",
    ]


def test_bytes_are_told_in_their_largest_unit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seconds = iter((0.0, 10.0, 20.0, 30.0))
    progress = CopyProgress(lambda: next(seconds))
    for done, total in ((0, 0), (0, 8_000_000), (2_000_000, 8_000_000)):
        progress(done, total)
    progress(2_000_000, 8_000_000)
    progress(8_000_000, 8_000_000)
    assert capsys.readouterr().err == "2 MB of 8 MB, 30 s left\n"


def test_a_terminal_shows_a_line_that_is_written_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with terminal() as shown:
        work()
    lines = shown.text.split("\r\x1b[K")
    assert lines == [
        "[####................] 2,000 of 10,000 feeds, 4 s left\r",
        "[########............] 4,000 of 10,000 feeds, 6 s left\r",
        "[############........] 6,000 of 10,000 feeds, 3.33 s left\r",
        "[################....] 8,000 of 10,000 feeds, 3 s left\r",
        "",
    ]


def test_what_is_printed_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    with terminal() as shown:
        say_in_place("cut at the\x1b end")
        say("a line")
        say("another")
    assert shown.text == "cut at th\r\r\x1b[Ka line\nanother\n"


async def test_who_waits_sees_for_how_long() -> None:
    with terminal() as shown, waiting("building", every=0.01):
        await eventually(lambda: "building: 0 s" in shown.text)
    assert shown.text.endswith("\r\x1b[K")


def test_nothing_is_drawn_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting("building", every=0.0):
        say_in_place("building")
    assert capsys.readouterr().err == ""
