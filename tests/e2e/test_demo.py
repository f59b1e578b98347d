"""``fanfare demo``: every entry by every way, and the exit code that says so."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.support.command import fanfare, start_fanfare

pytestmark = pytest.mark.once("the database of the demo is a file")


async def test_every_entry_comes_by_every_way(tmp_path: Path) -> None:
    shown = await fanfare("demo", "--seconds", "4", variables={"TMPDIR": str(tmp_path)})
    assert (shown.code, shown.err) == (0, "")
    arrivals = re.findall(
        r"^ *\d+ ms  (webhook|websocket|sse) +Entry (\d) of the (RSS|ATOM|JSON) feed$",
        shown.out,
        re.MULTILINE,
    )
    assert len(arrivals) == len(set(arrivals)) == 18
    assert "6 entries published\nWAY " in shown.out
    for way in ("webhook", "websocket", "sse"):
        assert re.search(rf"^{way} +2 +2 +2 +0 +\d+ ms +\d+ ms$", shown.out, re.M)
    assert os.listdir(tmp_path) == []


async def test_ctrl_c_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    process = await start_fanfare("demo", variables={"TMPDIR": str(tmp_path)})
    assert process.stdout is not None
    assert b"a hub runs at" in await process.stdout.readline()
    await process.stdout.readline()  # the first arrival
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert process.returncode == 1
    assert b"Traceback" not in out + err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("seconds", ["-1", "x", "3601", "nan", "inf"])
async def test_a_bad_duration_is_wrong_usage(seconds: str) -> None:
    shown = await fanfare("demo", "--seconds", seconds, variables={})
    assert shown.code == 2
