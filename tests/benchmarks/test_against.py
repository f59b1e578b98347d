"""`scripts/bench --against`: what became dearer since an earlier run."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.benchmarks.__main__ import has_stayed_cheap, main
from scripts.benchmarks.against import compare
from scripts.benchmarks.measuring import Finding
from scripts.benchmarks.report import as_json, from_json


def finding(
    measure: str, hub: float, ratio: float | None = None, target: str = ""
) -> Finding:
    return Finding(
        bench="poll", measure=measure, hub=hub, ratio=ratio, target=target, floor=ratio
    )


@pytest.mark.parametrize("form", ["{}\n{}\n", "{}\n\n{}", "[{}, {}]"])
def test_a_run_is_read_as_it_was_written(form: str) -> None:
    run = [finding("CPU us per poll", 535, 1.56, "<= 2 x"), finding("MB", 3.5)]
    assert from_json(form.format(*map(as_json, run))) == run


@pytest.mark.parametrize(
    "text", ["", "\n", "{", "7", '{"bench": 1}', '[{"bench": "poll"}]', "[7]"]
)
def test_what_is_no_run_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected the JSON"):
        from_json(text)


@pytest.mark.parametrize(
    ("before", "now", "is_too_dear"),
    [(1.0, 1.19, False), (1.0, 1.21, True), (1.0, 0.5, False), (1.21, 1.0, False)],
)
def test_a_fifth_more_cpu_is_too_dear(
    before: float, now: float, is_too_dear: bool
) -> None:
    measure = "CPU us per decision"
    [change] = compare([finding(measure, now)], [finding(measure, before)])
    assert change.is_too_dear == is_too_dear


def test_where_there_is_a_floor_the_ratio_counts_since_machines_differ() -> None:
    measure = "CPU us per poll"
    [slow] = compare([finding(measure, 900, 1.5)], [finding(measure, 300, 1.5)])
    [dear] = compare([finding(measure, 300, 3.0)], [finding(measure, 300, 1.5)])
    assert not slow.is_too_dear
    assert dear.is_too_dear
    assert str(dear) == "poll, CPU us per poll: 1.5 before, 3 now, +100%"


@pytest.mark.parametrize(
    ("measure", "target"),
    [
        ("deliveries per second", ""),
        ("times faster: whole document", ">= 25 x"),
        ("SCP: MB of JSON lines per CPU second", ">= 20"),
    ],
)
def test_of_what_is_better_when_more_less_is_dearer(measure: str, target: str) -> None:
    half = compare([finding(measure, 1, 1.0, target)], [finding(measure, 1, 2.0)])
    twice = compare([finding(measure, 1, 2.0, target)], [finding(measure, 1, 1.0)])
    assert [each.is_too_dear for each in half + twice] == [True, False]


@pytest.mark.parametrize(
    ("now", "before"),
    [
        ([finding("MB", 9)], [finding("MB", 1)]),
        ([finding("ms, p99", 9)], [finding("ms, p99", 1)]),
        ([finding("polls per second", 1)], [finding("polls per second", 9)]),
        ([finding("CPU us", 9)], []),
        ([], [finding("CPU us", 9)]),
        ([finding("CPU us", 9, 3.0)], [finding("CPU us", 1)]),
        ([finding("CPU us", 9)], [finding("CPU us", 0)]),
    ],
)
def test_what_says_nothing_elsewhere_is_not_compared(
    now: list[Finding], before: list[Finding]
) -> None:
    assert compare(now, before) == []


def test_a_file_that_is_no_run_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.json"
    file.write_text("[{}]")
    with pytest.raises(SystemExit) as exit:
        main(["--against", str(file)])
    assert exit.value.code == 2
    assert "expected the JSON of an earlier run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("now", "is_as_cheap", "said"),
    [
        (40.0, True, "1 rows compared, 0 dearer by more than 20 %"),
        (60.0, False, "dearer: poll, CPU us per decision: 40 before, 60 now, +50%"),
    ],
)
def test_a_run_that_is_dearer_fails_and_names_the_row(
    now: float, is_as_cheap: bool, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [finding("CPU us per decision", 40.0)]
    found = has_stayed_cheap([finding("CPU us per decision", now)], before)
    assert found == is_as_cheap
    assert said in capsys.readouterr().err


def test_two_runs_with_nothing_in_common_prove_nothing() -> None:
    assert not has_stayed_cheap([finding("CPU us per decision", 1)], [])
