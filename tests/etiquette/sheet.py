"""Print the score sheet of docs/explanation/etiquette.md, at the default budget:

.venv/bin/python -m tests.etiquette.sheet
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

import structlog

from hub.core.schedule.budget import Budget
from tests.etiquette.guest_month import Month, score_sheet
from tests.etiquette.guest_sites import SITES


def main() -> int:
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR)
    )
    with tempfile.TemporaryDirectory() as directory:
        month = Month(Path(directory) / "hub.db", Budget())
        asyncio.run(month.pass_by())
    scores = [(site, month.score(site)) for site in SITES]
    hosts = [month.score_host(host) for host in sorted({each.host for each in SITES})]
    print(score_sheet(scores))
    crowded = sum(bool(each.faults) for each in hosts)
    print(
        f"\n{len(month.requests):,} requests; {crowded} of {len(hosts)} hosts", end=" "
    )
    print("crowded or asked before they wanted to be")
    return int(crowded or any(each.faults for _, each in scores))


if __name__ == "__main__":
    sys.exit(main())
