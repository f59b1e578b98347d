"""``scripts/bench``: measure, print each row as it is found; status 1 if a target is
missed, if a bench fails, or if something became dearer than in an earlier run.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop

from hub.runtime import garbage_collection
from hub.runtime.logs import configure_logs
from hub.runtime.offloading import take_short_turns
from scripts.benchmarks.against import compare
from scripts.benchmarks.engines import (
    COMPARED,
    TAKING_ENGINE,
    Engine,
    EngineMeasure,
)
from scripts.benchmarks.measuring import Finding, Measure, Size
from scripts.benchmarks.report import Report, from_json

NAMES = (
    "commit",
    "news",
    "quiet",
    "plan",
    "poll",
    "normalize",
    "blocking",
    "fanout",
    "engines",
    "deliveries",
    "sustained",
    "busy",
    "live",
    "subscribe",
    "track",
    "list",
    "pages",
    "dashboards",
    "retrieve",
    "footprint",
    "scp",
    "openfeeder",
    "sources",
)
ALONE = ("ladder", "first")
"""Which take long, or are a part of another, and are measured only when they are asked
for; but for the smallest round, which takes a few seconds of each."""

Load = Callable[[str], Measure]


def main(arguments: list[str] | None = None) -> int:
    wanted = _arguments(arguments)
    configure_logs("error", "console")
    size: Size = wanted.size
    everything = (*NAMES, *ALONE) if size is Size.SMALLEST else NAMES
    names = everything if wanted.bench == "all" else (wanted.bench,)
    report = Report(sys.stdout, is_json=wanted.json, file=wanted.output)
    take_short_turns()  # as in a running hub, for the floors too
    measure_all(names, report, wanted.directory, size, wanted.load)
    return exit_status(report.findings, wanted.against)


def exit_status(
    findings: Sequence[Finding], before: Sequence[Finding] | None = None
) -> int:
    is_met = all(finding.met for finding in findings)
    is_cheap = before is None or has_stayed_cheap(findings, before)
    return 0 if is_met and is_cheap else 1


def measure_all(
    names: Sequence[str],
    report: Report,
    parent: Path,
    size: Size,
    load: Load | None = None,
) -> None:
    """Add the rows of each bench to the report; of one that fails, one that says so."""
    parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        print(f"measuring {name}", file=sys.stderr, flush=True)
        try:
            measure = (load or load_bench)(name)
            garbage_collection.freeze_startup()  # as in a running hub
            with TemporaryDirectory(dir=parent, prefix="bench-") as directory:
                uvloop.run(_measure(measure, Path(directory), size, report))
        except Exception as error:
            traceback.print_exception(error)
            report.add(_failure(name, error))


def load_bench(name: str) -> Measure:
    measure: Measure = import_module(f"scripts.benchmarks.{name}").measure
    return measure


def load_on(name: str, engine: Engine) -> Measure:
    """One of `TAKING_ENGINE`."""
    measure: EngineMeasure = import_module(f"scripts.benchmarks.{name}").measure
    return lambda directory, size: measure(directory, size, engine)


async def _measure(
    measure: Measure, directory: Path, size: Size, report: Report
) -> None:
    async with asyncio.timeout(size.pick(1_800.0, 600.0, 300.0)):
        async for finding in measure(directory, size):
            report.add(_unjudged(finding) if size is Size.SMALLEST else finding)


def _unjudged(finding: Finding) -> Finding:
    return replace(finding, target="", met=True)


def _failure(name: str, error: BaseException) -> Finding:
    """What one of a group of errors said stands for all of them."""
    first = next(_leaves(error))
    said = " ".join(f"{type(first).__name__}: {first}".split())
    return Finding(bench=name, measure="failed", met=False, error=said[:300])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in error.exceptions:
        yield from _leaves(each)


def has_stayed_cheap(findings: Sequence[Finding], before: Sequence[Finding]) -> bool:
    """Whether anything could be compared, and nothing is too dear. Says what is."""
    changes = compare(findings, before)
    dear = [change for change in changes if change.is_too_dear]
    lines = [f"dearer: {change}" for change in dear]
    lines.append(f"{len(changes)} rows compared, {len(dear)} dearer by more than 20 %")
    print("\n".join(lines), file=sys.stderr)
    return bool(changes) and not dear


def _earlier(file: str) -> list[Finding]:
    """Read before anything is measured, lest ten minutes be for nothing."""
    try:
        return from_json(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{file}: {error}") from None


def _writable(file: str) -> Path:
    """Emptied before anything is measured, for the same reason."""
    try:
        Path(file).write_text("", encoding="utf-8")
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{file}: {error.strerror}") from None
    return Path(file)


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument(
        "bench", nargs="?", default="all", choices=(*NAMES, *ALONE, "all")
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON lines, not a table"
    )
    parser.add_argument(
        "--output",
        type=_writable,
        metavar="FILE",
        help="write the rows there, too, as JSON lines",
    )
    parser.add_argument(
        "--quick",
        dest="size",
        action="store_const",
        const=Size.QUICK,
        default=Size.FULL,
        help="fewer rounds, smaller",
    )
    parser.add_argument(
        "--smallest",
        dest="size",
        action="store_const",
        const=Size.SMALLEST,
        help="a glimpse of each, no target judged: whether they still run",
    )
    parser.add_argument(
        "--against",
        type=_earlier,
        metavar="FILE",
        help="what --json said earlier: fail if a row is more than 20 %% dearer",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("build"),
        help="where the databases go; a RAM disk makes fsync free and proves nothing",
    )
    parser.add_argument(
        "--engine",
        type=Engine,
        choices=Engine,
        help=f"the engine of the hub, of {', '.join(TAKING_ENGINE)}; with both, of"
        f" {', '.join(COMPARED)}, the hub is on PostgreSQL, and the floor is one on"
        " SQLite",
    )
    wanted = parser.parse_args(arguments)
    wanted.load = None
    if wanted.engine is not None:
        taking = COMPARED if wanted.engine is Engine.BOTH else TAKING_ENGINE
        if wanted.bench not in taking:
            parser.error(f"--engine {wanted.engine} is for {', '.join(taking)}")
        wanted.load = partial(load_on, engine=wanted.engine)
    return wanted


if __name__ == "__main__":
    sys.exit(main())
