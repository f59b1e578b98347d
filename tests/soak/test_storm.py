"""The storm with few clients; `python -m tests.soak.storm` has thousands."""

from __future__ import annotations

import pytest

from tests.soak.storm import main


def test_all_who_come_back_at_once_get_each_entry_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["--clients", "30", "--slow", "0"])
    said = capsys.readouterr().out
    assert code == 0, said
    assert "verdict    each entry once and in order to everybody" in said
