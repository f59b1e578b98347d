"""The soak, for a few seconds; `scripts/soak` is the long one."""

from __future__ import annotations

import pytest

from tests.soak.__main__ import main


def test_a_hub_under_fire_keeps_its_promises(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["--seed", "1", "--seconds", "6"])
    said = capsys.readouterr().out
    assert code == 0, said
    assert "verdict    nothing lost" in said


def test_a_hub_with_everything_overdue_begins_at_once_and_storms_nobody(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sizes = ["--feeds", "300", "--deliveries", "400", "--seconds", "2"]
    code = main(["restart", *sizes])
    said = capsys.readouterr().out
    assert code == 0, said
    assert "overdue    300 feeds of 6 hosts, 400 deliveries to 20" in said


@pytest.mark.parametrize(
    "scene", [["stall", "--seconds", "1"], ["clock", "--jumps", "2"]]
)
def test_a_hub_that_is_stopped_or_whose_clock_is_set_in_the_midst_of_deliveries(
    scene: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(scene) == 0, capsys.readouterr().out
