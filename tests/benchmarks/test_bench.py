"""`scripts/bench`: rows as they come, whatever becomes of the bench or of others."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import AsyncIterator
from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest

import scripts.benchmarks
from scripts.benchmarks.__main__ import ALONE, NAMES, exit_status, main, measure_all
from scripts.benchmarks.measuring import Finding, Measure, Size
from scripts.benchmarks.report import Report, from_json
from scripts.benchmarks.scp import measure as measure_scp


def finding(bench: str, hub: float = 1.0, *, met: bool = True) -> Finding:
    return Finding(bench=bench, measure="ms", hub=hub, target="<= 1", met=met)


def bench(name: str, *rows: Finding, error: Exception | None = None) -> Measure:
    async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
        for row in rows:
            yield row
        if error is not None:
            raise error

    return measure


def measured(
    benches: dict[str, Measure], directory: Path, size: Size = Size.QUICK
) -> Report:
    report = Report(StringIO())
    measure_all(list(benches), report, directory, size, benches.__getitem__)
    return report


def test_each_row_is_printed_and_in_the_file_before_the_next_is_measured(
    tmp_path: Path,
) -> None:
    printed, file = StringIO(), tmp_path / "rows.jsonl"
    seen: list[tuple[int, int]] = []

    async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
        for number in range(3):
            rows = printed.getvalue().splitlines()[2:]
            seen.append((len(rows), len(file.read_text().splitlines())))
            yield finding("one", number)

    report = Report(printed, file=file)
    measure_all(["one"], report, tmp_path, Size.QUICK, lambda _: measure)
    assert seen == [(0, 0), (1, 1), (2, 2)]
    assert from_json(file.read_text()) == report.findings


def test_a_bench_that_fails_is_a_row_that_says_so_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trouble = ExceptionGroup("in a task group", [ValueError("too many\nvalues")])
    report = measured(
        {
            "first": bench("first", finding("first")),
            "broken": bench("broken", finding("broken"), error=trouble),
            "last": bench("last", finding("last")),
        },
        tmp_path,
    )
    assert [(row.bench, row.error) for row in report.findings] == [
        ("first", ""),
        ("broken", ""),
        ("broken", "ValueError: too many values"),
        ("last", ""),
    ]
    assert exit_status(report.findings) == 1
    assert "ValueError: too many" in capsys.readouterr().err  # and where


def test_a_bench_that_cannot_be_loaded_is_such_a_row_too(tmp_path: Path) -> None:
    report = measured({}, tmp_path)
    measure_all(["gone"], report, tmp_path, Size.QUICK, lambda name: {}[name])
    assert [row.error for row in report.findings] == ["KeyError: 'gone'"]


def test_the_row_of_a_failure_is_told_as_one_in_the_table_and_in_json() -> None:
    failure = Finding(bench="scp", measure="failed", met=False, error="KeyError: 1")
    table, lines = StringIO(), StringIO()
    Report(table).add(failure)
    Report(lines, is_json=True).add(failure)
    last = table.getvalue().splitlines()[-1]
    assert "scp" in last
    assert "failed: KeyError: 1" in last
    assert last.rstrip(" |").endswith("NO")
    assert json.loads(lines.getvalue())["error"] == "KeyError: 1"
    assert from_json(lines.getvalue()) == [failure]


@pytest.mark.parametrize(
    ("size", "met", "status"),
    [
        (Size.QUICK, True, 0),
        (Size.QUICK, False, 1),
        (Size.SMALLEST, False, 0),
    ],
)
def test_a_missed_target_fails_the_run_unless_it_is_the_smallest(
    size: Size, met: bool, status: int, tmp_path: Path
) -> None:
    report = measured({"one": bench("one", finding("one", met=met))}, tmp_path, size)
    assert exit_status(report.findings) == status


def test_every_bench_that_there_is_has_a_name_to_be_run_by() -> None:
    found = set()
    for module in pkgutil.iter_modules(scripts.benchmarks.__path__):
        if module.name != "__main__" and not module.ispkg:
            loaded = import_module(f"scripts.benchmarks.{module.name}")
            if hasattr(loaded, "measure"):
                found.add(module.name)
    assert found == {*NAMES, *ALONE}


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["--output", str(tmp_path / "none" / "rows.jsonl")])
    assert exit.value.code == 2
    assert "No such file" in capsys.readouterr().err


async def test_a_delta_of_scp_is_built_by_itself_while_its_snapshot_is_there(
    tmp_path: Path,
) -> None:
    rows = [row async for row in measure_scp(tmp_path, Size.SMALLEST)]
    assert "page of a delta" in rows[-1].measure
    assert len(rows) == 4


def test_only_benches_that_take_an_engine_are_given_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["list", "--engine", "both"])
    assert "--engine both is for poll, fanout, first" in capsys.readouterr().err
