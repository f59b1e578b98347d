"""``scripts/bench``: measure, print what was found; status 1 if a target is missed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Coroutine
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop

from hub import heap
from hub.beside import take_short_turns
from hub.logs import configure_logs
from scripts.benchmarks.measuring import Finding
from scripts.benchmarks.report import as_json, as_table

_NAMES = (
    "commit",
    "plan",
    "poll",
    "normalize",
    "fanout",
    "deliveries",
    "sustained",
    "live",
    "subscribe",
    "track",
    "list",
    "retrieve",
    "footprint",
    "scp",
    "openfeeder",
    "sources",
)
Measure = Callable[..., Coroutine[None, None, list[Finding]]]


def main() -> int:
    wanted = _arguments()
    configure_logs("error", "console")
    names = _NAMES if wanted.bench == "all" else (wanted.bench,)
    wanted.directory.mkdir(parents=True, exist_ok=True)
    findings: list[Finding] = []
    take_short_turns()  # as in a running hub, for the floors too
    for name in names:
        print(f"measuring {name}", file=sys.stderr, flush=True)
        measure: Measure = import_module(f"scripts.benchmarks.{name}").measure
        heap.settle()  # as in a running hub, for the floors too
        with TemporaryDirectory(dir=wanted.directory, prefix="bench-") as directory:
            findings += uvloop.run(measure(Path(directory), is_quick=wanted.quick))
    print(as_json(findings) if wanted.json else as_table(findings))
    return 0 if all(finding.met for finding in findings) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("bench", nargs="?", default="all", choices=(*_NAMES, "all"))
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller")
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("build"),
        help="where the databases go; a RAM disk makes fsync free and proves nothing",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
