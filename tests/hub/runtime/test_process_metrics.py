"""The process in numbers, as /proc has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hub.runtime.process_metrics import process_families


def values(process: Path, boot: Path) -> dict[str, float]:
    return {
        each.name: each.samples[0].value for each in process_families(process, boot)
    }


@pytest.fixture
def process(tmp_path: Path) -> Path:
    """One whose name tries to be read as fields."""
    rest = " ".join(["S", *(["1"] * 18), "250", "9000000", "300", "0"])
    (tmp_path / "stat").write_text(f"42 (odd) 7 (name) {rest}\n")
    for number in range(3):
        (tmp_path / "fd").mkdir(exist_ok=True)
        (tmp_path / "fd" / str(number)).touch()
    (tmp_path / "boot").write_text("cpu 1 2 3\nbtime 1700000000\n")
    return tmp_path


def test_linux_tells_memory_files_and_start(process: Path) -> None:
    found = values(process, process / "boot")
    assert found["process_resident_memory_bytes"] == 300 * os.sysconf("SC_PAGE_SIZE")
    assert found["process_virtual_memory_bytes"] == 9_000_000
    assert found["process_open_fds"] == 3
    ticks = os.sysconf("SC_CLK_TCK")
    assert found["process_start_time_seconds"] == 1_700_000_000 + 250 / ticks


@pytest.mark.parametrize("stat", [None, "42 (short) S", "42 (odd) S " + "x " * 30])
def test_elsewhere_cpu_and_the_limit_of_files_are_known(
    stat: str | None, process: Path
) -> None:
    (process / "stat").unlink()
    if stat is not None:
        (process / "stat").write_text(stat)
    assert values(process, process / "boot").keys() == {
        "process_cpu_seconds_total",
        "process_max_fds",
    }
