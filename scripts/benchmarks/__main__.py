"""``scripts/bench``: measure, print what was found; status 1 if a target is missed,
or if something became dearer than in an earlier run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Coroutine, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop

from hub import heap
from hub.beside import take_short_turns
from hub.logs import configure_logs
from scripts.benchmarks.against import compare
from scripts.benchmarks.measuring import Finding
from scripts.benchmarks.report import as_json, as_table, from_json

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
_ALONE = ("ladder",)
"""Which take long, and are measured only when they are asked for."""
Measure = Callable[..., Coroutine[None, None, list[Finding]]]


def main(arguments: list[str] | None = None) -> int:
    wanted = _arguments(arguments)
    configure_logs("error", "console")
    names = _NAMES if wanted.bench == "all" else (wanted.bench,)
    findings = _measure(names, wanted.directory, is_quick=wanted.quick)
    print(as_json(findings) if wanted.json else as_table(findings))
    is_met = all(finding.met for finding in findings)
    is_cheap = wanted.against is None or has_stayed_cheap(findings, wanted.against)
    return 0 if is_met and is_cheap else 1


def _measure(names: Sequence[str], parent: Path, *, is_quick: bool) -> list[Finding]:
    parent.mkdir(parents=True, exist_ok=True)
    findings: list[Finding] = []
    take_short_turns()  # as in a running hub, for the floors too
    for name in names:
        print(f"measuring {name}", file=sys.stderr, flush=True)
        measure: Measure = import_module(f"scripts.benchmarks.{name}").measure
        heap.settle()  # as in a running hub, for the floors too
        with TemporaryDirectory(dir=parent, prefix="bench-") as directory:
            findings += uvloop.run(measure(Path(directory), is_quick=is_quick))
    return findings


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


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument(
        "bench", nargs="?", default="all", choices=(*_NAMES, *_ALONE, "all")
    )
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller")
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
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
