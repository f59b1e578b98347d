"""Write the dashboard and the alert rules: .venv/bin/python -m scripts.monitoring"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hub.runtime.clock import SystemClock
from hub.runtime.metrics import Metrics
from hub.services.disk_space import DiskSpace
from hub.services.hub_health import MetricsService
from protocols.prometheus import MetricFamily
from scripts.monitoring.alerts import rules_document
from scripts.monitoring.dashboard import dashboard_of
from storage.database_url import open_storage

FOLDER: Final = Path(__file__).parent


async def read_registry() -> list[MetricFamily]:
    """The metrics of an empty hub, which has all of them."""
    with TemporaryDirectory() as directory:
        storage = await open_storage(f"sqlite:{directory}/hub.db")
        clock = SystemClock()
        disk = DiskSpace(storage, clock, Path(directory), Path(directory), 0)
        service = MetricsService(storage, Metrics(), clock, disk)
        try:
            return await service.families()
        finally:
            await storage.close()


def documents(families: list[MetricFamily]) -> dict[str, str]:
    """By the name of the file."""
    dashboard = json.dumps(dashboard_of(families), indent=1)
    return {"grafana.json": dashboard + "\n", "alerts.yml": rules_document()}


def main() -> None:
    for name, text in documents(asyncio.run(read_registry())).items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
