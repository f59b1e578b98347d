from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from hub.simulation.traces import generate
from tests.support.trace_files import write_traces

Fanfare = Callable[..., Result]


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    path = tmp_path / "traces.json"
    path.write_bytes(write_traces(generate(1, 3, 7)))
    return path


def test_policies_are_compared_in_a_table_and_a_picture(
    alone: Fanfare, traces: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "delays.svg"

    result = alone("simulate", str(traces), "--plot", str(picture))

    assert result.exit_code == 0
    assert result.stdout.startswith("3 feeds,")
    assert "oracle of rates" in result.stdout
    assert picture.read_text().startswith("<svg")


def test_as_json_it_is_one_object(alone: Fanfare) -> None:
    arguments = ("--seed", "3", "--feeds", "3", "--days", "7", "--polls-per-day", "48")

    document = json.loads(alone("simulate", *arguments, "--json").stdout)

    assert document["feeds"] == 3
    assert {each["budget"] for each in document["policies"]} == {48}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--seed", "1", "--history"), 2, "give only one of"),
        (("--history",), 1, "hub.db"),
        (("NO_TRACES",), 1, "cannot replay"),
    ],
)
def test_what_cannot_be_replayed_is_said(
    alone: Fanfare, tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    arguments = tuple(str(bad) if a == "NO_TRACES" else a for a in arguments)

    result = alone(
        "simulate", *arguments, FANFARE_DATABASE=f"sqlite:{tmp_path / 'hub.db'}"
    )

    assert result.exit_code == code
    assert message in result.stderr


def test_a_picture_that_cannot_be_written_is_said(
    alone: Fanfare, traces: Path, tmp_path: Path
) -> None:
    result = alone(
        "simulate", str(traces), "--plot", str(tmp_path / "missing" / "delays.svg")
    )

    assert result.exit_code == 1
    assert "cannot write" in result.stderr
