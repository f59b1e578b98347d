"""Documents that nobody would write, for every reader of bytes from outside.

.venv/bin/python -m tests.fuzzing                            each for ten seconds
.venv/bin/python -m tests.fuzzing feed page --seed 7 --seconds 600
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.fuzzing.campaign import Campaign, Finding
from tests.fuzzing.contracts import CONTRACTS, contracts_named

_SHOWN = 20
"""Findings of one reader; after so many of them it is the next one's turn."""


def main() -> int:
    arguments = _read_arguments()
    found = 0
    for contract in contracts_named(arguments.parsers):
        campaign = Campaign(contract, arguments.seed, arguments.seconds)
        for here, finding in enumerate(campaign.run(), 1):
            _keep(finding, arguments.into)
            found += 1
            if here == _SHOWN:
                break
        print(f"{contract.name}: {campaign.tried} documents", flush=True)
    print(f"{found} found" if found else "nothing found")
    return 1 if found else 0


def _keep(finding: Finding, into: Path) -> None:
    """What failed, where it can be looked at; mended, it belongs to the corpus."""
    folder = into / finding.contract.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{finding.seed}-{finding.number}"
    path.write_bytes(finding.body)
    print(f"  {path}: {finding.complaint}", flush=True)


def _read_arguments() -> argparse.Namespace:
    names = [each.name for each in CONTRACTS]
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing")
    parser.add_argument("parsers", nargs="*", metavar="PARSER", help=", ".join(names))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10, help="for each parser")
    parser.add_argument(
        "--into",
        type=Path,
        default=Path("build/fuzzing"),
        help="where to keep findings",
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.parsers).difference(names):
        parser.error(f"no parser is called {', '.join(sorted(unknown))}")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
